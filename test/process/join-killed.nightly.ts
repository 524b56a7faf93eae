import { expect, test } from 'vitest'
import { JoinCampaign } from '../chaos/joins.ts'

// Goal: if any participant is killed during a join, repeating the join completes it. Method: one
// round of the campaign for each participant.

test('a join can be repeated, and completes, if the joining controller, the admitting controller or the leader was killed', async () => {
  await using campaign = await JoinCampaign.start(20_260)
  for (const victim of ['joiner', 'admitter', 'leader'] as const) {
    expect(await campaign.round(victim)).toContain(victim)
  }
})
