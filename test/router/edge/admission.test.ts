import { fromBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { ConnectEventsSchema, ValidateSessionsSchema } from '../../../proto/gen/router_pb.ts'
import { sessionSpiffeId } from '../../../src/pki/spiffe.ts'
import { trustDomain } from '../support.ts'
import { EdgeBench, eventually, serviceToken } from './support.ts'

// Goal: a client has a channel only while a controller reports its session, and only with a
// certificate of that session.

let bench: EdgeBench
beforeEach(async () => {
  bench = await EdgeBench.open()
})
afterEach(() => bench.close())

describe('A client of a router', () => {
  test('gets a channel with its session token and the certificate of the session', async () => {
    const client = await bench.admitted('ann')
    expect(client.isAdmitted).toBe(true)
    expect(client.answer?.headers.get(1024), 'messages may share it').toEqual(Uint8Array.of(1))
    const capabilities = [...(client.answer?.headers.get(1039) ?? [])]
    expect(capabilities, 'services are named instead of sessions').toEqual([4])
    expect(client.answer?.headers.has(9), 'one socket').toBe(false)
    const latency = await client.channel.request({
      contentType: 3,
      headers: new Map([[128, Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8)]]),
    })
    expect(latency.contentType).toBe(2)
    expect(latency.headers.get(128)).toEqual(Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8))
  })

  test('receives no heartbeats, because OpenZiti’s clients do not respond to them', async () => {
    const client = await bench.admitted('ann')
    bench.aheadMs = 120_000
    const { headers } = await client.channel.request({ contentType: 3 })
    expect(headers.has(5)).toBe(false)
  })

  test('waits for its session if it connects before the router knows the session', async () => {
    const person = await bench.person('ann')
    const connecting = bench.connect(person)
    await new Promise((resolve) => setImmediate(resolve))
    bench.controller.tellSessions([person])
    expect((await connecting).isAdmitted).toBe(true)
  })

  test('gets a channel with a certificate that was issued for only this session', async () => {
    const ids = { identityId: 'ann', apiSessionId: 'ann-session', certificateId: 'c' }
    const person = await bench.person('ann', [sessionSpiffeId(trustDomain, ids)])
    bench.controller.tellSessions([person], { fingerprints: [] })
    expect((await bench.connect(person)).isAdmitted).toBe(true)
  })

  test('is reported to controllers when it connects and when it disconnects', async () => {
    const told = () =>
      bench.controller
        .ofType(20_415)
        .flatMap(({ body }) => fromBinary(ConnectEventsSchema, body ?? new Uint8Array()).events)
        .map(({ identityId, isConnected }) => [identityId, isConnected])
    const client = await bench.admitted('ann')
    await eventually(told).toEqual([['ann', true]])
    client.channel.close('over')
    await eventually(told).toEqual([
      ['ann', true],
      ['ann', false],
    ])
  })
})

describe('A client of a router gets no channel', () => {
  test.each([
    ['without a token', { token: '' }, 'shows no token'],
    [
      'with a token that no controller has reported',
      { token: 'other' },
      'no controller has reported',
    ],
    ['with a token from an identity provider', { token: 'eyJh.e30.c2ln' }, 'access token'],
    ['without a certificate', { key: null }, 'no certificate'],
  ])('if it connects %s', async (_, shown, reason) => {
    const person = await bench.person('ann')
    bench.controller.tellSessions([person])
    const client = await bench.connect(person, shown)
    expect(client.isAdmitted).toBe(false)
    expect(client.refusal).toContain(reason)
    await eventually(() => client.closedReason).not.toBe(null)
    expect(bench.edge.channels).toBe(0)
  })

  test('if it connects with a certificate of another client’s session', async () => {
    const ids = { identityId: 'bob', apiSessionId: 'bob-session', certificateId: 'c' }
    const person = await bench.person('ann', [sessionSpiffeId(trustDomain, ids)])
    bench.controller.tellSessions([person], { fingerprints: [] })
    expect((await bench.connect(person)).refusal).toContain('does not belong')
  })
})

describe('The channel of a client', () => {
  test('is closed when its session is removed', async () => {
    const person = await bench.person('ann')
    bench.controller.tellSessions([person])
    const client = await bench.connect(person)
    bench.controller.removeSession(person)
    await eventually(() => client.closedReason).not.toBe(null)
    expect((await bench.connect(person)).isAdmitted).toBe(false)
  })

  test('is closed when the certificate of its session is replaced', async () => {
    const person = await bench.person('ann')
    bench.controller.tellSessions([person])
    const client = await bench.connect(person)
    bench.controller.tellSessions([person], { fingerprints: ['00'] })
    await eventually(() => client.closedReason).not.toBe(null)
  })

  test('is closed when a controller’s complete list of sessions omits its session', async () => {
    const [ann, bob] = [await bench.person('ann'), await bench.person('bob')]
    bench.controller.tellSessions([ann, bob])
    const [ofAnn, ofBob] = [await bench.connect(ann), await bench.connect(bob)]
    const part = { id: 's', sequence: 0, isLast: false }
    bench.controller.tellSessions([], { isFull: true, state: part })
    bench.controller.tellSessions([bob], {
      isFull: true,
      state: { ...part, sequence: 1, isLast: true },
    })
    await eventually(() => ofAnn.closedReason).not.toBe(null)
    expect(ofBob.closedReason).toBe(null)
  })

  test('stays open after an incomplete list of sessions, and the router requests the list again', async () => {
    const ann = await bench.person('ann')
    bench.controller.tellSessions([ann])
    const client = await bench.connect(ann)
    bench.controller.tellSessions([], {
      isFull: true,
      state: { id: 's', sequence: 1, isLast: true },
    })
    await eventually(() => bench.controller.ofType(20_204)).toHaveLength(1)
    expect(client.closedReason).toBe(null)
  })
})

describe('A controller that has sent all API sessions to a router', () => {
  test('receives from the router the tokens of the service sessions in use, as a query which of them have ended', async () => {
    const ann = await bench.person('ann')
    bench.controller.tellSessions([ann])
    const client = await bench.connect(ann)
    const answer = await client.request(60_790, 1, serviceToken('s1'))
    expect(answer.contentType).toBe(60_784)
    bench.controller.tellSessions([ann], { isFull: true })
    const asked = bench.controller
      .ofType(20_213)
      .map(({ body }) => fromBinary(ValidateSessionsSchema, body ?? new Uint8Array()).sessionTokens)
    expect(asked).toEqual([[serviceToken('s1')]])
  })
})
