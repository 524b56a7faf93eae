import { expect, test } from 'vitest'
import { runCampaign } from './query-campaign.ts'

test('lists and a slow twin of them find the same, whatever is asked of whatever network', () => {
  const { rounds, telling, difference } = runCampaign({
    rounds: 8000,
    seed: 29,
    msMax: 10_000,
    roundsMin: 500,
  })
  expect(difference).toBe(null)
  expect(rounds).toBeGreaterThanOrEqual(500)
  expect(telling).toBeGreaterThan(rounds / 8)
})
