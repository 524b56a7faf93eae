import { createHash } from 'node:crypto'

import { create, type DescMessage } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import { fetchState } from '../../src/cluster/state-transfer/state-transfer-client.ts'
import {
  callPeer,
  decodeLeaderCall,
  decodePeerMessage,
  encodeLeaderCall,
  encodePeerMessage,
  formOf,
} from '../../src/cluster/peer/peer-message.ts'
import { peerMethods } from '../../src/cluster/peer/peer-methods.ts'
import { Problem } from '../../src/lib/problems.ts'
import type { Machine } from '../../src/ports/machine.ts'
import type { PeerChannel } from '../../src/cluster/peer-channel.ts'

const json = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value))
const text = (payload: Uint8Array): string => new TextDecoder().decode(payload)

/** What a member of release 0.1 answers: JSON alone, and to anything else that it is none. */
function channelOf(answer: (method: string, request: unknown) => Uint8Array): {
  readonly peers: PeerChannel
  readonly asked: string[]
} {
  const asked: string[] = []
  const call = (_to: string, method: string, payload: Uint8Array): Promise<Uint8Array> => {
    asked.push(`${method} ${formOf(payload)}`)
    if (formOf(payload) === 'protobuf') {
      const detail = 'the message is no JSON'
      return Promise.reject(new Problem('COULD_NOT_VALIDATE', { detail }))
    }
    return Promise.resolve(answer(method, JSON.parse(text(payload))))
  }
  return { peers: { call } as unknown as PeerChannel, asked }
}

// As release 0.1 writes them, word for word.
type Fields = Record<string, unknown>
const ofRelease01: readonly (readonly [string, DescMessage, Fields, Fields])[] = [
  [
    'a change',
    peerMethods.change.request,
    { verb: 'replace', oldId: 'n1', newId: 'n4', confirmation: null },
    { verb: 'replace', oldId: 'n1', newId: 'n4' },
  ],
  [
    'a plan',
    peerMethods.plan.answer,
    {
      plan: {
        change: { verb: 'demote', id: 'n1' },
        isNeeded: true,
        votersBefore: ['n1', 'n2', 'n3'],
        votersAfter: ['n2', 'n3'],
        toleranceBefore: 1,
        toleranceAfter: 0,
        warnings: ['read this'],
        confirmation: 'demote n1',
      },
    },
    {
      plan: {
        change: { verb: 'demote', id: 'n1' },
        isNeeded: true,
        votersBefore: ['n1', 'n2', 'n3'],
        votersAfter: ['n2', 'n3'],
        toleranceBefore: 1,
        toleranceAfter: 0,
        warnings: ['read this'],
        confirmation: 'demote n1',
      },
    },
  ],
  [
    'a request to come in',
    peerMethods.enter.request,
    {
      clusterId: 'c',
      storeId: '000102030405060708090a0b0c0d0e0f',
      address: 'a.test:1',
      version: 'v0.1.0',
      featureLevel: 1,
      startedAtMs: 1_700_000_000_123,
    },
    {
      clusterId: 'c',
      storeId: Uint8Array.from({ length: 16 }, (_, at) => at),
      address: 'a.test:1',
      version: 'v0.1.0',
      featureLevel: 1,
      startedAtMs: 1_700_000_000_123n,
    },
  ],
  [
    'the answer to it',
    peerMethods.enter.answer,
    {
      outcome: 'added',
      clusterId: 'c',
      generation: 2,
      configuration: 'CgECAw==',
      configurationIndex: 9,
    },
    {
      outcome: 'added',
      clusterId: 'c',
      generation: 2,
      configuration: Uint8Array.of(10, 1, 2, 3),
      configurationIndex: 9n,
    },
  ],
  ['who is reached', peerMethods.reach.answer, { reached: ['n2'] }, { reached: ['n2'] }],
  ['a digest', peerMethods.digest.answer, { digest: 'aa' }, { digest: 'aa' }],
  [
    'an offered state',
    peerMethods.snapshot.answer,
    { id: 1, term: 2, index: 3 },
    { id: 1n, term: 2n, index: 3n },
  ],
]

test.each(ofRelease01)('%s of release 0.1 is understood', (_what, schema, sent, read) => {
  expect(decodePeerMessage(schema, json(sent))).toEqual(create(schema, read))
})

test.each(ofRelease01)(
  '%s is written for release 0.1 as it writes it',
  (_what, schema, sent, of) => {
    const written = JSON.parse(text(encodePeerMessage(schema, of, 'json'))) as object
    expect(written).toMatchObject(sent)
    expect(decodePeerMessage(schema, encodePeerMessage(schema, of))).toEqual(create(schema, of))
  },
)

test('a call for the leader stands in either form', () => {
  const { request } = peerMethods.transfer
  for (const form of ['json', 'protobuf'] as const) {
    const payload = encodeLeaderCall(request, { target: 'n2' }, 700, form)
    expect(formOf(payload)).toBe(form)
    const opened = decodeLeaderCall(request, payload)
    expect([opened.timeoutMs, opened.request.target]).toEqual([700, 'n2'])
  }
  const written: unknown = JSON.parse(text(encodeLeaderCall(request, {}, 1, 'json')))
  expect(written).toMatchObject({ request: { target: null }, timeoutMs: 1 })
})

test('what is no message is refused with its name', () => {
  const { request } = peerMethods.enter
  const wrong = [Uint8Array.of(0x0a, 0x09, 0x31), json({ storeId: 7 }), json({ startedAtMs: -1 })]
  for (const payload of [...wrong, new TextEncoder().encode('{')]) {
    const expected = expect.objectContaining({ code: 'COULD_NOT_VALIDATE' })
    expect(() => decodePeerMessage(request, payload)).toThrow(expected)
  }
})

test('a member of release 0.1 is asked again in JSON; another refusal is the answer', async () => {
  const { peers, asked } = channelOf(() => json({ digest: 'aa' }))
  const answer = await callPeer(peers, 'n2', peerMethods.digest, { index: 3n }, 1000)
  expect(answer.digest).toBe('aa')
  expect(asked).toEqual(['state.digest protobuf', 'state.digest json'])

  let calls = 0
  const refusing = {
    call: () => {
      calls += 1
      return Promise.reject(new Problem('COULD_NOT_VALIDATE', { detail: 'the index is none' }))
    },
  } as unknown as PeerChannel
  const refused = callPeer(refusing, 'n2', peerMethods.digest, {}, 1000)
  await expect(refused).rejects.toMatchObject({ detail: 'the index is none' })
  expect(calls).toBe(1)
})

test.each([
  ['is taken', '', null],
  ['that was damaged on its way is not', 'x', 'checksum mismatch'],
])('a state of a member of release 0.1 %s', async (_what, damage, fault) => {
  const pieces = ['first ', 'second ', 'last']
  const sha256 = createHash('sha256').update(pieces.join('')).digest()
  const { peers } = channelOf((method, request) => {
    if (method === 'state.snapshot') return json({ id: 4, term: 1, index: 7 })
    const { number } = request as { readonly number: number }
    const data = new TextEncoder().encode(`${pieces[number] ?? ''}${number === 1 ? damage : ''}`)
    const isLast = number === pieces.length - 1
    return Buffer.concat([Uint8Array.of(isLast ? 1 : 0), isLast ? sha256 : Buffer.alloc(0), data])
  })
  let written = ''
  let isAbandoned = false
  const receiver = {
    write: (chunk: Uint8Array) => {
      written += text(chunk)
      return Promise.resolve()
    },
    finish: () => Promise.resolve({ position: { term: 1, index: 7 } }),
    abandon: () => {
      isAbandoned = true
      return Promise.resolve()
    },
  }
  const machine = { receive: () => Promise.resolve(receiver) } as unknown as Machine
  const fetched = fetchState({ peers, machine }, 'n2', 5, () => false)
  if (fault === null) {
    await fetched
    expect(written).toBe(pieces.join(''))
  } else {
    await expect(fetched).rejects.toThrow(fault)
  }
  expect(isAbandoned).toBe(fault !== null)
})
