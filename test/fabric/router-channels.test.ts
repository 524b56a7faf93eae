import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import type { TLSSocket } from 'node:tls'
import { afterEach, describe, expect, test } from 'vitest'

import {
  ClientHelloSchema,
  InterfacesSchema,
  UpdateClusterLeaderSchema,
  UpdateCtrlAddressesSchema,
} from '../../proto/gen/router_pb.ts'
import { encodeFlag, encodeInt32, readInt32, encodeText } from '../../src/channel/headers.ts'
import type { ChannelMessage } from '../../src/channel/frame.ts'
import { defaultApiLimits } from '../../src/api/limits.ts'
import { ProcessorShare } from '../../src/lib/bounds/processor-share.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { RouterStatus } from '../../proto/gen/soft_pb.ts'
import type { AdmittedRouter, RouterAdmission } from '../../src/fabric/router-admission.ts'
import type { ClusterAddresses } from '../../src/channel/messages/control.ts'
import { RouterChannels } from '../../src/fabric/router-channels.ts'
import { RouterStatusTopic } from '../../src/fabric/router-status-topic.ts'
import { LocalTopic } from '../api/support/local-topic.ts'
import { ManualFeed } from '../support/manual-feed.ts'
import { Pipe, settle } from '../channel/pipe.ts'

const version = 'v2.0.3|abc|2026-01-01|linux|amd64'
const er1: AdmittedRouter = { id: 'er1', name: 'gate', isEdge: true, certPem: 'pem 1' }

const keySha256 = (byte: number): Uint8Array => new Uint8Array(32).fill(byte)

function notNull(): never {
  throw new Error('it is set')
}

/** Index, whether the list is interim, and addresses of the lists that a router received. */
const lists = (pipe: Pipe) =>
  pipe
    .ofType(1037)
    .map(({ body }) => fromBinary(UpdateCtrlAddressesSchema, body))
    .map(({ index, isInterim, addresses }) => [index, isInterim, ...addresses])

class Stage {
  admission: RouterAdmission = { ok: true, router: er1 }
  judge: () => RouterAdmission = () => this.admission
  revoked: string | null = null
  addresses: ClusterAddresses | null = {
    controllers: [
      { id: 'ctrl1', addresses: ['tls:one:1380'], clientApis: [], publicKeySha256: keySha256(1) },
      { id: 'ctrl2', addresses: ['tls:two:1380'], clientApis: [], publicKeySha256: keySha256(2) },
    ],
    removed: [],
    index: 7,
    configurationIndex: 7,
    isLeader: false,
  }
  leaderIndex: number | null = null
  unreachable: readonly string[] = []
  /** Added to the clock. */
  passedMs = 0
  readonly lines: string[] = []
  readonly feed = new ManualFeed()
  readonly statuses = new RouterStatusTopic(
    'ctrl1',
    new LocalTopic<RouterStatus>('ctrl1'),
    systemClock,
  )
  readonly channels = new RouterChannels({
    identity: {
      id: 'ctrl1',
      clusterId: 'cluster-1',
      version: { version: 'v2.0.0', revision: 'r', buildDate: 'd', os: 'linux', arch: 'x64' },
    },
    gate: {
      admit: () => this.judge(),
      revoked: () => (this.revoked === null ? null : { reason: this.revoked, endsLinks: true }),
    },
    cluster: {
      addresses: () => this.addresses,
      leaderIndex: () => this.leaderIndex,
      unreachable: () => this.unreachable,
    },
    statuses: this.statuses,
    feed: this.feed,
    clock: {
      ...systemClock,
      monotonicMs: () => systemClock.monotonicMs() + this.passedMs,
    },
    processor: new ProcessorShare(defaultApiLimits, systemClock),
    log: {
      info: (fields, message) => this.lines.push(`${message} ${String(fields['reason'] ?? '')}`),
      warn: (fields, message) => this.lines.push(`${message} ${String(fields['reason'] ?? '')}`),
    },
  })

  async dial(changes: Partial<ChannelMessage> = {}): Promise<Pipe> {
    const pipe = new Pipe()
    this.channels.accept(pipe as unknown as TLSSocket)
    const headers = new Map([
      [4, encodeText(version)],
      [7, encodeText('ctrl.default')],
      [9, encodeFlag(true)],
      [11, encodeFlag(true)],
    ])
    pipe.say({ contentType: 0, sequence: -1, headers, body: encodeText('er1'), ...changes })
    await settle()
    return pipe
  }
}

/** The list of a leader in a cluster of three. */
function threeControllers(): ClusterAddresses {
  const controllers = ['one', 'two', 'three'].map((name, at) => ({
    id: `ctrl${at + 1}`,
    addresses: [`tls:${name}:1380`],
    clientApis: [],
    publicKeySha256: keySha256(at + 1),
  }))
  return { controllers, removed: [], index: 7, configurationIndex: 7, isLeader: true }
}

let stage = new Stage()
afterEach(() => {
  stage.channels.stop()
  stage = new Stage()
})

const resultOf = (pipe: Pipe, sequence: number): ChannelMessage | undefined =>
  pipe
    .ofType(2)
    .find(
      ({ headers }) =>
        Buffer.compare(headers.get(1) ?? encodeFlag(true), encodeInt32(sequence)) === 0,
    )

const isSuccess = (message: ChannelMessage | undefined): boolean =>
  message?.headers.get(2)?.[0] === 1

describe('a router that a controller admits', () => {
  test('receives the ID and capabilities of the controller, and is shown as online', async () => {
    const pipe = await stage.dial()
    const [answer] = pipe.sent
    const text = (key: number): string => Buffer.from(answer?.headers.get(key) ?? []).toString()
    expect(isSuccess(answer)).toBe(true)
    expect(text(8)).toBe('ctrl1')
    expect(text(4)).toBe('v2.0.0|r|d|linux|x64')
    expect(text(10)).not.toBe('')
    expect(answer?.headers.get(1002)).toEqual(Uint8Array.of(0x5e))
    expect(answer?.headers.get(12)).toEqual(Uint8Array.of(0x5e))
    expect(stage.statuses.of('er1')).toMatchObject({ hostname: '', version: { version: 'v2.0.3' } })
  })

  test('receives the list of all controllers, in the formats of older and newer routers', async () => {
    const pipe = await stage.dial()
    const [update] = pipe.ofType(1037)
    expect(fromBinary(UpdateCtrlAddressesSchema, update?.body ?? new Uint8Array())).toMatchObject({
      addresses: ['tls:one:1380', 'tls:two:1380'],
      controllers: [
        { id: 'ctrl1', endpoints: [{ address: 'tls:one:1380', groups: [] }] },
        { id: 'ctrl2', endpoints: [{ address: 'tls:two:1380', groups: [] }] },
      ],
      index: 7n,
      isLeader: false,
    })
  })

  test('receives all addresses of a controller, in the order in which it should try them', async () => {
    const { controllers: [first] = [], ...rest } = stage.addresses ?? notNull()
    const addresses = ['tls:inside:1380', 'tls:outside:443']
    stage.addresses = { ...rest, controllers: [{ ...(first ?? notNull()), addresses }] }
    const [update] = (await stage.dial()).ofType(1037)
    expect(fromBinary(UpdateCtrlAddressesSchema, update?.body ?? new Uint8Array())).toMatchObject({
      addresses,
      controllers: [{ id: 'ctrl1', endpoints: addresses.map((address) => ({ address })) }],
    })
  })

  test('receives the pinned keys of members and of removed controllers, in fields that OpenZiti routers ignore', async () => {
    const known = stage.addresses
    if (known === null) throw new Error('the stage has addresses')
    stage.addresses = { ...known, removed: [{ id: 'ctrl3', publicKeySha256: keySha256(3) }] }
    const pipe = await stage.dial()
    const [update] = pipe.ofType(1037)
    const read = fromBinary(UpdateCtrlAddressesSchema, update?.body ?? new Uint8Array())
    const keys = [...read.controllers, ...read.removed].map(({ id, publicKeySha256 }) => [
      id,
      publicKeySha256,
    ])
    expect(keys).toEqual([
      ['ctrl1', keySha256(1)],
      ['ctrl2', keySha256(2)],
      ['ctrl3', keySha256(3)],
    ])
    // A field number from 29000 on, which is above all that OpenZiti uses.
    expect(UpdateCtrlAddressesSchema.field.removed.number).toBe(29_000)
    expect(UpdateCtrlAddressesSchema.field.isInterim.number).toBe(29_001)
  })

  test('receives the list of the remaining members when a removed controller stops', async () => {
    const pipe = await stage.dial()
    const known = stage.addresses
    if (known === null) throw new Error('the stage has addresses')
    stage.addresses = { ...known, controllers: known.controllers.slice(1) }
    stage.channels.stop()
    await settle()
    const told = pipe
      .ofType(1037)
      .map(({ body }) => fromBinary(UpdateCtrlAddressesSchema, body))
      .map(({ controllers }) => controllers.map(({ id }) => id))
    expect(told).toEqual([['ctrl1', 'ctrl2'], ['ctrl2']])
  })

  test('receives the members again if they change or if it requests them, and never a partial list', async () => {
    const { addresses } = stage
    stage.addresses = null
    const pipe = await stage.dial()
    pipe.say({ contentType: 1055, sequence: 1 })
    await settle()
    expect(pipe.ofType(1037)).toEqual([])
    stage.addresses = addresses
    stage.channels.sweep()
    stage.channels.sweep()
    expect(pipe.ofType(1037)).toHaveLength(1)
    pipe.say({ contentType: 1055, sequence: 2 })
    await settle()
    expect(pipe.ofType(1037)).toHaveLength(2)
  })

  test('receives a list with a higher index from the leader when the address of a member changes, and no list if only the log grows', async () => {
    const leading = { configurationIndex: 7, isLeader: true }
    const other = {
      id: 'ctrl2',
      addresses: ['tls:two:1380'],
      clientApis: [],
      publicKeySha256: keySha256(2),
    }
    const at = (address: string) => {
      const moved = {
        id: 'ctrl1',
        addresses: [address],
        clientApis: [],
        publicKeySha256: keySha256(1),
      }
      return { controllers: [moved, other], removed: [] }
    }
    stage.addresses = { ...at('tls:one:1380'), ...leading, index: 20 }
    const pipe = await stage.dial()
    stage.addresses = { ...at('tls:one:1380'), ...leading, index: 21 }
    stage.channels.sweep()
    expect(pipe.ofType(1037)).toHaveLength(1)
    stage.addresses = { ...at('tls:moved:1380'), ...leading, index: 22 }
    stage.channels.sweep()
    const told = pipe
      .ofType(1037)
      .map(({ body }) => fromBinary(UpdateCtrlAddressesSchema, body))
      .map(({ index, isInterim, addresses }) => [index, isInterim, ...addresses])
    // The list is first sent without the controller whose address has changed: OpenZiti routers
    // continue to dial a known controller at its old address.
    expect(told.slice(1)).toEqual([
      [22n, true, 'tls:two:1380'],
      [23n, false, 'tls:moved:1380', 'tls:two:1380'],
    ])
    // The controller loses leadership and leads again, and its log index is not greater than the
    // index that the router has.
    stage.addresses = { ...at('tls:moved:1380'), configurationIndex: 7, isLeader: false, index: 7 }
    stage.channels.sweep()
    stage.addresses = { ...at('tls:moved:1380'), ...leading, index: 23 }
    stage.channels.sweep()
    const last = pipe.ofType(1037).at(-1)?.body ?? new Uint8Array()
    expect(fromBinary(UpdateCtrlAddressesSchema, last).index).toBe(24n)
  })

  test('receives, if it runs OpenZiti 1.x, lists without a controller that is unreachable for seconds, until the controller is back', async () => {
    const three = threeControllers()
    stage.addresses = three
    const older = await stage.dial({ headers: new Map([[4, encodeText('v1.6.20|r|d|linux|x64')]]) })
    const all = ['tls:one:1380', 'tls:two:1380', 'tls:three:1380']
    const left = ['tls:one:1380', 'tls:three:1380']
    const full = [7n, false, ...all]
    stage.unreachable = ['ctrl2']
    stage.channels.sweep()
    stage.passedMs = 1000
    stage.channels.sweep()
    expect(lists(older)).toEqual([full])
    stage.passedMs = 3000
    stage.channels.sweep()
    stage.channels.sweep()
    expect(lists(older)).toEqual([full, [8n, true, ...left]])
    older.say({ contentType: 1055, sequence: 1 })
    await settle()
    stage.channels.sweep()
    expect(lists(older).slice(2)).toEqual([
      [8n, false, ...all],
      [9n, true, ...left],
    ])
    stage.unreachable = []
    stage.channels.sweep()
    stage.channels.sweep()
    expect(lists(older).slice(4)).toEqual([[10n, false, ...all]])

    stage.unreachable = ['ctrl2']
    stage.channels.sweep()
    stage.passedMs = 6000
    stage.channels.sweep()
    expect(lists(older).slice(5)).toEqual([[11n, true, ...left]])
    stage.addresses = { ...three, isLeader: false }
    stage.channels.sweep()
    expect(lists(older).slice(6)).toEqual([[12n, false, ...all]])
  })

  test('receives, if it runs OpenZiti 1.x, the full list from a leader that does not reach a majority', async () => {
    stage.addresses = threeControllers()
    const older = await stage.dial({ headers: new Map([[4, encodeText('v1.6.20|r|d|linux|x64')]]) })
    stage.unreachable = ['ctrl2', 'ctrl3']
    stage.channels.sweep()
    stage.passedMs = 3000
    stage.channels.sweep()
    expect(lists(older)).toHaveLength(1)
  })

  test('receives no shorter list while a controller is unreachable if the router runs OpenZiti 2.x or is connected to a follower', async () => {
    const { addresses } = stage
    const follows = await stage.dial({ headers: new Map([[4, encodeText(version)]]) })
    stage.unreachable = ['ctrl2']
    stage.channels.sweep()
    stage.passedMs = 3000
    stage.channels.sweep()
    expect(follows.ofType(1037)).toHaveLength(1)
    stage.addresses = addresses === null ? null : { ...addresses, isLeader: true }
    const grouped = await stage.dial()
    stage.channels.sweep()
    expect(grouped.ofType(1037)).toHaveLength(1)
  })

  test('is informed of a leader change by the new leader', async () => {
    const pipe = await stage.dial()
    stage.channels.sweep()
    expect(pipe.ofType(1051)).toEqual([])
    stage.leaderIndex = 3
    stage.channels.sweep()
    stage.channels.sweep()
    const updates = pipe.ofType(1051)
    expect(updates).toHaveLength(1)
    const { index } = fromBinary(UpdateClusterLeaderSchema, updates[0]?.body ?? new Uint8Array())
    expect(index).toBe(3n)
  })

  test('reports its client addresses to the controller', async () => {
    const pipe = await stage.dial()
    const [hello] = pipe.ofType(20_000)
    expect(hello?.headers.get(1024)).toEqual(encodeFlag(true))
    const advertise = { value: 'tls:edge:3022', protocol: 'tls', hostname: 'edge', port: 3022 }
    const said = create(ClientHelloSchema, { hostname: 'edge', listeners: [{ advertise }, {}] })
    pipe.say({
      contentType: 20_001,
      headers: new Map([[1, encodeInt32(hello?.sequence ?? 0)]]),
      body: toBinary(ClientHelloSchema, said),
    })
    await settle()
    const protocols = { tls: 'tls://edge:3022' }
    expect(stage.statuses.of('er1')).toMatchObject({ hostname: 'edge', protocols })
  })

  test('reports the network interfaces of its host to the controller', async () => {
    const pipe = await stage.dial()
    const lan = { name: 'eth0', hardwareAddress: '02:00:00:00:00:01', addresses: ['10.0.0.2/24'] }
    const interfaces = [{ ...lan, mtu: 1500n, index: -1n, flags: 19n }]
    const body = toBinary(InterfacesSchema, create(InterfacesSchema, { interfaces }))
    pipe.say({ contentType: 1052, sequence: 7, body })
    await settle()
    expect(isSuccess(resultOf(pipe, 7))).toBe(true)
    expect(stage.statuses.of('er1')).toMatchObject({
      version: { version: 'v2.0.3' },
      interfaces: [{ ...lan, mtu: 1500, index: 0, flags: 19 }],
    })
  })

  test('stays connected even if the controller cannot decode its report about its own state', async () => {
    const pipe = await stage.dial()
    const headers = new Map([[1, encodeInt32(pipe.ofType(20_000)[0]?.sequence ?? 0)]])
    pipe.say({ contentType: 20_001, headers, body: Uint8Array.of(0xff, 0xff) })
    await settle()
    expect(stage.statuses.of('er1')).toMatchObject({ hostname: '' })
    expect(pipe.destroyed).toBe(false)
  })

  test('gets no request for client addresses if it serves no clients', async () => {
    stage.admission = { ok: true, router: { ...er1, isEdge: false } }
    const pipe = await stage.dial()
    expect(pipe.ofType(20_000)).toEqual([])
    expect(stage.statuses.of('er1')).not.toBeNull()
  })

  test.each([
    [1, true],
    [1052, true],
    [1039, false],
    [1040, false],
    [1043, false],
    [1011, false],
    [4_000_000, false],
  ])(
    'gets, for a request of the type %i, a result with the success flag %s',
    async (contentType, expected) => {
      const pipe = await stage.dial()
      pipe.say({ contentType, sequence: 42 })
      await settle()
      const result = resultOf(pipe, 42)
      expect(result).toBeDefined()
      expect(isSuccess(result)).toBe(expected)
    },
  )

  test.each([20_400, 20_402, 20_404, 20_406])(
    'gets, for the unsupported request type %i, an error in the format of edge requests, with a code and a text',
    async (contentType) => {
      const pipe = await stage.dial()
      pipe.say({ contentType, sequence: 42 })
      await settle()
      const [refusal, ...others] = pipe.ofType(20_002)
      expect(others).toEqual([])
      expect(readInt32(refusal?.headers ?? new Map(), 1)).toBe(42)
      expect(readInt32(refusal?.headers ?? new Map(), 1014)).toBe(7)
      expect(Buffer.from(refusal?.body ?? []).toString()).toMatch(/not supported|by the data model/)
    },
  )

  test('gets no response to a message that is a response or that expects none', async () => {
    const pipe = await stage.dial()
    const before = pipe.sent.length
    const headers = new Map([[1, encodeInt32(7)]])
    for (const contentType of [2, 1010, 1014, 1042, 20_001, 20_002, 20_504]) {
      pipe.say({ contentType, sequence: 42 })
    }
    pipe.say({ contentType: 4_000_000, sequence: 42, headers })
    await settle()
    expect(pipe.sent).toHaveLength(before)
  })

  test('may send messages of types that the controller does not know', async () => {
    const pipe = await stage.dial()
    for (const contentType of [1035, 1007, 20_415, 20_505, 4_000_000]) pipe.say({ contentType })
    await settle()
    expect(pipe.destroyed).toBe(false)
    expect(stage.statuses.of('er1')).not.toBeNull()
  })

  test('is shown as offline when its channel closes', async () => {
    const pipe = await stage.dial()
    pipe.push(null)
    await settle()
    expect(stage.statuses.of('er1')).toBeNull()
  })

  test('replaces its old channel when it reconnects, and stays connected when the old channel closes', async () => {
    const old = await stage.dial()
    const pipe = await stage.dial()
    expect(old.destroyed).toBe(true)
    expect(pipe.destroyed).toBe(false)
    expect(stage.statuses.of('er1')).not.toBeNull()
    expect(stage.lines).toContain(
      'router disconnected replaced by a newer connection of the router',
    )
  })

  test('is disconnected when its record no longer permits it to connect', async () => {
    const pipe = await stage.dial()
    stage.channels.sweep()
    expect(pipe.destroyed).toBe(false)
    stage.revoked = 'the router was disabled'
    stage.channels.sweep()
    expect(pipe.destroyed).toBe(true)
    expect(stage.statuses.of('er1')).toBeNull()
  })

  test('is disconnected right after the log entry that revokes its permission, and not while the entry is being applied', async () => {
    stage.channels.start()
    const pipe = await stage.dial()
    stage.revoked = 'the router was disabled'
    stage.feed.change('router', 'er9')
    await settle()
    expect(pipe.destroyed).toBe(false)
    stage.feed.change('router', 'er1')
    expect(pipe.destroyed).toBe(false)
    await settle()
    expect(pipe.destroyed).toBe(true)
    stage.channels.stop()
    expect(stage.feed.followed).toEqual([])
  })

  test('has a row in the live table, and is disconnected if an operator removes the row', async () => {
    const pipe = await stage.dial()
    const { table } = stage.channels
    expect(table.owner).toBe('ctrl1')
    expect(table.list()).toMatchObject([{ id: 'er1', name: 'gate', version: 'v2.0.3' }])
    expect(table.remove('er1')).toBe(true)
    expect([pipe.destroyed, table.get('er1')]).toEqual([true, undefined])
    expect(stage.statuses.of('er1')).toBeNull()
    expect(table.remove('er1')).toBe(false)
  })
})

describe('a router whose connection is refused', () => {
  const reasonOf = (pipe: Pipe): string => Buffer.from(pipe.sent[0]?.body ?? []).toString()
  const withHeaders = (headers: readonly (readonly [number, Uint8Array])[]) => ({
    headers: new Map(headers),
  })

  test('gets the reason why the controller does not admit it', async () => {
    stage.admission = { ok: false, reason: 'the router is disabled' }
    const pipe = await stage.dial()
    expect(reasonOf(pipe)).toBe('the router is disabled')
    expect(isSuccess(pipe.sent[0])).toBe(false)
    expect(pipe.writableEnded).toBe(true)
    expect(stage.statuses.of('er1')).toBeNull()
  })

  test('gets as the reason that its certificate belongs to another router, and the router that it claims to be keeps its channel', async () => {
    const pipe = await stage.dial()
    stage.admission = { ok: true, router: { ...er1, id: 'er2' } }
    expect(reasonOf(await stage.dial())).toBe('the certificate belongs to another router')
    expect(pipe.destroyed).toBe(false)
  })

  test('gets no reason if an unexpected error occurs, which does not affect other routers', async () => {
    const other = await stage.dial()
    stage.judge = () => {
      throw new Error('a mistake')
    }
    const pipe = await stage.dial()
    expect(pipe.sent).toEqual([])
    expect(pipe.destroyed).toBe(true)
    expect(other.destroyed).toBe(false)
  })

  test('gets as the reason that its hello contains no version', async () => {
    expect(reasonOf(await stage.dial(withHeaders([])))).toMatch('no version')
  })

  test('gets as the reason that this controller has no channel to which its additional socket belongs', async () => {
    const second = withHeaders([
      [4, encodeText(version)],
      [9, encodeFlag(true)],
      [0, encodeText('group')],
      [10, encodeText('secret')],
    ])
    expect(reasonOf(await stage.dial(second))).toBe('the router has no channel here')
  })

  test('causes a log line with the reason, for at most sixty refusals per minute', async () => {
    stage.admission = { ok: false, reason: 'the router is disabled' }
    for (let at = 0; at < 70; at += 1) await stage.dial()
    expect(stage.lines).toHaveLength(60)
  })

  test('gets no reason if its first message is not a hello', async () => {
    const pipe = await stage.dial({ contentType: 1 })
    expect(pipe.sent).toEqual([])
    expect(pipe.destroyed).toBe(true)
  })
})
