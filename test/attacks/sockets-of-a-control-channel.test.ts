import { afterEach, expect, test } from 'vitest'

import type { TLSSocket } from 'node:tls'

import { encodeFlag, encodeInt32, encodeText } from '../../src/channel/headers.ts'
import { channelLimits } from '../../src/channel/limits.ts'
import { channelHeaderKey } from '../../src/channel/numbers.ts'
import { defaultApiLimits } from '../../src/api/limits.ts'
import { routerLimits } from '../../src/fabric/limits.ts'
import { ProcessorShare } from '../../src/lib/bounds/processor-share.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { Pipe, settle } from '../channel/pipe.ts'
import { RouterStage } from '../fabric/stage.ts'

// The attack: somebody adds a socket to the control channel of a router, to send and receive its
// messages; or the router itself adds sockets to exceed the limits of its channel.

let stage = new RouterStage()
afterEach(() => {
  stage.channels.stop()
  stage = new RouterStage()
})

const version = encodeText('v2.0.3|abc|2026-01-01|linux|amd64')

interface Group {
  readonly id: Uint8Array
  readonly secret: Uint8Array
}

/** ID and secret of the group that the controller created for the first socket. */
function groupOf(first: Pipe): Group {
  const headers = first.sent[0]?.headers
  const id = headers?.get(channelHeaderKey.connectionId) ?? new Uint8Array()
  const secret = headers?.get(channelHeaderKey.groupSecret) ?? new Uint8Array()
  return { id, secret }
}

async function join(id: string, { id: groupId, secret }: Group): Promise<Pipe> {
  stage.admitNext(id)
  const pipe = new Pipe()
  stage.channels.accept(pipe as unknown as TLSSocket)
  const headers = new Map([
    [channelHeaderKey.helloVersion, version],
    [channelHeaderKey.type, encodeText('ctrl.high')],
    [channelHeaderKey.isGrouped, encodeFlag(true)],
    [channelHeaderKey.connectionId, groupId],
    [channelHeaderKey.groupSecret, secret],
  ])
  pipe.say({ contentType: 0, sequence: -1, headers, body: encodeText(id) })
  await settle()
  return pipe
}

const reasonOf = ({ sent: [answer] }: Pipe): string | null =>
  answer?.headers.get(channelHeaderKey.resultSuccess)?.[0] === 1
    ? null
    : Buffer.from(answer?.body ?? []).toString()

test('An additional socket that presents the ID and secret of a channel’s socket group carries requests and replies of the channel', async () => {
  const first = await stage.dial('er1')
  const second = await join('er1', groupOf(first))
  expect(reasonOf(second)).toBe(null)
  expect(second.sent[0]?.headers.get(channelHeaderKey.connectionId)).toEqual(groupOf(first).id)

  second.say({ contentType: 1, sequence: 7 })
  await settle()
  const answers = first.ofType(2).filter(({ body }) => Buffer.from(body).toString() === 'ok')
  expect(answers).toHaveLength(1)

  const channel = stage.channels.connection('er1')?.channel
  const reply = channel?.request({ contentType: 1042 })
  await settle()
  const sequence = first.ofType(1042)[0]?.sequence ?? 0
  const headers = new Map([[channelHeaderKey.replyFor, encodeInt32(sequence)]])
  second.say({ contentType: 2, sequence: 8, headers, body: encodeText('over the second') })
  expect(Buffer.from((await reply)?.body ?? []).toString()).toBe('over the second')
})

test('A control channel continues when an additional socket closes, but closes with its first socket', async () => {
  const first = await stage.dial('er1')
  const second = await join('er1', groupOf(first))
  const channel = stage.channels.connection('er1')?.channel
  const reply = channel?.request({ contentType: 1042 })
  second.destroy()
  await settle()
  expect(channel?.isClosed).toBe(false)
  const third = await join('er1', groupOf(first))
  expect(reasonOf(third)).toBe(null)
  first.destroy()
  await expect(reply).rejects.toThrow('closed')
  await settle()
  expect([third.destroyed, stage.channels.connection('er1')]).toEqual([true, undefined])
})

test('An additional socket is refused if it presents a wrong secret, or if it comes from a router to which the channel does not belong', async () => {
  const first = await stage.dial('er1')
  await stage.dial('er2')
  const { id, secret } = groupOf(first)
  const other = Uint8Array.from(secret, (byte) => byte ^ 1)
  const refusals = [
    await join('er1', { id, secret: other }),
    await join('er1', { id, secret: secret.subarray(1) }),
    await join('er2', { id, secret }),
    await join('er3', { id, secret }),
  ]
  expect(refusals.map(reasonOf)).toEqual([
    'the router has no channel of this group',
    'the router has no channel of this group',
    'the router has no channel of this group',
    'the router has no channel here',
  ])
  expect(first.destroyed).toBe(false)
})

test('A control channel has a limited number of sockets', async () => {
  const first = await stage.dial('er1')
  const { routerSocketsMax } = routerLimits
  const more: Pipe[] = []
  for (let at = 1; at < routerSocketsMax; at += 1) more.push(await join('er1', groupOf(first)))
  expect(more.map(reasonOf)).toEqual(more.map(() => null))
  expect(reasonOf(await join('er1', groupOf(first)))).toBe('the channel has too many sockets')
})

test('The sockets of a control channel share one rate limit', async () => {
  // No time passes, because the limit is per second and a busy machine needs longer for the test.
  const stoppedMs = systemClock.monotonicMs()
  const clock = { ...systemClock, monotonicMs: () => stoppedMs }
  stage = new RouterStage(new ProcessorShare(defaultApiLimits, systemClock), clock)
  const first = await stage.dial('er1')
  const second = await join('er1', groupOf(first))
  const { messagesPerSecondMax } = channelLimits
  const half = messagesPerSecondMax * 0.75
  const answered = (): number =>
    first.ofType(2).filter(({ body }) => Buffer.from(body).toString() === 'ok').length
  for (let at = 0; at < half; at += 1) first.say({ contentType: 1, sequence: at + 1 })
  for (let at = 0; at < half; at += 1) second.say({ contentType: 1, sequence: at + 1 })
  for (let at = 0; at < 200; at += 1) await settle()
  expect(answered()).toBeLessThanOrEqual(messagesPerSecondMax)
  expect(answered()).toBeGreaterThan(half)
})
