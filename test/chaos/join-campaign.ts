import { parseArgs } from 'node:util'
import { JoinCampaign } from './joins.ts'

// Kills the joining controller, the admitting controller and the leader, each at many moments of a
// join.

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '10' },
    seed: { type: 'string', default: `${Date.now() % 1_000_000}` },
  },
})
console.log(`${options.rounds} rounds each, drawn with --seed ${options.seed}`)
await using campaign = await JoinCampaign.start(Number(options.seed))
for (let round = 1; round <= Number(options.rounds); round += 1) {
  for (const victim of ['joiner', 'admitter', 'leader'] as const) {
    console.log(`${round}: ${await campaign.round(victim)}`)
  }
}
console.log('every join ended in a healthy cluster of exactly the intended members')
