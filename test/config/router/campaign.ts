import { parseArgs } from 'node:util'

import { fuzz } from './fuzz.ts'

// Configurations of chance, each judged without an exception: node test/config/router/campaign.ts --files 100000 --seed 1
const { values } = parseArgs({
  options: {
    files: { type: 'string', default: '100000' },
    seed: { type: 'string', default: '1' },
  },
})
const begunMs = performance.now()
const result = fuzz({ seed: Number(values.seed), files: Number(values.files) })
const seconds = ((performance.now() - begunMs) / 1000).toFixed(1)
process.stdout.write(`${JSON.stringify({ ...result, seconds: Number(seconds) })}\n`)
