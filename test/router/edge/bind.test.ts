import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import {
  CreateTerminatorResult,
  CreateTerminatorV2Schema,
  HealthEventSchema,
  RemoveTerminatorsSchema,
  TerminatorStatesSchema,
  UpdateEdgeTerminatorSchema,
  ValidateTerminatorsSchema,
} from '../../../proto/gen/router_pb.ts'
import { encodeFlag, encodeInt32, readInt32, encodeText } from '../../../src/channel/headers.ts'
import type { DialRequest } from '../../../src/overlay/circuits/circuit-endpoint.ts'
import {
  edgeErrorCode,
  INVALID_SESSION_MESSAGE,
  retryHint,
} from '../../../src/channel/messages/edge.ts'
import { terminatorCreateResponse } from '../../../src/channel/messages/terminators.ts'
import { EdgeBench, eventually, idOf, serviceToken, type TestClient, textOf } from './support.ts'
import { dialErrorCodes } from '../../../src/channel/messages/dial-error.ts'

// Goal: circuits reach a service through the client that hosts it as long as it hosts it, and no
// longer.

let bench: EdgeBench
let host: TestClient
beforeEach(async () => {
  bench = await EdgeBench.open()
  host = await bench.admitted('host')
})
afterEach(() => bench.close())

const [connected, closed, dial, bindSuccess] = [60_784, 60_785, 60_787, 60_800]
const token = serviceToken('bind1')
const usual: readonly (readonly [number, Uint8Array])[] = [
  [1012, encodeFlag(true)],
  [1024, encodeFlag(true)],
]

const created = () =>
  bench.controller
    .ofType(20_216)
    .map(({ body }) => fromBinary(CreateTerminatorV2Schema, body ?? new Uint8Array()))
const removed = () =>
  bench.controller
    .ofType(1038)
    .flatMap(
      ({ body }) => fromBinary(RemoveTerminatorsSchema, body ?? new Uint8Array()).terminatorIds,
    )

async function bound(
  client = host,
  id = 3,
  more: readonly (readonly [number, Uint8Array])[] = [],
): Promise<string> {
  const answer = await client.request(60_790, id, token, [...usual, ...more])
  expect(answer.contentType).toBe(connected)
  await eventually(() => client.ofType(bindSuccess, id)).toHaveLength(1)
  return created().at(-1)?.address ?? ''
}

function dialOf(
  destination: string,
  circuitId = 'c1',
  more: Partial<DialRequest> = {},
): DialRequest {
  const { connection: owner } = bench.controller
  const circuit = { id: circuitId, address: `out-${circuitId}`, owner, isTerminator: true }
  const said = { dialedBy: 'client ann', destination, peerData: new Map(), timeoutMs: 5000 }
  return { circuit, ...said, ...more }
}

const signal = new AbortController().signal

describe('A client that hosts a service', () => {
  test('gets a terminator for its request, and a message once the terminator exists', async () => {
    const id = await bound(host, 3, [
      [1003, encodeText('key')],
      [1004, Uint8Array.of(0x2c, 0x01)],
      [1005, Uint8Array.of(1)],
      [1006, encodeText('one')],
      [1007, encodeText('secret')],
    ])
    expect(created()).toMatchObject([
      {
        address: id,
        sessionToken: token,
        apiSessionToken: '1.host.mac',
        cost: 300,
        precedence: 1,
        instanceId: 'one',
        instanceSecret: encodeText('secret'),
        peerData: { 1003: encodeText('key') },
      },
    ])
    expect(created()[0]?.fingerprints).toHaveLength(1)
  })

  test('gets its terminator after the controller was busy, because the router repeats the request', async () => {
    let asked = 0
    bench.controller.terminators = () => {
      asked += 1
      return asked === 1 ? { result: CreateTerminatorResult.FAILED_BUSY } : {}
    }
    await bound()
    expect(new Set(created().map(({ address }) => address)).size).toBe(1)
  })

  test('gets the reason why it may not host', async () => {
    bench.controller.terminators = () => ({
      result: CreateTerminatorResult.FAILED_OTHER,
      msg: 'bind refused: access',
      errorCode: 14,
      retryHint: 3,
    })
    await host.request(60_790, 3, token, usual)
    await eventually(() => host.ofType(closed, 3)).toHaveLength(1)
    const [message] = host.ofType(closed, 3)
    expect(Buffer.from(message?.body ?? '').toString()).toBe('bind refused: access')
    expect(message === undefined ? null : JSON.parse(textOf(message, 1033) ?? '')).toEqual({
      message: 'bind refused: access',
      code: 14,
      retryHint: 3,
    })
    expect(bench.edge.terminatorIds).toEqual([])
  })

  test('loses its terminator and gets the hint to start over if a controller refuses the terminator later', async () => {
    const id = await bound()
    bench.controller.tell(
      terminatorCreateResponse(id, {
        result: CreateTerminatorResult.FAILED_OTHER,
        errorCode: edgeErrorCode.invalidSession,
        retryHint: retryHint.startOver,
        msg: INVALID_SESSION_MESSAGE,
      }),
    )
    await eventually(() => host.ofType(closed, 3)).toHaveLength(1)
    const [message] = host.ofType(closed, 3)
    expect(message === undefined ? null : JSON.parse(textOf(message, 1033) ?? '')).toEqual({
      message: INVALID_SESSION_MESSAGE,
      code: edgeErrorCode.invalidSession,
      retryHint: retryHint.startOver,
    })
    expect(bench.edge.terminatorIds).toEqual([])
  })

  test('has operationActive in an inspection until the controller has created its terminator', async () => {
    const active = (): unknown[] =>
      bench.edge.terminators.map((one) => (one as { operationActive: boolean }).operationActive)
    const requested: unknown[] = []
    bench.controller.terminators = () => {
      requested.push(...active())
      return {}
    }
    await bound()
    expect(requested).toEqual([true])
    await eventually(active).toEqual([false])
  })

  test.each([
    ['unbinds', () => host.send(60_791, 3, token)],
    ['disconnects', () => host.channel.close('over')],
    ['loses its service session', () => bench.controller.endServiceSession('bind1', 'bind1')],
  ])('loses its terminator when it %s', async (_, end) => {
    const id = await bound()
    end()
    await eventually(removed).toEqual([id])
    expect(bench.edge.terminatorIds).toEqual([])
  })

  test('keeps its terminator when it binds the same listener again', async () => {
    const id = await bound(host, 3, [[1021, encodeText('listener')]])
    await host.request(60_790, 4, token, [...usual, [1021, encodeText('listener')]])
    await eventually(() => host.ofType(bindSuccess, 4)).toHaveLength(1)
    expect(bench.edge.terminatorIds).toEqual([id])
    expect(created()).toHaveLength(1)
  })

  test('has only its last listener if it sends no IDs for its listeners', async () => {
    const first = await bound(host, 3)
    const second = await bound(host, 4)
    await eventually(removed).toEqual([first])
    expect(bench.edge.terminatorIds).toEqual([second])
  })

  test('can change the cost and precedence of its terminator, and report its health', async () => {
    const id = await bound()
    host.send(60_794, 3, token, [[1004, Uint8Array.of(5, 0)]])
    await eventually(() => bench.controller.ofType(20_209)).toHaveLength(1)
    host.send(60_794, 3, token, [[1005, Uint8Array.of(2)]])
    await eventually(() => bench.controller.ofType(20_209)).toHaveLength(2)
    host.send(60_795, 3, token, [[1013, encodeFlag(true)]])
    host.send(60_795, 3, serviceToken('other'), [[1013, encodeFlag(true)]])
    await eventually(() => bench.controller.ofType(20_214)).toHaveLength(1)
    const updates = bench.controller
      .ofType(20_209)
      .map(({ body }) => fromBinary(UpdateEdgeTerminatorSchema, body ?? new Uint8Array()))
    expect(updates).toMatchObject([
      { terminatorId: id, updateCost: true, cost: 5, updatePrecedence: false, sessionToken: token },
      { terminatorId: id, updateCost: false, updatePrecedence: true, precedence: 2 },
    ])
    const [health] = bench.controller.ofType(20_214)
    expect(fromBinary(HealthEventSchema, health?.body ?? new Uint8Array())).toMatchObject({
      terminatorId: id,
      checkPassed: true,
    })
  })
})

describe('A client’s terminator', () => {
  test('is reported as existing or missing if a controller asks', async () => {
    const id = await bound(host, 3, [[1023, encodeFlag(true)]])
    const asked = (ids: readonly string[], postCreate: boolean) => {
      const message = create(ValidateTerminatorsSchema, {
        terminators: ids.map((each) => ({ id: each, binding: 'edge', address: each, marker: 7n })),
        postCreate,
        fixInvalid: true,
      })
      bench.controller.tell({
        contentType: 1041,
        body: toBinary(ValidateTerminatorsSchema, message),
      })
    }
    const states = () =>
      bench.controller
        .ofType(1042)
        .map(({ body }) => fromBinary(TerminatorStatesSchema, body ?? new Uint8Array()).states)
    asked([id, 'other'], true)
    await eventually(states).toMatchObject([
      { [id]: { valid: true, marker: 7n }, other: { valid: false, marker: 7n } },
    ])
    host.onMessage = (message) => {
      if (message.contentType !== 60_798) return
      host.channel.reply(message, {
        contentType: 60_805,
        headers: new Map([[1022, Uint8Array.of(3)]]),
      })
    }
    asked([id], false)
    await eventually(() => states().at(-1)).toMatchObject({ [id]: { valid: false } })
    expect(bench.edge.terminatorIds).toEqual([])
  })
})

describe('A dial to a client that hosts a service', () => {
  test('reaches the host with a connection ID that the router chose, and the host’s data arrives completely', async () => {
    const id = await bound()
    host.onMessage = (message) => {
      if (message.contentType !== dial) return
      const given = readInt32(message.headers, 1012) ?? 0
      host.reply(message, 60_788, encodeInt32(given))
      host.send(60_786, given >>> 0, 'first')
    }
    const peerData = new Map([
      [1003, encodeText('client key')],
      [1008, encodeText('caller')],
      [1011, encodeText('app')],
      [1115, encodeText('ann')],
      [1110, encodeText('1.2.3.4')],
    ])
    await bench.edge.dialer.dial(dialOf(`hosted:${id}`, 'c1', { peerData }), signal)
    const [message] = host.ofType(dial)
    expect(Buffer.from(message?.body ?? '').toString(), 'the token of the bind').toBe(token)
    expect(message === undefined ? null : idOf(message)).toBe(3)
    const shown = [1003, 1008, 1011, 1026, 1034, 1110].map((key) =>
      message === undefined ? null : textOf(message, key),
    )
    expect(shown).toEqual(['client key', 'caller', 'app', 'c1', 'ann', null])
    const end = bench.circuits.end('c1')
    expect(end.circuit.isTerminator).toBe(true)
    await eventually(() => end.texts).toEqual(['first'])
    const connectionId = (readInt32(message?.headers ?? new Map(), 1012) ?? 0) >>> 0
    expect(connectionId).toBeGreaterThanOrEqual(0x80_00_00_00)
    end.arrive('answer')
    await eventually(() => host.textsOf(connectionId)).toEqual(['answer'])
  })

  test('leaves no state in the router if the host refuses the dial', async () => {
    const id = await bound()
    host.onMessage = (message) => {
      if (message.contentType === dial) host.reply(message, 60_789, 'not today')
    }
    await expect(bench.edge.dialer.dial(dialOf(id), signal)).rejects.toMatchObject({
      code: dialErrorCodes.rejected,
      message: 'the host refused the connection: not today',
    })
    expect(bench.circuits.end('c1').isClosed).toBe(true)
  })

  test('is refused if no client hosts the dialed terminator', async () => {
    await expect(bench.edge.dialer.dial(dialOf('none'), signal)).rejects.toMatchObject({
      code: dialErrorCodes.invalidTerminator,
    })
  })

  test('times out if the host does not respond', async () => {
    const id = await bound()
    const dialed = bench.edge.dialer.dial(dialOf(id, 'c1', { timeoutMs: 50 }), signal)
    await expect(dialed).rejects.toMatchObject({ code: dialErrorCodes.timedOut })
  })

  test('reaches a host that processes the frames of its circuits itself', async () => {
    const id = await bound(host, 3, [[1028, encodeFlag(true)]])
    host.onMessage = (message) => {
      if (message.contentType === dial) host.reply(message, 60_788, message.headers.get(1012) ?? '')
    }
    await bench.edge.dialer.dial(dialOf(id), signal)
    const [message] = host.ofType(dial)
    expect(message?.headers.get(1028)).toEqual(encodeFlag(true))
    expect(message === undefined ? null : textOf(message, 1030)).toBe('out-c1')
    expect(bench.circuits.attached.map(({ circuit }) => circuit.id)).toEqual(['c1'])
    host.channel.send({ contentType: 1101, headers: new Map([[2256, encodeText('c1')]]) })
    await eventually(() => bench.circuits.entered).toHaveLength(1)
    host.onMessage = (refused) => {
      if (refused.contentType === dial) host.reply(refused, 60_789, 'not today')
    }
    await expect(bench.edge.dialer.dial(dialOf(id, 'c2'), signal)).rejects.toThrow('not today')
    expect(bench.circuits.left.map(({ circuit }) => circuit.id)).toEqual(['c2'])
  })

  test.each([
    ['already in use by the host', 3],
    ['in the range that the router assigns', 0x80_00_00_05],
  ])(
    'leaves no state in the router when an older host responds with a connection ID that is %s',
    async (_, named) => {
      await host.request(60_790, 3, token, [[1024, encodeFlag(true)]])
      await eventually(() => host.ofType(bindSuccess, 3)).toHaveLength(1)
      host.onMessage = (message) => {
        if (message.contentType === dial) host.reply(message, 60_788, encodeInt32(named))
      }
      const dialed = bench.edge.dialer.dial(dialOf(created()[0]?.address ?? ''), signal)
      await expect(dialed).rejects.toThrow('cannot be')
      expect(bench.circuits.ends).toEqual([])
    },
  )

  test('reaches an older host that assigns connection IDs itself', async () => {
    const answer = await host.request(60_790, 3, token, [[1024, encodeFlag(true)]])
    expect(answer.headers.has(1012)).toBe(false)
    await eventually(() => host.ofType(bindSuccess, 3)).toHaveLength(1)
    const id = created()[0]?.address ?? ''
    host.onMessage = (message) => {
      if (message.contentType === dial) host.reply(message, 60_788, encodeInt32(9))
    }
    await bench.edge.dialer.dial(dialOf(id), signal)
    await eventually(() => host.ofType(connected, 9)).toHaveLength(1)
    bench.circuits.end('c1').arrive('hello')
    await eventually(() => host.textsOf(9)).toEqual(['hello'])
  })
})
