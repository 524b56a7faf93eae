import { create } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import { NoteSchema } from '../../proto/gen/mesh_pb.ts'
import type { ConsensusThreadEvent } from '../../src/cluster/thread-channel.ts'
import { PeerRpc } from '../../src/cluster/peer/peer-rpc.ts'
import { PeerRpcTransport } from '../../src/cluster/peer/peer-rpc-transport.ts'

test('at most 2,048 outstanding calls are kept, and the oldest ones are discarded', () => {
  const events: ConsensusThreadEvent[] = []
  const frames = new PeerRpcTransport({
    forward: () => true,
    answer: () => undefined,
    callerOf: () => null,
    post: (event) => events.push(event),
  })
  const payload = new Uint8Array(0)
  for (let id = 1; id <= 10_000; id += 1) {
    frames.onCommand({ type: 'call', id, to: 'b', method: 'm', payload })
  }
  frames.onLinkLost('b')
  expect(events.length).toBeLessThanOrEqual(2048)
  expect(events.at(-1)).toMatchObject({ type: 'callAnswered', id: 10_000 })
})

test('a one-way message is transferred between threads without the rest of its frame', () => {
  const transfers: (readonly ArrayBuffer[])[] = []
  const frames = new PeerRpcTransport({
    forward: () => true,
    answer: () => undefined,
    callerOf: () => null,
    post: (_event, transfer = []) => transfers.push(transfer),
  })
  const frame = new Uint8Array(100).fill(7)
  const value = create(NoteSchema, { topic: 't', payload: frame.subarray(10, 20) })
  frames.onFrame('b', { case: 'note', value }, false)
  expect(transfers.map((buffers) => buffers.map((buffer) => [...new Uint8Array(buffer)]))).toEqual([
    [new Array(10).fill(7)],
  ])
})

test('a one-way message from the main thread is transferred to the Raft thread', () => {
  const transfers: (readonly ArrayBuffer[])[] = []
  const rpc = new PeerRpc(
    (_command, transfer = []) => transfers.push(transfer),
    () => undefined,
  )
  rpc.handle({ type: 'link', peer: 'b', isReady: true })
  const payload = new Uint8Array([1, 2, 3])
  rpc.note('b', 't', payload)
  expect(transfers).toEqual([[payload.buffer]])
})
