import { expect, test } from 'vitest'
import { management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { makeManyIdentities } from '../api/support/many.ts'
import { newIdentity } from '../api/support/network.ts'

// The attack: a caller requests a complete list, which could occupy the controller until the last
// row is written, and block all other callers.
const limits = { processorSliceMs: 0, longListBytesOfOthersMax: 100_000 }
const { controller, root, sessionOf } = await controllerForFile(limits)
makeManyIdentities(controller, 1000)

test.for([
  ['identities', `${management}/identities?limit=-1`],
  ['changes', `${management}/history?limit=-1`],
  ['audit entries', '/fabric/v1/audit?limit=-1'],
])(
  'other callers are served while the response with a complete list of %s is created',
  async ([, url = '']) => {
    let turns = 0
    let next = setImmediate(function turn() {
      turns += 1
      next = setImmediate(turn)
    })
    const reply = await root.get(url)
    clearImmediate(next)
    expect(reply.status).toBe(200)
    expect((reply.body.data as unknown as unknown[]).length).toBeGreaterThanOrEqual(1000)
    expect(turns).toBeGreaterThan(1000)
  },
)

test('a caller that is no administrator gets no complete list of changes above the size limit', async () => {
  const reader = sessionOf(await newIdentity(root, 'reader', { permissions: ['identity.read'] }))
  const reply = await reader.get(`${management}/history?limit=-1`)
  expect(reply.status, reply.text.slice(0, 200)).toBe(400)
  expect((await reader.get(`${management}/history?limit=10`)).status).toBe(200)
})
