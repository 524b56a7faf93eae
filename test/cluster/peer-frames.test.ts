import { expect, test } from 'vitest'

import type { HostEvent } from '../../src/cluster/link.ts'
import { PeerFrames } from '../../src/cluster/peer/peer-rpc-transport.ts'

test('calls that a peer never answers and main has given up are forgotten, oldest first', () => {
  const events: HostEvent[] = []
  const frames = new PeerFrames({
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
