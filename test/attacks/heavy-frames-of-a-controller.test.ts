import { afterEach, beforeEach, expect, test } from 'vitest'

import { messageBounds } from '../../src/channel/message-bounds.ts'
import { eventually, TestNetwork } from '../router/support.ts'
import { empties, wrapped } from '../fabric/heavy-bodies.ts'

// The attack: a compromised controller, or another router through a controller, stops connected
// routers with frames that cost them a thousand times what they cost the sender.

let network: TestNetwork
beforeEach(async () => {
  network = await TestNetwork.create()
})
afterEach(async () => {
  await network.close()
})

test.each([
  ['empty peers', 1050, empties(1, messageBounds.peerStateChange.elementsMax / 5 + 1)],
  ['one peer with many listeners', 1050, wrapped(1, empties(4, 2000))],
  ['empty addresses', 1037, empties(1, messageBounds.updateCtrlAddresses.elementsMax + 1)],
  ['empty names to inspect', 1013, empties(1, messageBounds.inspect.elementsMax + 1)],
])(
  'a router refuses a message with %s before decoding it, and after another such message closes the channel to that controller',
  async (_, contentType, body) => {
    const [a, b] = [await network.controller('a'), await network.controller('b')]
    await network.running([a.address])
    await eventually(() => a.isConnected).toBe(true)
    a.tell([a, b], 5, true)
    await eventually(() => b.isConnected).toBe(true)
    a.send({ contentType, body })
    await eventually(() =>
      a.ofType(2).filter(({ headers }) => headers.get(2)?.[0] === 0),
    ).toHaveLength(1)
    a.send({ contentType, body })
    await eventually(() => a.hellos.length).toBeGreaterThan(1)
    expect(b.hellos).toHaveLength(1)
    expect(b.isConnected).toBe(true)
  },
)
