import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { readBytesMap, readTextList } from '../../../src/channel/header-maps.ts'
import type { ChannelMessage } from '../../../src/channel/frame.ts'
import { encodeInt32, readText, encodeText, encodeUint64 } from '../../../src/channel/headers.ts'
import { parseCertificate } from '../../../src/pki/certificate.ts'
import {
  EdgeBench,
  eventually,
  idOf,
  madeCircuit,
  refusedCircuit,
  serviceToken,
  type TestClient,
  textOf,
} from './support.ts'

// Goal: a client that connects to a service uses the circuit that a controller created for it, byte
// by byte, and no other circuit.

let bench: EdgeBench
beforeEach(async () => {
  bench = await EdgeBench.open()
})
afterEach(() => bench.close())

const connected = 60_784
const closed = 60_785
const data = 60_786

async function dialed(client: TestClient, id: number, circuitId = `c${id}`) {
  bench.controller.circuits = () => madeCircuit(circuitId)
  const answer = await client.request(60_783, id, serviceToken('s1'))
  expect(answer.contentType).toBe(connected)
  await eventually(() => bench.circuits.ends.some((end) => end.circuitId === circuitId)).toBe(true)
  return bench.circuits.end(circuitId)
}

describe('A client that connects to a service', () => {
  test('is authorized by a controller with the session token that the client presents', async () => {
    const person = await bench.person('ann')
    bench.controller.tellSessions([person])
    const client = await bench.connect(person)
    bench.controller.circuits = () =>
      madeCircuit(
        'c1',
        new Map([
          [1003, encodeText('host key')],
          [1114, encodeText('stick')],
          [1000, encodeText('evil')],
        ]),
      )
    const answer = await client.request(60_783, 7, serviceToken('s1'), [
      [1003, encodeText('my key')],
      [1006, encodeText('instance')],
      [1008, encodeText('caller')],
      [1009, Uint8Array.of(0)],
      [1011, encodeText('app')],
      [1027, encodeText('sticky')],
    ])
    const [request] = bench.controller.ofType(20_218)
    const headers = request?.headers ?? new Map<number, Uint8Array>()
    expect(readText(headers, 11)).toBe(serviceToken('s1'))
    expect(readText(headers, 14)).toBe(person.token)
    expect(readTextList(headers, 12)).toEqual([parseCertificate(person.key.certificatePem).sha1])
    expect(readText(headers, 13)).toBe('instance')
    const peer = readBytesMap(headers, 10) ?? new Map<number, Uint8Array>()
    expect(
      Object.fromEntries([...peer].map(([key, value]) => [key, Buffer.from(value).toString()])),
    ).toEqual({
      1003: 'my key',
      1008: 'caller',
      1011: 'app',
      1114: 'sticky',
      1115: 'ann',
    })
    expect(answer.contentType).toBe(connected)
    expect(idOf(answer)).toBe(7)
    expect(textOf(answer, 1026)).toBe('c1')
    expect(textOf(answer, 1003)).toBe('host key')
    expect(textOf(answer, 1027)).toBe('stick')
    expect(bench.circuits.end('c1').circuit).toMatchObject({
      id: 'c1',
      address: 'in-c1',
      isTerminator: false,
      owner: { id: 'ctrl1' },
    })
  })

  test('is refused with the text that the controller sends', async () => {
    const client = await bench.admitted('ann')
    bench.controller.circuits = () => refusedCircuit('dial refused: access', 14)
    const answer = await client.request(60_783, 7, serviceToken('s1'))
    expect(answer.contentType).toBe(closed)
    expect(Buffer.from(answer.body).toString()).toBe('dial refused: access')
    expect(answer.headers.get(1014)).toEqual(encodeInt32(14))
    expect(JSON.parse(textOf(answer, 1033) ?? '')).toMatchObject({ code: 14 })
    expect(bench.circuits.ends).toEqual([])
    await dialed(client, 7)
  })

  test('is authorized by the controller that sent the client’s session to the router', async () => {
    const other = await EdgeBench.open({ controllers: ['ctrl1', 'ctrl2'] })
    try {
      const person = await other.person('ann')
      other.controllers[1]?.tellSessions([person])
      const client = await other.connect(person)
      const [first, second] = other.controllers
      if (second !== undefined) second.circuits = () => madeCircuit('c1')
      await client.request(60_783, 7, serviceToken('s1'))
      expect(first?.ofType(20_218)).toEqual([])
      expect(other.circuits.end('c1').circuit.owner.id).toBe('ctrl2')
    } finally {
      await other.close()
    }
  })

  test('gets a circuit endpoint with the options of the listener', async () => {
    const other = await EdgeBench.open({ options: ', rxBufferSize: 65536' })
    try {
      const client = await other.admitted('ann')
      other.controller.circuits = () => madeCircuit('c1')
      await client.request(60_783, 7, serviceToken('s1'))
      await eventually(() => other.circuits.ends).toHaveLength(1)
      const { options } = other.circuits.end('c1').circuit
      expect(options).toMatchObject({ rxBufferSize: 65_536, txPortalMinSize: 16_384 })
    } finally {
      await other.close()
    }
  })

  test('gets a refusal immediately if its session ends before the controller responds', async () => {
    const client = await bench.admitted('ann')
    const asked = client.request(60_783, 7, serviceToken('s1'))
    await eventually(() => bench.controller.ofType(20_218)).toHaveLength(1)
    bench.controller.endServiceSession('s1', 's1')
    const answer = await asked
    expect([answer.contentType, Buffer.from(answer.body).toString()]).toEqual([
      closed,
      'Invalid Session',
    ])
    expect(answer.headers.get(1014)).toEqual(encodeInt32(3))
    bench.controller.answer(madeCircuit('c1'))
    await eventually(() => bench.circuits.ends).toHaveLength(1)
    expect(bench.circuits.end('c1').closedReason).toBe('the client is gone')
  })

  test('leaves no circuit if it closes the connection before the controller responds', async () => {
    const client = await bench.admitted('ann')
    const answer = client.request(60_783, 7, serviceToken('s1')).catch(() => null)
    await eventually(() => bench.controller.ofType(20_218)).toHaveLength(1)
    client.send(closed, 7)
    // The router answers in order: when this answer arrives, it has read the message before.
    expect((await client.channel.request({ contentType: 3 })).contentType).toBe(2)
    bench.controller.answer(madeCircuit('c1'))
    await eventually(() => bench.circuits.ends).toHaveLength(1)
    expect(bench.circuits.end('c1').closedReason).toBe('the client is gone')
    client.channel.close('over')
    await answer
  })

  test.each([
    [
      'an id in the range that the router assigns',
      0x80_00_00_01,
      serviceToken('s1'),
      'given by the router',
    ],
    ['no service session', 8, '', 'no service session'],
  ])('is refused if its request has %s', async (_, id, token, reason) => {
    const client = await bench.admitted('ann')
    const answer = await client.request(60_783, id, token)
    expect(answer.contentType).toBe(closed)
    expect(Buffer.from(answer.body).toString()).toContain(reason)
    expect(bench.controller.ofType(20_218)).toEqual([])
  })

  test('is refused if its connection ID is in use, and the existing connection continues', async () => {
    const client = await bench.admitted('ann')
    const end = await dialed(client, 7)
    const answer = await client.request(60_783, 7, serviceToken('s1'))
    expect(Buffer.from(answer.body).toString()).toContain('in use')
    client.send(data, 7, 'still there')
    await eventually(() => end.texts).toEqual(['still there'])
  })
})

describe('The traced route of a client’s connection', () => {
  const headersOf = (hops: number): [number, Uint8Array][] => [
    [1016, encodeInt32(hops)],
    [1015, encodeUint64(77n)],
  ]
  const text = (answer: ChannelMessage, key: number): string =>
    Buffer.from(answer.headers.get(key) ?? []).toString()

  test('has the client’s router as its first hop', async () => {
    const client = await bench.admitted('ann')
    const end = await dialed(client, 7)
    const answer = await client.request(60_796, 7, '', headersOf(1))
    expect([text(answer, 1017), text(answer, 1020)]).toEqual(['xgress/edge', ''])
    expect(end.traced).toEqual([])
  })

  test('is requested over the circuit beyond the first hop, and the router forwards the response to the client', async () => {
    const client = await bench.admitted('ann')
    const end = await dialed(client, 7)
    const asked = client.request(60_796, 7, '', headersOf(3))
    await eventually(() => end.traced).toMatchObject([{ hops: 2, timestamp: 77n }])
    const [request] = end.traced
    const answer = { hopType: 'forwarder', hopId: 'r2', hops: 0, timestamp: 77n, error: '' }
    const userValue = request?.userValue ?? 0
    end.application.onTraced?.({ ...answer, userValue })
    const got = await asked
    expect([got.contentType, text(got, 1017), text(got, 1018)]).toEqual([60_797, 'forwarder', 'r2'])
    expect([got.headers.get(1016), got.headers.get(1015)]).toEqual([
      encodeInt32(0),
      encodeUint64(77n),
    ])
  })

  test('is unknown beyond the first router if the connection has no circuit', async () => {
    const client = await bench.admitted('ann')
    const answer = await client.request(60_796, 9, '', headersOf(2))
    expect(text(answer, 1020)).toBe('the connection has no route that can be traced')
  })
})

describe('The data of a client’s connection', () => {
  test('passes unchanged in both directions: neither split nor joined, with its flags and its trace', async () => {
    const client = await bench.admitted('ann')
    const end = await dialed(client, 7)
    const trace = Uint8Array.from({ length: 16 }, (_, at) => at)
    client.send(data, 7, 'one', [[1010, encodeInt32(4)]])
    client.send(data, 7, '', [
      [1010, encodeInt32(1)],
      [128, trace],
    ])
    await eventually(() => end.sent).toEqual([
      { body: Uint8Array.from(Buffer.from('one')), edgeFlags: 4, traceId: null },
      { body: new Uint8Array(), edgeFlags: 1, traceId: trace },
    ])
    end.arrive('two', 4, trace)
    end.arrive('three')
    await eventually(() => client.textsOf(7)).toEqual(['two', 'three'])
    const [first] = client.ofType(data, 7)
    expect(first?.headers.get(1010)).toEqual(encodeInt32(4))
    expect(first?.headers.get(128)).toEqual(trace)
  })

  test('ends with a FIN flag even if the other endpoint closes without a FIN flag', async () => {
    const client = await bench.admitted('ann')
    const end = await dialed(client, 7)
    end.arrive('all')
    end.application.onFinished()
    await eventually(() => client.ofType(data, 7)).toHaveLength(2)
    expect(client.ofType(data, 7)[1]?.headers.get(1010)).toEqual(encodeInt32(1))
  })

  test('is ignored if the router does not know the connection', async () => {
    const client = await bench.admitted('ann')
    const end = await dialed(client, 7)
    client.send(data, 8, 'astray')
    client.send(data, 0x80_00_00_00, 'astray')
    client.channel.send({ contentType: data, body: encodeText('nowhere') })
    client.send(data, 7, 'here')
    await eventually(() => end.texts).toEqual(['here'])
  })

  test('still arrives if it was written before the client closed', async () => {
    const client = await bench.admitted('ann')
    const end = await dialed(client, 7)
    end.takes = false
    client.send(data, 7, 'one')
    client.send(data, 7, 'two')
    client.send(closed, 7)
    await eventually(() => end.texts).toEqual(['one'])
    expect(end.isClosed).toBe(false)
    end.takes = true
    end.application.onWritable()
    await eventually(() => end.isClosed).toBe(true)
    expect(end.texts).toEqual(['one', 'two'])
  })

  test('is, above a limit, not read from the client while the circuit does not accept it', async () => {
    const client = await bench.admitted('ann')
    const end = await dialed(client, 7)
    end.takes = false
    const piece = new Uint8Array(64 * 1024)
    for (let sent = 0; sent < 64; sent += 1) client.send(data, 7, piece)
    let isAnswered = false
    const latency = client.channel.request({ contentType: 3 }, 20_000).then(() => {
      isAnswered = true
    })
    await eventually(() => end.sent).toHaveLength(1)
    end.takes = true
    expect(isAnswered, 'later messages wait, too').toBe(false)
    end.application.onWritable()
    await eventually(() => end.sent.length).toBe(64)
    await latency
  })

  test('is, above a limit, not accepted from circuits while the client does not read, and arrives completely later', async () => {
    const client = await bench.admitted('ann')
    const end = await dialed(client, 7)
    client.socket.pause()
    const piece = new Uint8Array(256 * 1024)
    for (let sent = 0; sent < 40; sent += 1) end.arrive(piece)
    expect(end.isBlocked).toBe(true)
    const pending = end.pendingCount
    expect(pending).toBeGreaterThan(20)
    expect(client.closedReason).toBe(null)
    client.socket.resume()
    await eventually(() => client.ofType(data, 7).length).toBe(40)
  })
})

describe('An open connection of a client is closed', () => {
  test('for the client when its circuit is closed', async () => {
    const client = await bench.admitted('ann')
    const end = await dialed(client, 7)
    end.arrive('last')
    end.application.onClosed('the far end is gone', true)
    await eventually(() => client.ofType(closed, 7)).toHaveLength(1)
    expect(client.received.map(({ contentType }) => contentType)).toEqual([data, closed])
    await dialed(client, 7, 'again')
  })

  test('together with its circuit when the client closes the connection or the channel', async () => {
    const client = await bench.admitted('ann')
    const first = await dialed(client, 7)
    const second = await dialed(client, 8)
    client.send(closed, 7)
    await eventually(() => first.isClosed).toBe(true)
    expect(second.isClosed).toBe(false)
    client.channel.close('over')
    await eventually(() => second.isClosed).toBe(true)
  })

  test('when the connection’s own service session ends, but not when another one ends', async () => {
    const client = await bench.admitted('ann')
    const end = await dialed(client, 7)
    bench.controller.endServiceSession('other', 'other')
    expect(end.isClosed).toBe(false)
    bench.controller.endServiceSession('s1', 's1')
    await eventually(() => client.ofType(closed, 7)).toHaveLength(1)
    expect(end.isClosed).toBe(true)
  })
})

describe('Many connections that one client opens', () => {
  test('are created only a few at a time, and connections above the queue limit are refused', async () => {
    const client = await bench.admitted('ann')
    bench.controller.circuits = null
    for (let id = 1; id <= 2000; id += 1) client.send(60_783, id, serviceToken('s1'))
    await eventually(() => client.ofType(closed).length).toBeGreaterThan(0)
    expect(bench.controller.ofType(20_218)).toHaveLength(32)
    await eventually(() => client.ofType(closed).length).toBe(2000 - 1024)
    expect(Buffer.from(client.ofType(closed)[0]?.body ?? '').toString()).toContain('too many')
  })
})
