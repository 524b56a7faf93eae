import { expect, test } from 'vitest'
import { InterruptedEnrollments } from '../../chaos/interrupted-enrollments.ts'
import { sharedCluster } from '../support/shared-cluster.ts'

// Goal: if the leader is killed during an enrollment, the enrollment has either taken effect
// completely or not at all, and repeating the request completes it. Method: one round of the
// campaign, with enrollments of every kind in progress when the leader is killed.

test('an enrollment of any kind is atomic if the leader is killed, and completes when it is repeated', async () => {
  const campaign = await InterruptedEnrollments.on(sharedCluster(), 20_261)
  expect(await campaign.round()).toContain('killed')
  await campaign.restore()
  for (const [kind, { brought, answered, completed, nothing }] of campaign.tallies) {
    expect(brought, kind).toBeGreaterThan(0)
    expect(answered + completed + nothing, kind).toBe(brought)
  }
})
