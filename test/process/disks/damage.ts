import { readdirSync } from 'node:fs'
import { beforeAll, expect, test } from 'vitest'
import { DamageCampaign } from '../../chaos/damages.ts'
import { makeLevelAbort } from '../../chaos/file-damage.ts'
import { expectMembers } from '../support/fleet.ts'
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

test('a controller whose state on disk was damaged recovers every acknowledged write, and can lead again', async () => {
  console.log(await campaign.round('state'))
})

test('a controller that LevelDB aborts while it opens the state rebuilds the state at its next start', async () => {
  const fleet = sharedFleet()
  await fleet.stop(2)
  makeLevelAbort(fleet.data(2))
  fleet.run(2)
  expect(await fleet.ended(2)).toBeNull()
  await fleet.start(2)
  expect(fleet.log(2)).toMatch(
    /LevelDB aborts the process: Assertion .* discarded; will be rebuilt/,
  )
  expect(readdirSync(fleet.data(2))).not.toContain('OPENING')
  await expectMembers(fleet, [1, 2, 3])
})

test('a controller that lost its term and vote is re-admitted with an empty data folder', async () => {
  expect(await campaign.round('metas')).toContain('entered anew')
})
