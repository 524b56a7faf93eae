import { expect, test } from 'vitest'

import { groupEvents, namesInRun } from '../../src/console/pages/events/event-runs.ts'

// Goal: one cause is one row among the live events, whatever number of events it has.

let next = 0
const event = (namespace: string, second: number, fields: Record<string, unknown>) => ({
  id: `e${(next += 1)}`,
  namespace,
  timestamp: `2026-11-01T00:00:${String(second).padStart(2, '0')}.000Z`,
  fields,
})
const offline = (namespace: string, router: string, second = 10) =>
  event(namespace, second, { event_type: 'router-offline', router_id: router })
const shapes = (events: readonly ReturnType<typeof event>[]) =>
  groupEvents(events).map((run) => [run.first.namespace, run.events.length])

test('the terminators and the links of a router go offline in one row with the router', () => {
  const link = event('link', 10, { event_type: 'fault', src_router_id: 'r1', dst_router_id: 'r3' })
  const rows = [offline('terminator', 'r3'), offline('terminator', 'r3'), offline('router', 'r3')]
  expect(shapes([...rows, link, offline('terminator', 'r2')])).toEqual([
    ['router', 4],
    ['terminator', 1],
  ])
})

test('events of two kinds that alternate within two seconds form one row for each kind', () => {
  const connect = () => event('connect', 10, { dst_type: 'router' })
  const online = () => event('sdk', 11, { event_type: 'sdk-online' })
  expect(shapes([online(), connect(), online(), connect(), online(), connect()])).toEqual([
    ['sdk', 3],
    ['connect', 3],
  ])
})

test('two similar events, or similar events that are ten seconds apart, stay in separate rows', () => {
  expect(shapes([offline('terminator', 'r1'), offline('terminator', 'r1')])).toHaveLength(2)
  const apart = [30, 20, 10].map((second) => offline('terminator', 'r1', second))
  expect(shapes(apart)).toHaveLength(3)
})

test('events of several controllers are listed by their time, newest first, even if they arrived in another order', () => {
  const [late, early, middle] = [30, 10, 20].map((second) =>
    offline('router', `r${second}`, second),
  )
  const rows = groupEvents([late, early, middle].filter((one) => one !== undefined))
  expect(rows.map(({ first }) => first)).toEqual([late, middle, early])
})

test('a row for several events names their records, or the controllers that they are about', () => {
  const lost = (id: string) =>
    event('cluster', 10, { eventType: 'peer.disconnected', peers: [{ id }], leaderId: 'ctrl1' })
  const peers = [lost('ctrl3'), lost('ctrl2'), lost('ctrl3')]
  expect(namesInRun(peers, new Map())).toEqual(['ctrl2', 'ctrl3'])
  const connect = event('connect', 10, { src_type: 'peer', src_id: 'ctrl2', dst_type: 'ctrl' })
  expect(namesInRun([connect, connect], new Map())).toEqual(['ctrl2'])
  const online = ['r2', 'r1', 'r9'].map((router) =>
    event('router', 10, { event_type: 'router-online', router_id: router }),
  )
  const names = new Map([
    ['edge-routers/r1', 'router1'],
    ['edge-routers/r2', 'router2'],
  ])
  expect(namesInRun(online, names)).toEqual(['router1', 'router2'])
})
