import { parseArgs } from 'node:util'
import { TestCluster } from '../process/support/cluster.ts'
import { InterruptedEnrollments } from './interrupted-enrollments.ts'

// Kills the leader during enrollments of every kind, at random moments. Each seed has a separate
// cluster.

const { values: options } = parseArgs({
  options: {
    seeds: { type: 'string', default: '10' },
    first: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '3' },
  },
})
const first = Number(options.first)
console.log(`seeds from ${first}, ${options.seeds} of them, ${options.rounds} kills each`)
for (let seed = first; seed < first + Number(options.seeds); seed += 1) {
  await using cluster = await TestCluster.start({ hasCalmElections: false })
  const campaign = await InterruptedEnrollments.on(cluster, seed)
  for (let round = 1; round <= Number(options.rounds); round += 1) {
    console.log(`seed ${seed}, ${round}: ${await campaign.round()}`)
    await campaign.restore()
  }
  for (const [kind, { brought, answered, completed, nothing, told }] of campaign.tallies) {
    console.log(
      `  ${kind.padEnd(18)} ${brought} brought: ${answered} answered, ${completed} completed without an answer, ` +
        `${nothing} not begun; ${told} told that it was used`,
    )
  }
}
console.log('every enrollment was nothing or whole, and ended by the same request')
