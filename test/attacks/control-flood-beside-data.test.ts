import { expect, test } from 'vitest'

import { Channel } from '../../src/channel/channel.ts'
import { channelLimits } from '../../src/channel/limits.ts'
import { circuitDataTypes } from '../../src/channel/messages/payload.ts'
import { frameOf, Pipe, settle } from '../channel/pipe.ts'
import { eventually } from '../support/eventually.ts'

// The attack: the peer of a channel for data, another router or an SDK, sends requests without end,
// because data messages are exempt from the rate limits of the channel.

const PROBES = 10_000
const PAYLOADS = 10_000
const [latency, payload] = [3, 1100]

test('control messages on a channel are rate limited even if data messages on it are not', async () => {
  const pipe = new Pipe()
  let payloads = 0
  const channel: Channel = new Channel({
    socket: pipe,
    limits: { ...channelLimits, unmeteredTypes: circuitDataTypes },
    // The clock does not advance, so the first second never ends.
    clock: { nowMs: () => 1, monotonicMs: () => 1 },
    onHello: () => channel.open(null),
    onMessage: () => {
      payloads += 1
      return null
    },
    onClose: () => undefined,
  })
  pipe.say({ contentType: 2, sequence: -1 })
  for (let at = 0; at < PAYLOADS; at += 1) pipe.push(frameOf({ contentType: payload }))
  await eventually(() => expect(payloads).toBe(PAYLOADS))
  for (let at = 0; at < PROBES; at += 1) pipe.push(frameOf({ contentType: latency }))
  await eventually(() => expect(pipe.ofType(2).length).toBe(channelLimits.messagesPerSecondMax))
  await settle()
  expect(pipe.isPaused()).toBe(true)
  expect(pipe.ofType(2).length).toBe(channelLimits.messagesPerSecondMax)
  channel.close('over')
})
