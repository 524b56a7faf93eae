import { afterAll, expect, test } from 'vitest'

import { fabric, management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { eventually } from '../support/eventually.ts'
import { EventTap } from './tap.ts'

const { controller, root, sessionOf } = await controllerForFile()
const url = await controller.app.listen({ host: '127.0.0.1', port: 0 })
const taps: EventTap[] = []
afterAll(() => {
  for (const tap of taps) tap.close()
})

async function tap(
  query = '',
  headers: Readonly<Record<string, string>> = {},
  token = root.token ?? '',
): Promise<EventTap> {
  const opened = await EventTap.open(`${url}${fabric}/events${query}`, {
    'net-session': token,
    ...headers,
  })
  taps.push(opened)
  return opened
}

async function createService(name: string): Promise<string> {
  const reply = await root.call('POST', `${management}/services`, {
    name,
    encryptionRequired: false,
  })
  expect(reply.status).toBe(201)
  return (reply.body.data as { id: string }).id
}

test('an event stream begins with its log position, and sends an event for a record that is written', async () => {
  const stream = await tap('?namespaces=entityChange')
  expect(stream.status).toBe(200)
  expect(stream.headers['content-type']).toBe('text/event-stream')
  await eventually(() => expect(stream.of('ready')).toHaveLength(1))
  const id = await createService('first')
  await eventually(() => expect(stream.events).toHaveLength(2))
  const [created, committed] = stream.events
  expect(created).toMatchObject({
    namespace: 'entityChange',
    event_src_id: 'ctrl1',
    eventType: 'created',
    entityType: 'services',
    finalState: { id, name: 'first' },
    metadata: { author: { type: 'identity', id: 'admin-id' }, source: { type: 'rest' } },
  })
  expect(created?.['initialState']).toBeUndefined()
  expect(committed).toMatchObject({ eventType: 'committed', eventId: created?.['eventId'] })
})

test('a client that reconnects to an event stream receives each missed event once', async () => {
  const first = await tap('?namespaces=entityChange')
  await eventually(() => expect(first.of('ready')).toHaveLength(1))
  await createService('before')
  await eventually(() => expect(first.events).toHaveLength(2))
  first.close()
  await createService('meanwhile')
  const again = await tap('?namespaces=entityChange', { 'last-event-id': first.lastId })
  await createService('afterwards')
  await eventually(() => expect(again.events.length).toBeGreaterThanOrEqual(4))
  const names = again.events.flatMap(({ finalState }) =>
    finalState === undefined ? [] : [(finalState as { name: string }).name],
  )
  expect(names).toEqual(['meanwhile', 'afterwards'])
  expect(again.of('gap')).toEqual([])
})

test('an event stream sends a gap event to a client whose last event is older than all events in the event ring', async () => {
  const stream = await tap('?namespaces=entityChange', { 'last-event-id': '3:0:1' })
  await eventually(() => expect(stream.of('gap')).toHaveLength(1))
  const other = await tap('?namespaces=entityChange', { 'last-event-id': '2:100000:1' })
  await eventually(() => expect(other.of('gap')).toHaveLength(1))
})

test('an event stream ends with its session, and its last message contains the reason', async () => {
  const caller = sessionOf('admin-id')
  const stream = await tap('?namespaces=entityChange,apiSession', {}, caller.token ?? '')
  await eventually(() => expect(stream.of('ready')).toHaveLength(1))
  expect((await caller.call('DELETE', `${management}/current-api-session`)).status).toBe(200)
  await eventually(() => expect(stream.isEnded).toBe(true))
  expect(stream.of('closed')).toEqual([{ reason: 'the session has ended' }])
  expect(stream.events).toEqual([])
})

test('record events require an administrator, and other events require a permission', async () => {
  const reply = await root.call('POST', `${management}/identities`, {
    name: 'watcher',
    type: 'Default',
    isAdmin: false,
    permissions: ['ops.read'],
  })
  const watcher = sessionOf((reply.body.data as { id: string }).id)
  const allowed = await tap('', {}, watcher.token ?? '')
  expect(allowed.status).toBe(200)
  expect((await tap('?namespaces=entityChange', {}, watcher.token ?? '')).status).toBe(401)
  expect((await tap('', {}, sessionOf('alice-id').token ?? '')).status).toBe(401)
  await eventually(() => expect(allowed.of('ready')).toHaveLength(1))
  await createService('unseen')
  controller.events.publishFact({ kind: 'router', routerId: 'r1', isOnline: true })
  const seen = (namespace: string): object[] =>
    allowed.events.filter((event) => event['namespace'] === namespace)
  await eventually(() => expect(seen('router')).toHaveLength(1))
  expect(seen('router')[0]).toMatchObject({ event_type: 'router-online', router_id: 'r1' })
  expect(seen('entityChange')).toEqual([])
})

test('a caller can open a limited number of event streams', async () => {
  const caller = sessionOf('admin-id')
  const statuses: number[] = []
  for (let count = 0; count < 12; count += 1) {
    statuses.push((await tap('', {}, caller.token ?? '')).status)
  }
  expect(statuses).toContain(429)
})

test('the slot of an event stream is released even if its response is never sent', async () => {
  const { streams } = controller.events
  const filter = { namespaces: new Set(['router'] as const), metrics: null, sources: null }
  const reader = {
    identityId: 'somebody',
    after: null,
    refusal: () => null,
    filter: { ...filter, entityTypes: null },
  }
  const opened = []
  for (; streams.hasRoomFor('somebody');) opened.push(streams.open(reader))
  expect(opened.length).toBeGreaterThan(1)
  await opened[0]?.chunks[Symbol.asyncIterator]().return?.()
  expect(streams.hasRoomFor('somebody')).toBe(true)
  for (const one of opened) await one.chunks[Symbol.asyncIterator]().return?.()
})

test('an event stream is refused if its query or its last event ID is invalid', async () => {
  expect((await tap('?namespaces=nonsense')).status).toBe(400)
  expect((await tap('?entityTypes=nonsense')).status).toBe(400)
  expect((await tap('?metricFilter=(a%2B)%2B')).status).toBe(400)
  expect((await tap('', { 'last-event-id': 'nonsense' })).status).toBe(400)
  expect((await tap('', { 'last-event-id': '9:1:1' })).status).toBe(503)
})
