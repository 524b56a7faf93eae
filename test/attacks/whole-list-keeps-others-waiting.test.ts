import { expect, test } from 'vitest'
import { management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { makeManyIdentities } from '../api/support/many.ts'

// The attack: a caller requests a complete list, which could occupy the controller until the last
// row is written, and block all other callers.
const { controller, root } = await controllerForFile({ processorSliceMs: 0 })
makeManyIdentities(controller, 1000)

test('other callers are served while the response with a complete list is created', async () => {
  let turns = 0
  let next = setImmediate(function turn() {
    turns += 1
    next = setImmediate(turn)
  })
  const reply = await root.get(`${management}/identities?limit=-1`)
  clearImmediate(next)
  expect(reply.status).toBe(200)
  expect(turns).toBeGreaterThan(1000)
})
