import { expect, test } from 'vitest'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import type { RouterStatus as RouterStatusMessage } from '../../proto/gen/soft_pb.ts'
import { RouterPresenceLog } from '../../src/fabric/router-presence-log.ts'
import { RouterStatusTopic, routerStatusMessage } from '../../src/fabric/router-status-topic.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { LocalTopic } from '../api/support/local-topic.ts'
import { listed, made, shown } from '../api/support/network.ts'
import { management } from '../api/support/caller.ts'

const { controller, root } = await controllerForFile()
const { clock, machine, cluster } = controller
const edgeRouters = `${management}/edge-routers`
const minute = 60_000
const version = { version: 'v1', revision: '', buildDate: '', os: '', arch: '' }
const status = {
  hostname: 'edge',
  protocols: {},
  version,
  capabilities: [],
  linkListeners: [],
  interfaces: [],
}

/** The routers as a controller that has just started knows them, with its presence log. */
function started() {
  const topic = new LocalTopic<RouterStatusMessage>('ctrl1')
  const statuses = new RouterStatusTopic('ctrl1', topic, clock)
  machine.routers = statuses
  const log = new RouterPresenceLog({
    statuses,
    state: {
      get featureLevel() {
        return machine.featureLevel
      },
      routers: () => [...machine.ids('router')].flatMap((id) => machine.get('router', id) ?? []),
    },
    proposer: cluster,
    isLeader: () => cluster.hasLeader,
    clock,
    log: controller.parts.logger,
  })
  return {
    log,
    connect: (id: string) => topic.hear('ctrl2', id, routerStatusMessage(status, clock.nowMs())),
    disconnect: (id: string) => topic.hear('ctrl2', id, undefined),
  }
}

const entries = (): number =>
  cluster.proposals.filter(({ kind }) => kind === CommandKind.ROUTER_PRESENCE).length
const text = (ms: number): string => new Date(ms).toISOString()
async function presence(id: string): Promise<unknown> {
  const { onlineSince, offlineSince } = await shown(root, `${edgeRouters}/${id}`)
  return { onlineSince, offlineSince }
}
const named = async (filter: string): Promise<unknown[]> =>
  (await listed(root, `${edgeRouters}?filter=${encodeURIComponent(filter)}`)).map(
    ({ name }) => name,
  )

const routerId = await made(root, edgeRouters, { name: 'berlin', isTunnelerEnabled: false })
await made(root, edgeRouters, { name: 'never connected', isTunnelerEnabled: false })
const first = started()
let onlineMs = 0
let offlineMs = 0

test('a router that never connected has neither an online-since nor an offline-since time', async () => {
  await first.log.write()
  expect(await presence(routerId)).toEqual({ onlineSince: null, offlineSince: null })
  expect(entries()).toBe(0)
})

test('a router shows its online-since time immediately, and the leader stores the time once', async () => {
  onlineMs = clock.nowMs()
  first.connect(routerId)
  clock.advance(5000)
  const online = { onlineSince: text(onlineMs), offlineSince: null }
  expect(await presence(routerId)).toEqual(online)
  cluster.hasLeader = false
  await first.log.write()
  expect(entries()).toBe(0)
  cluster.hasLeader = true
  await first.log.write()
  clock.advance(minute)
  await first.log.write()
  expect(entries()).toBe(1)
  expect(machine.get('router', routerId)).toMatchObject({ onlineSince: onlineMs })
  expect(await presence(routerId)).toEqual(online)
})

test('a router shows its offline-since time immediately, and the leader stores the time once', async () => {
  const { revision, updatedAt } = machine.get('router', routerId) ?? {}
  offlineMs = clock.nowMs()
  first.disconnect(routerId)
  clock.advance(5000)
  const offline = { onlineSince: null, offlineSince: text(offlineMs) }
  expect(await presence(routerId)).toEqual(offline)
  await first.log.write()
  clock.advance(minute)
  await first.log.write()
  expect(entries()).toBe(2)
  // An administrator who is editing the router at this time can still save.
  const stored = { revision, updatedAt, onlineSince: null, offlineSince: offlineMs }
  expect(machine.get('router', routerId)).toMatchObject(stored)
})

test('routers can be filtered and sorted by their online-since and offline-since times', async () => {
  const other = await made(root, edgeRouters, { name: 'paris', isTunnelerEnabled: false })
  clock.advance(minute)
  const connectedMs = clock.nowMs()
  first.connect(other)
  clock.advance(minute)
  first.disconnect(other)
  expect(await named('offlineSince != null sort by offlineSince desc')).toEqual(['paris', 'berlin'])
  expect(await named(`offlineSince < datetime(${text(connectedMs)})`)).toEqual(['berlin'])
  first.connect(other)
  expect(await named('onlineSince != null')).toEqual(['paris'])
  first.disconnect(other)
})

test('the offline-since time of a router survives a restart of all controllers', async () => {
  clock.advance(minute)
  await started().log.write()
  expect(await presence(routerId)).toEqual({ onlineSince: null, offlineSince: text(offlineMs) })
})

test('a router that does not reconnect after a restart of all controllers is shown as offline once routers had time to connect', async () => {
  const before = started()
  before.connect(routerId)
  await before.log.write()
  const { log } = started()
  await log.write()
  clock.advance(minute)
  await log.write()
  expect(await presence(routerId)).toEqual({ onlineSince: null, offlineSince: null })
  clock.advance(minute)
  await log.write()
  expect(await presence(routerId)).toEqual({
    onlineSince: null,
    offlineSince: text(clock.nowMs()),
  })
})

test('a router that stays connected during a restart of all controllers keeps its earlier online-since time', async () => {
  const before = started()
  before.connect(routerId)
  const sinceMs = clock.nowMs()
  await before.log.write()
  clock.advance(minute)
  const { log, connect } = started()
  connect(routerId)
  await log.write()
  expect(await presence(routerId)).toEqual({ onlineSince: text(sinceMs), offlineSince: null })
})

test('a router’s short outage between two stored updates changes its online-since time', async () => {
  const { log, connect, disconnect } = started()
  connect(routerId)
  await log.write()
  clock.advance(1000)
  disconnect(routerId)
  clock.advance(1000)
  connect(routerId)
  const returned = { onlineSince: text(clock.nowMs()), offlineSince: null }
  expect(await presence(routerId)).toEqual(returned)
  clock.advance(1000)
  await log.write()
  started()
  expect(machine.get('router', routerId)?.onlineSince).toBe(Date.parse(returned.onlineSince))
})
