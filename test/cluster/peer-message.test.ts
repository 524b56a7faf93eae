import { fromBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'

import type { PeerChannel } from '../../src/cluster/peer-channel.ts'
import {
  callPeer,
  decodeLeaderCall,
  decodePeerMessage,
  encodeLeaderCall,
  encodePeerMessage,
} from '../../src/cluster/peer/peer-message.ts'
import { peerMethods } from '../../src/cluster/peer/peer-methods.ts'
import { StateChunkEncoder } from '../../src/cluster/state-transfer/state-chunks.ts'
import { fetchState } from '../../src/cluster/state-transfer/state-transfer-client.ts'
import { Problem } from '../../src/lib/problems.ts'
import type { ReplicatedStateMachine } from '../../src/ports/replicated-state-machine.ts'

const bytes = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text)
const text = (payload: Uint8Array): string => new TextDecoder().decode(payload)

function channelOf(answer: (method: string, payload: Uint8Array) => Uint8Array): PeerChannel {
  const call = (_to: string, method: string, payload: Uint8Array): Promise<Uint8Array> =>
    Promise.resolve(answer(method, payload))
  return { call } as unknown as PeerChannel
}

describe('a message between controllers', () => {
  test('is the same after encoding and decoding', () => {
    const { answer } = peerMethods.snapshot
    const offer = { id: 1n, term: 2n, index: 3n }
    expect(decodePeerMessage(answer, encodePeerMessage(answer, offer))).toMatchObject(offer)
  })

  test('carries its time limit if it is sent to the leader', () => {
    const { request } = peerMethods.transfer
    const opened = decodeLeaderCall(request, encodeLeaderCall(request, { target: 'n2' }, 700))
    expect([opened.timeoutMs, opened.request.target]).toEqual([700, 'n2'])
  })

  test('is rejected with the name of its type if it cannot be decoded', () => {
    const { request } = peerMethods.enter
    for (const payload of [Uint8Array.of(0x0a, 0x09, 0x31), bytes('{}'), bytes('{')]) {
      const detail = 'the message is no AdmissionRequest'
      const expected = expect.objectContaining({ code: 'COULD_NOT_VALIDATE', detail })
      expect(() => decodePeerMessage(request, payload)).toThrow(expected)
    }
  })
})

describe('a call to another controller', () => {
  test('returns the decoded response', async () => {
    const { answer: schema } = peerMethods.digest
    const peers = channelOf(() => encodePeerMessage(schema, { digest: 'aa' }))
    const answer = await callPeer(peers, 'n2', peerMethods.digest, { index: 3n }, 1000)
    expect(answer.digest).toBe('aa')
  })

  test('is sent once and fails if the peer refuses it', async () => {
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
})

describe('a state that is read from another controller', () => {
  test.each([
    ['is written if all of its pieces arrive unchanged', '', null],
    ['is abandoned if a piece was damaged', 'x', 'chunk 1 is damaged'],
  ])('%s', async (_what, damage, fault) => {
    const pieces = ['first ', 'second ', 'last']
    const maker = new StateChunkEncoder()
    const state = {
      snapshotId: new Uint8Array(16),
      position: { term: 1, index: 7 },
      configuration: new Uint8Array(),
    }
    const peers = channelOf((method, payload) => {
      const { snapshot, piece } = peerMethods
      if (method === snapshot.name) {
        return encodePeerMessage(snapshot.answer, { id: 4n, term: 1n, index: 7n })
      }
      const number = Number(fromBinary(piece.request, payload).number)
      const isLast = number === pieces.length - 1
      const chunk = maker.make(state, { data: bytes(pieces[number] ?? ''), isLast })
      if (number === 1) chunk.data = bytes(`${pieces[number] ?? ''}${damage}`)
      return encodePeerMessage(piece.answer, chunk)
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
    const machine = {
      receive: () => Promise.resolve(receiver),
    } as unknown as ReplicatedStateMachine
    const fetched = fetchState({ peers, machine }, 'n2', 5, () => false)
    if (fault === null) {
      await fetched
      expect(written).toBe(pieces.join(''))
    } else {
      await expect(fetched).rejects.toThrow(fault)
    }
    expect(isAbandoned).toBe(fault !== null)
  })
})
