import { expect, test } from 'vitest'
import { fabric, management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { makeManyIdentities } from '../api/support/many.ts'
import { newIdentity } from '../api/support/network.ts'

// The attack: a caller requests a complete list, which could occupy the controller until the last
// row is written, and block all other callers.
const limits = { processorSliceMs: 0, longListBytesOfOthersMax: 100_000 }
const { controller, root, sessionOf } = await controllerForFile(limits)
makeManyIdentities(controller, 1000)

/** Requests a list. @returns its rows, and the turns of the event loop until it arrived. */
async function listCountingTurns(url: string): Promise<{ rows: number; turns: number }> {
  let turns = 0
  let next = setImmediate(function turn() {
    turns += 1
    next = setImmediate(turn)
  })
  const reply = await root.get(url)
  clearImmediate(next)
  expect(reply.status, reply.text.slice(0, 200)).toBe(200)
  return { rows: (reply.body.data as unknown as unknown[]).length, turns }
}

test.for([
  ['identities', `${management}/identities?limit=-1`],
  ['changes', `${management}/history?limit=-1`],
  ['audit entries', `${fabric}/audit?limit=-1`],
])(
  'other callers are served while the response with a complete list of %s is created',
  async ([, url = '']) => {
    const { rows, turns } = await listCountingTurns(url)
    expect(rows).toBeGreaterThanOrEqual(1000)
    expect(turns).toBeGreaterThan(1000)
  },
)

test('other callers are served while one of many circuits is looked up', async () => {
  for (let at = 0; at < 10_000; at += 1) {
    const id = `circuit ${at}`
    controller.live.circuits.set(id, {
      live: { clientId: 'i', sessionId: 's', serviceId: 's', terminatorId: 't', createdAt: at },
      ends: { id, ingress: 'in', egress: 'out' },
      hostId: 'h',
      instanceId: '',
      isOfTunnel: false,
      isHostedByTunnel: false,
      turn: 0,
      path: { routerIds: ['r'], links: [], cost: 1 },
    })
  }
  const { rows, turns } = await listCountingTurns(`${fabric}/circuits?limit=1`)
  expect(rows).toBe(1)
  expect(turns).toBeGreaterThan(50)
})

test('a caller that is no administrator gets no complete list of changes above the size limit', async () => {
  const reader = sessionOf(await newIdentity(root, 'reader', { permissions: ['identity.read'] }))
  const reply = await reader.get(`${management}/history?limit=-1`)
  expect(reply.status, reply.text.slice(0, 200)).toBe(400)
  expect((await reader.get(`${management}/history?limit=10`)).status).toBe(200)
})
