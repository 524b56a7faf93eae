import { parseArgs } from 'node:util'
import { DamageCampaign } from './damages.ts'
import type { Target } from './file-damage.ts'

// Damages files of stopped controllers at random places, this many times.

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20' },
    seed: { type: 'string', default: `${Date.now() % 1_000_000}` },
  },
})
const TURN: readonly Target[] = [
  'log',
  'log',
  'state',
  'log',
  'meta',
  'log',
  'state',
  'log',
  'metas',
]
console.log(`${options.rounds} rounds, drawn with --seed ${options.seed}`)
await using campaign = await DamageCampaign.start(Number(options.seed))
for (let round = 1; round <= Number(options.rounds); round += 1) {
  const startedAt = performance.now()
  const done = await campaign.round(TURN[(round - 1) % TURN.length] ?? 'log')
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  console.log(`${round}: ${done} (${seconds} s, ${campaign.writes} writes)`)
}
console.log('every damage was repaired; no acknowledged write was lost, and none invented')
