import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'

import {
  LinkStanding,
  TerminatorStanding as Standing,
  ValidateAllTerminatorsSchema,
  ValidatedHostSchema,
  ValidatedRouterCircuitsSchema,
  ValidatedRouterLinksSchema,
  ValidatedTerminatorDetailSchema,
  ValidateRoutersSchema,
  ValidationStartSchema,
} from '../../proto/gen/management_pb.ts'
import type { LiveTable, LiveCircuit } from '../../src/ports/live-table.ts'
import type { RouterInspections, ReportedTerminator } from '../../src/ports/router-inspections.ts'
import { liveTables } from '../api/support/live-tables.ts'
import { type CallerOf, management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { made, newIdentity, newService } from '../api/support/network.ts'
import { eventually } from '../support/eventually.ts'
import { WebSocketClient } from './web-socket-client.ts'

// Goal: `ziti fabric validate` shows the state of routers and of this controller, and repairs
// nothing unless this is requested. Method: the messages of its web socket; the test sends the
// reports of the routers.

const { links, channels } = liveTables('ctrl1')
const laid: LiveCircuit[] = []
const circuits: LiveTable<LiveCircuit> = {
  owner: 'ctrl1',
  size: 0,
  rowsMax: 10,
  list: () => laid,
  get: (id) => laid.find((circuit) => circuit.id === id),
  remove: () => false,
}
let values: Record<string, Record<string, unknown>> = {}
let standings: Record<string, ReportedTerminator> | null = {}
/** Terminator IDs in each request to a router, in order. */
let questions: string[][] = []
let wasFixing = false
const routerInspections: RouterInspections = {
  own: {},
  inspect: (routerId, names) => {
    const own = values[routerId]
    if (own === undefined) return Promise.resolve({ values: [], errors: [`${routerId}: silent`] })
    const told = names.flatMap((name) => (name in own ? [{ name, value: own[name] }] : []))
    return Promise.resolve({ values: told, errors: [] })
  },
  terminators: (_routerId, asked, isFixing) => {
    questions.push(asked.map(({ id }) => id))
    wasFixing = isFixing
    if (standings === null) return Promise.resolve(null)
    return Promise.resolve(new Map(Object.entries(standings)))
  },
}
const { controller, root, sessionOf } = await controllerForFile({}, undefined, {
  routerInspections,
  links,
  circuits,
  channels,
})
await controller.app.listen({ host: '127.0.0.1', port: 0 })
const { port } = controller.app.server.address() as { port: number }
const sockets: WebSocketClient[] = []
afterAll(() => {
  for (const one of sockets) one.socket.destroy()
})
beforeEach(() => {
  // Closes the web sockets, because a caller may have only a few open.
  for (const one of sockets.splice(0)) one.socket.destroy()
  values = {}
  standings = {}
  questions = []
})

function opened(caller: CallerOf): WebSocketClient {
  const one = new WebSocketClient({ port, host: '127.0.0.1' }, caller.token)
  sockets.push(one)
  return one
}

/** Results of a validation, after all of them have arrived. */
async function answered(one: WebSocketClient, kind: number, body: Uint8Array, more = 0) {
  const before = one.messages.length
  one.ask(body, kind)
  await eventually(() => expect(one.messages.length).toBeGreaterThan(before))
  const first = one.messages[before]
  expect(first?.contentType).toBe(kind + 1)
  const start = fromBinary(ValidationStartSchema, first?.body ?? new Uint8Array())
  const wanted = before + 1 + Number(start.count) + more
  await eventually(() => expect(one.messages).toHaveLength(wanted))
  return { ...start, findings: one.messages.slice(before + 1) }
}

async function terminatorsBy(
  asked: MessageInitShape<typeof ValidateAllTerminatorsSchema>,
  more = 0,
  caller = root,
) {
  const question = create(ValidateAllTerminatorsSchema, asked)
  const body = toBinary(ValidateAllTerminatorsSchema, question)
  const { findings, ...start } = await answered(opened(caller), 10_100, body, more)
  return {
    ...start,
    terminators: findings
      .filter(({ contentType }) => contentType === 10_102)
      .map((one) => fromBinary(ValidatedTerminatorDetailSchema, one.body)),
    hosts: findings
      .filter(({ contentType }) => contentType === 10_121)
      .map((one) => fromBinary(ValidatedHostSchema, one.body)),
  }
}

const ofRouters = (filter: string): Uint8Array =>
  toBinary(ValidateRoutersSchema, create(ValidateRoutersSchema, { filter }))

async function linksBy(filter = '', caller = root) {
  const { findings, ...start } = await answered(opened(caller), 10_103, ofRouters(filter))
  return {
    ...start,
    routers: findings.map(({ body }) => fromBinary(ValidatedRouterLinksSchema, body)),
  }
}

async function circuitsBy(filter = '', caller = root) {
  const { findings, ...start } = await answered(opened(caller), 10_118, ofRouters(filter))
  return {
    ...start,
    routers: findings.map(({ body }) => fromBinary(ValidatedRouterCircuitsSchema, body)),
  }
}

const newRouter = (name: string): Promise<string> =>
  made(root, `${management}/edge-routers`, { name })
const isThere = async (id: string): Promise<boolean> =>
  (await root.get(`${management}/terminators/${id}`)).status === 200
const connect = (id: string): void => {
  channels.set(id, { id, name: id, connectedAt: 0, address: '', version: '' })
}

describe('validating terminators through events', async () => {
  const service = await newService(root, 'wiki')
  const router = await newRouter('hosting')
  const hosted = (address: string): Promise<string> =>
    made(root, `${management}/terminators`, { service, router, binding: 'transport', address })
  const [one, two] = [await hosted('tcp:one:80'), await hosted('tcp:two:80')]
  const both = `id in ["${one}","${two}"]`

  test('reports each terminator with the state that its router reports, and removes none', async () => {
    standings = {
      [one]: { state: 'valid', detail: 'well' },
      [two]: { state: 'unknownBinding', detail: '' },
    }
    const { success, count, terminators } = await terminatorsBy({ terminatorsFilter: both })
    expect([success, count]).toEqual([true, 2n])
    expect(questions).toEqual([[one, two].sort()])
    expect(wasFixing).toBe(false)
    const byId = Object.fromEntries(terminators.map((found) => [found.terminatorId, found]))
    expect(byId[one]).toMatchObject({
      serviceId: service,
      serviceName: 'wiki',
      routerId: router,
      routerName: 'hosting',
      binding: 'transport',
      address: 'tcp:one:80',
      state: Standing.VALID,
      fixed: false,
      detail: 'well',
    })
    expect(byId[two]).toMatchObject({ state: Standing.UNKNOWN_BINDING_THERE, fixed: false })
    expect(await isThere(two)).toBe(true)
  })

  test('reports terminators as unknown if their router is disconnected or does not respond', async () => {
    const said = await terminatorsBy({ terminatorsFilter: both, fixInvalid: true })
    const unknown = { state: Standing.UNKNOWN, fixed: false }
    const inTime = { ...unknown, detail: 'the router did not say in time' }
    expect(said.terminators).toMatchObject([inTime, inTime])
    standings = null
    const away = await terminatorsBy({ terminatorsFilter: both, fixInvalid: true })
    const detail = 'the router is not connected to ctrl1'
    expect(away.terminators).toMatchObject([unknown, { ...unknown, detail }])
    expect([await isThere(one), await isThere(two)]).toEqual([true, true])
  })

  test('counts terminators by host, and compares the count with an expected number if one is given', async () => {
    const host = await newIdentity(root, 'host of nothing')
    const byHost = await terminatorsBy(
      { terminatorsFilter: both, identitiesFilter: `id="${host}"`, expectedPerHost: 1 },
      1,
    )
    const message = 'expected 1 terminators, but had 0'
    expect(byHost.hosts).toMatchObject([{ identityId: host, serviceId: '', message }])
    const byService = await terminatorsBy(
      { terminatorsFilter: both, expectedPerServiceAndHost: 3 },
      1,
    )
    const two = 'expected 3 terminators, but had 2'
    expect(byService.hosts).toMatchObject([{ serviceId: service, message: two }])
    const right = await terminatorsBy({ terminatorsFilter: both, expectedPerServiceAndHost: 2 })
    expect(right.hosts).toEqual([])
  })

  test('covers all terminators of a router, even if they require more than one request to the router', async () => {
    const many = await newRouter('hosting many')
    const address = 'tcp:many:80'
    const body = { service, router: many, binding: 'transport', address }
    for (let at = 0; at < 51; at += 1) await made(root, `${management}/terminators`, body)
    const { count } = await terminatorsBy({ terminatorsFilter: `router.name="hosting many"` })
    expect(count).toBe(51n)
    expect(questions.map(({ length }) => length)).toEqual([50, 1])
  })

  test('deletes, if the caller requests it, terminators that their router does not know, and the audit log names the caller as the actor', async () => {
    standings = {
      [one]: { state: 'valid', detail: '' },
      [two]: { state: 'unknownTerminator', detail: 'gone' },
    }
    const { terminators } = await terminatorsBy({ terminatorsFilter: both, fixInvalid: true })
    expect(wasFixing).toBe(true)
    const found = terminators.find(({ terminatorId }) => terminatorId === two)
    expect(found).toMatchObject({
      state: Standing.UNKNOWN_TERMINATOR_THERE,
      fixed: true,
      detail: 'gone',
    })
    expect([await isThere(one), await isThere(two)]).toEqual([true, false])
    const [told] = (await controller.machine.listAudit({ limit: 1 })).records
    expect(told).toMatchObject({ action: 'delete', entityId: two, actor: 'admin-id' })
  })

  test('requires an administrator', async () => {
    const id = await newIdentity(root, 'reader of terminators', {
      permissions: ['ops.read', 'terminator.read'],
    })
    const refused = await terminatorsBy({}, 0, sessionOf(id))
    expect(refused).toMatchObject({ success: false, count: 0n })
    expect(refused.message).toContain('by administrators')
    expect(questions).toEqual([])
  })
})

describe('validating links and circuits through events', async () => {
  const [er1, er2, er3] = [await newRouter('r1'), await newRouter('r2'), await newRouter('r3')]
  const three = `id in ["${er1}","${er2}","${er3}"]`
  for (const id of [er1, er2]) connect(id)
  const reported = (id: string, to: string, socket: string) => ({
    id,
    destRouterId: to,
    protocol: 'tls',
    dialAddress: 'tls:there:6000',
    iteration: 1,
    connections: [{ type: 'link', sourceAddress: socket, destAddress: 'there:2' }],
  })

  test('compares the controller’s records with the links and circuits that the routers report', async () => {
    for (const [id, to] of [
      ['same', er2],
      ['lost', er2],
      ['away', er3],
    ] as const) {
      links.report(er1, reported(id, to, 'here:1'))
    }
    const socket = { Type: 'link', Source: 'here:1', Dest: 'there:2' }
    values[er1] = {
      links: {
        links: [
          { id: 'same', dest: er2, dialed: true, connections: [socket] },
          { id: 'away', dest: er3, dialed: true },
          { id: 'unknown', dest: er2, dialed: false },
          { id: 'unseen', dest: er3, dialed: false },
          'no link',
        ],
      },
    }
    const { count, routers } = await linksBy(three)
    expect(count).toBe(3n)
    const of = new Map(routers.map((router) => [router.routerId, router]))
    expect(of.get(er1)).toMatchObject({ routerName: 'r1', success: true, message: '' })
    const found = Object.fromEntries((of.get(er1)?.links ?? []).map((each) => [each.linkId, each]))
    const [here, none] = [LinkStanding.LINK_ESTABLISHED, LinkStanding.LINK_UNKNOWN]
    const both = { controllerState: here, routerState: here }
    expect(found['same']).toMatchObject({ ...both, isValid: true, isDialed: true, messages: [] })
    expect(found['away']).toMatchObject({ ...both, isValid: false, isPeerConnected: false })
    expect(found['unknown']).toMatchObject({ controllerState: none, isValid: false })
    expect(found['unseen']).toMatchObject({ controllerState: none, isValid: true })
    expect(found['lost']).toMatchObject({ routerState: none, isValid: false, peerRouterId: er2 })
    const silent = { success: false, message: `${er2}: silent`, links: [] }
    expect(of.get(er2)).toMatchObject(silent)
    const away = { success: false, message: 'the router is not connected to ctrl1' }
    expect(of.get(er3)).toMatchObject(away)
  })

  test('reports the sockets of both sides if a router has other sockets for a link than the controller', async () => {
    const socket = { Type: 'link', Source: 'here:9', Dest: 'there:2' }
    values[er1] = {
      links: { links: [{ id: 'same', dest: er2, dialed: true, connections: [socket] }] },
    }
    const { routers } = await linksBy(`id="${er1}"`)
    const same = routers[0]?.links.find(({ linkId }) => linkId === 'same')
    expect(same?.isValid).toBe(false)
    expect(same?.messages).toHaveLength(1)
    expect(same?.messages[0]).toContain('here:9')
    expect(same?.messages[0]).toContain('here:1')
  })

  test('searches for each circuit in the router’s forwarder, its listeners and its client connections', async () => {
    for (const id of ['whole', 'unrouted', 'half']) {
      laid.push({
        id,
        clientId: 'c',
        sessionId: 's',
        serviceId: 'v',
        terminatorId: 't',
        createdAt: 1,
        routerIds: [er1, er2],
        linkIds: [],
      })
    }
    const own = { ctrlId: 'ctrl1' }
    const toClient = { a: 'xg-edge-fwd', b: 'link' }
    values[er1] = {
      'router-circuits': {
        circuits: {
          whole: { ...own, destinations: { a: 'end', b: 'link' } },
          half: { ...own, destinations: toClient },
          foreign: { ctrlId: 'ctrl2', destinations: {} },
          left: { ...own, destinations: {} },
        },
      },
      'router-edge-circuits': { circuits: { 'er1-half': { ...own, circuitId: 'half' } } },
    }
    const { routers } = await circuitsBy(`id="${er1}"`)
    expect(routers[0]).toMatchObject({ success: true, routerName: 'r1' })
    const found = routers[0]?.circuits ?? {}
    expect(Object.keys(found).sort()).toEqual(['half', 'left', 'unrouted', 'whole'])
    const nothing = {
      isMissingInController: false,
      isMissingInForwarder: false,
      isMissingInEdge: false,
      isMissingInClient: false,
    }
    expect(found['whole']).toMatchObject(nothing)
    expect(found['half']).toMatchObject({
      ...nothing,
      isMissingInClient: true,
      destinations: toClient,
    })
    expect(found['unrouted']).toMatchObject({ ...nothing, isMissingInForwarder: true })
    expect(found['left']).toMatchObject({ ...nothing, isMissingInController: true })
  })

  test('reports no circuit as missing if the router lists only some of its circuits', async () => {
    values[er1] = { 'router-circuits': { circuits: { whole: { ctrlId: 'ctrl1' } }, omitted: 7 } }
    const { routers } = await circuitsBy(`id="${er1}"`)
    expect(Object.keys(routers[0]?.circuits ?? {})).toEqual(['whole'])
    expect(routers[0]).toMatchObject({ success: false })
    expect(routers[0]?.message).toContain('shows 1 circuits and has 8')
  })

  test('is possible with the permission to read events, and a filter on records requires an administrator', async () => {
    const watcher = sessionOf(await newIdentity(root, 'watcher', { permissions: ['ops.read'] }))
    expect((await linksBy('', watcher)).success).toBe(true)
    expect((await circuitsBy('', watcher)).success).toBe(true)
    for (const by of [linksBy, circuitsBy]) {
      const refused = await by('isVerified=true', watcher)
      expect(refused).toMatchObject({ success: false, count: 0n })
      expect(refused.message).toContain('filters are for administrators')
    }
  })

  test('fails if the filter or the message is invalid, but does not close the connection', async () => {
    const wrong = await linksBy('nonsense = 1')
    expect(wrong.success).toBe(false)
    expect(wrong.message).toContain('nonsense')
    const one = opened(root)
    const broken = await answered(one, 10_103, Uint8Array.of(0x0a, 0xff))
    expect(broken.success).toBe(false)
    // The connection stays open, and accepts another request.
    expect((await answered(one, 10_103, ofRouters(three))).success).toBe(true)
  })

  test('is done one at a time on an event connection', async () => {
    const one = opened(root)
    one.ask(ofRouters(three), 10_103)
    one.ask(ofRouters(three), 10_118)
    const starts = () =>
      one.messages
        .filter(({ contentType }) => [10_104, 10_119].includes(contentType))
        .map(({ body }) => fromBinary(ValidationStartSchema, body))
    await eventually(() => expect(starts()).toHaveLength(2))
    expect(
      starts()
        .map(({ success }) => success)
        .sort(),
    ).toEqual([false, true])
    const refused = starts().find(({ success }) => !success)
    expect(refused?.message).toContain('under way')
  })
})
