import { expect, test } from 'vitest'
import { runCampaign } from './query-campaign.ts'

test('lists return the same records as a slow reference implementation, for random queries on random networks', () => {
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
