import { beforeAll, expect, test } from 'vitest'
import { DamageCampaign } from '../../chaos/damages.ts'
import { sharedFleet } from '../support/shared-cluster.ts'

// Goal: a controller whose files were damaged while it was stopped repairs itself, votes and can
// lead again, and no acknowledged write is lost. Method: a few rounds of
// test/chaos/damage-campaign.ts, which runs many rounds.

let campaign: DamageCampaign
beforeAll(async () => {
  campaign = await DamageCampaign.on(sharedFleet(), 7)
})

test('a damaged log is repaired from the other controllers', async () => {
  console.log(await campaign.round('log'))
  expect(campaign.writes).toBeGreaterThan(100)
})

test('a controller with a damaged state restores the state', async () => {
  console.log(await campaign.round('state'))
})

test('a controller that lost its term and vote is re-admitted with an empty data folder', async () => {
  expect(await campaign.round('metas')).toContain('entered anew')
})
