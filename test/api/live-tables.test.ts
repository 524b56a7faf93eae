import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { LiveRowTable } from '../../src/fabric/live-row-table.ts'
import { CallerOf, fabric } from './support/caller.ts'
import { startController, type TestController } from './support/controller.ts'

let controller: TestController
let root: CallerOf

beforeAll(async () => {
  controller = await startController()
  root = new CallerOf(controller)
  root.token = controller.openSession('admin-id')
})

afterAll(async () => {
  await controller.close()
  expect(controller.errors).toEqual([])
})

const reported = (id: string) => ({
  id,
  destRouterId: 'er2',
  protocol: 'tls',
  dialAddress: 'tls:er2:6000',
  iteration: 1,
  connections: [],
})

const idsOf = async (path: string): Promise<string[]> => {
  const reply = await root.get(`${fabric}/${path}`)
  expect(reply.status, reply.text).toBe(200)
  return (reply.body.data as { id: string }[]).map(({ id }) => id)
}

describe('links in the live table of a controller', () => {
  test('can be found with a filter, shown, changed and removed', async () => {
    const { links } = controller.live
    for (const id of ['l1', 'l2']) links.report('er1', reported(id))
    expect(await idsOf('links?filter=sourceRouter%3D%22er1%22%20sort%20by%20id%20desc')).toEqual([
      'l2',
      'l1',
    ])
    const patched = await root.call('PATCH', `${fabric}/links/l1`, { staticCost: 7, down: true })
    expect(patched.status, patched.text).toBe(200)
    const { body } = await root.get(`${fabric}/links/l1`)
    expect(body.data).toMatchObject({ id: 'l1', staticCost: 7, down: true, state: 'Connected' })
    expect((await root.call('DELETE', `${fabric}/links/l1`)).status).toBe(200)
    expect((await root.call('DELETE', `${fabric}/links/l1`)).status).toBe(404)
    expect((await root.get(`${fabric}/links/l1`)).status).toBe(404)
    expect((await root.call('PATCH', `${fabric}/links/l1`, { down: true })).status).toBe(404)
    expect(links.list().map(({ id }) => id)).toEqual(['l2'])
  })
})

describe('circuits in the live table of a controller', () => {
  const circuit = (id: string, sessionId: string, createdAt: number, routerIds: string[]) => {
    const ends = { id, ingress: 'in', egress: 'out' }
    const of = { clientId: 'i1', sessionId, serviceId: 's1', terminatorId: 't1', createdAt }
    return controller.live.circuits.set(id, {
      live: of,
      ends,
      hostId: 'i2',
      instanceId: '',
      isOfTunnel: false,
      isHostedByTunnel: false,
      turn: 0,
      path: { routerIds, links: [], cost: 1 },
    })
  }

  test('can be listed, shown and deleted', async () => {
    circuit('c1', 'session', 1000, ['er1', 'er2'])
    expect(await idsOf('circuits')).toEqual(['c1'])
    const { body } = await root.get(`${fabric}/circuits/c1`)
    expect(body.data).toMatchObject({ path: { nodes: [{ id: 'er1' }, { id: 'er2' }], links: [] } })
    const ended = await root.call('DELETE', `${fabric}/circuits/c1`, { immediate: true })
    expect(ended.status, ended.text).toBe(200)
    expect((await root.call('DELETE', `${fabric}/circuits/c1`)).status).toBe(404)
    expect(await idsOf('circuits')).toEqual([])
  })
})

test('a live table that is full refuses new rows, but still updates its existing rows', () => {
  const removed: string[] = []
  const rows = new LiveRowTable<{ id: string; n: number }, { id: string; n: number }>({
    owner: 'ctrl1',
    rowsMax: 2,
    viewOf: (row) => row,
    onRemoved: ({ id }, isImmediate) => removed.push(`${id} ${isImmediate}`),
  })
  expect([rows.set('a', { id: 'a', n: 1 }), rows.set('b', { id: 'b', n: 1 })]).toEqual([true, true])
  expect(rows.isFull).toBe(true)
  expect(rows.set('c', { id: 'c', n: 1 })).toBe(false)
  expect(rows.set('a', { id: 'a', n: 2 })).toBe(true)
  expect(rows.get('a')).toEqual({ id: 'a', n: 2 })
  expect([rows.remove('a', true), rows.remove('a'), rows.remove('b')]).toEqual([true, false, true])
  expect(removed).toEqual(['a true', 'b false'])
  expect([rows.list(), rows.owner, rows.rowsMax]).toEqual([[], 'ctrl1', 2])
})
