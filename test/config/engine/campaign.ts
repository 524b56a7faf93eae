import { parseArgs } from 'node:util'

import { controllerSubject } from '../controller/support.ts'
import { routerSubject } from '../router/support.ts'
import { fuzz } from './fuzz.ts'

// Checks random configurations, none of which may cause an exception: node
// test/config/engine/campaign.ts --files 100000 --seed 1
const { values } = parseArgs({
  options: {
    files: { type: 'string', default: '100000' },
    seed: { type: 'string', default: '1' },
  },
})
const begunMs = performance.now()
const options = { seed: Number(values.seed), files: Number(values.files) }
const router = fuzz(routerSubject, options)
const controller = fuzz(controllerSubject, options)
const seconds = Number(((performance.now() - begunMs) / 1000).toFixed(1))
process.stdout.write(`${JSON.stringify({ router, controller, seconds })}\n`)
