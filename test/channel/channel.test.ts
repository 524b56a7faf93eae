import { duplexPair } from 'node:stream'

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

import { Channel } from '../../src/channel/channel.ts'
import type { ChannelMessage } from '../../src/channel/frame.ts'
import { helloAcceptedMessage, helloRefusedMessage, readHello } from '../../src/channel/hello.ts'
import { encodeFlag, encodeInt32, encodeText, encodeUint64 } from '../../src/channel/headers.ts'
import { channelLimits, type ChannelLimits } from '../../src/channel/limits.ts'
import { UNLISTED_BODY_BYTES_MAX } from '../../src/channel/message-bounds.ts'
import { addressesMessage } from '../../src/channel/messages/control.ts'
import { scheduleByIntervals, scheduleBySharedTimer } from '../support/fake-schedule.ts'
import { frameOf, Pipe, settle } from './pipe.ts'

let nowMs = 1000
const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs }

beforeEach(() => {
  nowMs = 1000
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
  scheduleByIntervals()
})
afterEach(() => {
  scheduleBySharedTimer()
  vi.useRealTimers()
})

async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 500) {
    nowMs += Math.min(500, left)
    await vi.advanceTimersByTimeAsync(Math.min(500, left))
    await settle()
  }
}

interface Rig {
  readonly pipe: Pipe
  readonly channel: Channel
  readonly got: ChannelMessage[]
  readonly closed: string[]
}

/** A channel whose hello is answered immediately, unless `isOpened` is false. */
function rigged(
  changes: Partial<ChannelLimits> = {},
  isOpened = true,
  onMessage: () => void = () => undefined,
): Rig {
  const pipe = new Pipe()
  const rig: Rig = {
    pipe,
    got: [],
    closed: [],
    channel: new Channel({
      socket: pipe,
      limits: { ...channelLimits, ...changes },
      clock,
      onHello: (message) => {
        const hello = readHello(message)
        if (hello !== null && isOpened)
          rig.channel.open(helloAcceptedMessage(hello, 'ctrl1', new Map()))
      },
      onMessage: (message) => {
        rig.got.push(message)
        onMessage()
        return null
      },
      onClose: (reason) => rig.closed.push(reason),
    }),
  }
  return rig
}

const hello = { contentType: 0, sequence: -1, body: encodeText('er1') }

async function opened(changes: Partial<ChannelLimits> = {}, onMessage?: () => void): Promise<Rig> {
  const rig = rigged(changes, true, onMessage)
  rig.pipe.say(hello)
  await settle()
  return rig
}

describe('a channel', () => {
  test('responds to the hello with a message of sequence -1 before it sends any other message', async () => {
    const { pipe, channel, got } = rigged()
    pipe.say(hello)
    pipe.say({ contentType: 1055, sequence: 4 })
    await settle()
    expect(pipe.sent).toHaveLength(1)
    expect(pipe.sent[0]).toMatchObject({ contentType: 2, sequence: -1 })
    expect(pipe.sent[0]?.headers.get(8)).toEqual(encodeText('ctrl1'))
    expect(got).toMatchObject([{ contentType: 1055, sequence: 4 }])
    channel.close('over')
  })

  test('reads nothing after a hello until it has answered the hello', async () => {
    const { pipe, got, channel } = rigged({}, false)
    pipe.say(hello)
    for (let at = 0; at < 100; at += 1) pipe.say({ contentType: 9, sequence: at })
    await settle()
    expect(got).toEqual([])
    expect(pipe.isPaused()).toBe(true)
    channel.close('over')
  })

  test('accepts a message larger than a hello, even if the message arrives before the channel has answered the hello', async () => {
    const { pipe, got, closed, channel } = rigged({}, false)
    const address = `tls:${'a'.repeat(channelLimits.helloBodyBytesMax)}:1`
    const controllers = [
      { id: 'a', addresses: [address], clientApis: [], publicKeySha256: new Uint8Array() },
    ]
    const list = { controllers, removed: [], index: 1, configurationIndex: 1, isLeader: false }
    const { body = new Uint8Array() } = addressesMessage(list)
    const large = frameOf({ contentType: 1037, sequence: 1, body })
    pipe.push(Buffer.concat([frameOf(hello), large]))
    await settle()
    channel.open(null)
    await settle()
    expect(got.map((message) => message.body.length)).toEqual([body.length])
    expect(closed).toEqual([])
    channel.close('over')
  })

  test.each([-1, 0, 7])(
    'names the sequence of a hello, here %i, as the reply sequence of its response',
    async (sequence) => {
      const accepting = rigged()
      accepting.pipe.say({ ...hello, sequence })
      const refusing = rigged({}, false)
      refusing.pipe.say({ ...hello, sequence })
      await settle()
      refusing.channel.close('no', helloRefusedMessage('the router is disabled', 'notPermitted'))
      await settle()
      for (const { pipe, channel } of [accepting, refusing]) {
        expect(pipe.sent[0]?.headers.get(1)).toEqual(encodeInt32(sequence))
        channel.close('over')
      }
    },
  )

  test('refuses a hello with a reason, and then closes', async () => {
    const { pipe, channel, closed } = rigged({}, false)
    pipe.say(hello)
    await settle()
    channel.close('no', helloRefusedMessage('the router is disabled', 'notPermitted'))
    await settle()
    expect(closed).toEqual(['no'])
    const [answer] = pipe.sent
    expect(answer?.headers.get(2)).toEqual(encodeFlag(false))
    expect(answer?.headers.get(13)).toEqual(encodeInt32(2))
    expect(Buffer.from(answer?.body ?? []).toString()).toBe('the router is disabled')
    expect(pipe.writableEnded).toBe(true)
  })

  test('numbers the messages that it sends, and matches replies by this number', async () => {
    const { pipe, channel, got } = await opened()
    const first = channel.request({ contentType: 20_000 })
    const second = channel.request({ contentType: 20_000 })
    expect(pipe.sent.slice(1).map(({ sequence }) => sequence)).toEqual([1, 2])
    const replyTo = (sequence: number) => new Map([[1, encodeInt32(sequence)]])
    pipe.say({ contentType: 2, sequence: 1, headers: replyTo(2), body: encodeText('b') })
    pipe.say({ contentType: 2, sequence: 2, headers: replyTo(1), body: encodeText('a') })
    pipe.say({ contentType: 1022, sequence: 3, headers: replyTo(77) })
    expect((await first).body).toEqual(encodeText('a'))
    expect((await second).body).toEqual(encodeText('b'))
    await settle()
    expect(got).toMatchObject([{ contentType: 1022 }])
    channel.close('over')
  })

  test('makes a request fail after its timeout or when the channel closes', async () => {
    const { channel } = await opened({ repliesWaitingMax: 2 })
    const late = channel.request({ contentType: 20_000 }, 700)
    const lost = channel.request({ contentType: 20_000 })
    await expect(channel.request({ contentType: 20_000 })).rejects.toThrow('too many')
    const isLate = expect(late).rejects.toThrow('no reply within 700 ms')
    await pass(1000)
    await isLate
    const isLost = expect(lost).rejects.toThrow('the channel is closed: over')
    channel.close('over')
    await isLost
    expect(channel.send({ contentType: 1 })).toBe(false)
  })

  test('copies the headers that must be reflected from a request into its reply', async () => {
    const { pipe, channel } = await opened()
    const headers = new Map([
      [128, encodeUint64(99n)],
      [127, encodeText('not this')],
      [256, encodeText('nor this')],
    ])
    pipe.say({ contentType: 3, sequence: 5, headers })
    await settle()
    const answer = pipe.sent.at(-1)
    expect(answer?.contentType).toBe(2)
    expect([...(answer?.headers ?? [])].sort(([a], [b]) => a - b)).toEqual([
      [1, encodeInt32(5)],
      [2, encodeFlag(true)],
      [128, encodeUint64(99n)],
    ])
    channel.close('over')
  })
})

describe('heartbeats', () => {
  test('are sent every ten seconds, as part of another message or as a separate message', async () => {
    const { pipe, channel } = await opened()
    await pass(10_000)
    expect(pipe.ofType(5)).toHaveLength(1)
    expect(pipe.ofType(5)[0]?.headers.get(5)).toEqual(encodeUint64(BigInt(nowMs) * 1_000_000n))
    nowMs += 10_000
    channel.send({ contentType: 1037 })
    expect(pipe.sent.at(-1)?.headers.has(5)).toBe(true)
    await pass(2000)
    expect(pipe.ofType(5)).toHaveLength(1)
    channel.close('over')
  })

  test('from the peer are answered in the next message, or shortly afterwards in a separate message', async () => {
    const { pipe, channel, got } = await opened()
    pipe.say({ contentType: 5, headers: new Map([[5, encodeUint64(123n)]]) })
    await settle()
    expect(pipe.ofType(5)).toEqual([])
    await pass(500)
    expect(pipe.ofType(5)[0]?.headers.get(6)).toEqual(encodeUint64(123n))
    pipe.say({ contentType: 1052, sequence: 3, headers: new Map([[5, encodeUint64(124n)]]) })
    await settle()
    const [asked] = got
    if (asked !== undefined) channel.replyResult(asked, true)
    expect(pipe.sent.at(-1)?.headers.get(6)).toEqual(encodeUint64(124n))
    await pass(500)
    expect(pipe.ofType(5)).toHaveLength(1)
    channel.close('over')
  })

  test('close the channel if no response arrives within a minute after the channel opens, or within half a minute after a previous response', async () => {
    const silent = await opened()
    await pass(60_000)
    expect(silent.closed).toEqual([])
    await pass(2000)
    expect(silent.closed).toEqual(['no answer to heartbeats'])

    const { pipe, closed } = await opened()
    await pass(50_000)
    pipe.say({ contentType: 5, headers: new Map([[6, encodeUint64(1n)]]) })
    await pass(29_000)
    expect(closed).toEqual([])
    await pass(3000)
    expect(closed).toEqual(['no answer to heartbeats'])
  })
})

describe('the limits of a channel', () => {
  test('restrict the size of a hello more than the size of later messages', async () => {
    const { pipe, closed } = rigged()
    pipe.say({ ...hello, body: new Uint8Array(4193) })
    await settle()
    expect(closed).toEqual(['malformed: 4193 bytes of body'])
    expect(pipe.destroyed).toBe(true)

    const { pipe: other, got, channel } = await opened()
    other.say({ contentType: 9, body: new Uint8Array(4193) })
    await settle()
    expect(got).toHaveLength(1)
    channel.close('over')
  })

  test('restrict the bytes that the channel has sent but the peer has not read', async () => {
    const { pipe, channel, closed } = await opened({ unsentBytesMax: 4096 })
    pipe.isRead = false
    const body = new Uint8Array(1500)
    expect(channel.send({ contentType: 1037, body })).toBe(true)
    expect(channel.send({ contentType: 1037, body })).toBe(true)
    expect(channel.send({ contentType: 1037, body })).toBe(false)
    expect(closed).toEqual(['the peer does not read'])
  })

  test('stop the channel from reading while its peer does not read', async () => {
    const { pipe, channel, got } = await opened()
    pipe.isRead = false
    channel.send({ contentType: 1037, body: new Uint8Array(1500) })
    pipe.say({ contentType: 1, sequence: 1 })
    pipe.say({ contentType: 1, sequence: 2 })
    await settle()
    expect(got).toEqual([])
    pipe.readOn()
    await settle()
    expect(got).toHaveLength(2)
    channel.close('over')
  })

  test('restrict the queued data: further data is not accepted, and the channel stays open', async () => {
    const { pipe, channel, closed } = await opened({ trySendBytesMax: 4096 })
    pipe.isRead = false
    const data = { contentType: 1100, body: new Uint8Array(1000) }
    // No bytes wait, so even a message above the limit is sent.
    expect(channel.trySend({ ...data, body: new Uint8Array(2500) }, 2000)).toBe(true)
    expect(channel.trySend(data, 2000)).toBe(false)
    expect(channel.trySend(data, 1e9)).toBe(true)
    expect(channel.trySend(data, 1e9)).toBe(false)
    expect(channel.send({ contentType: 1037 })).toBe(true)
    expect(closed).toEqual([])
    pipe.readOn()
    await settle()
    expect(pipe.sent.slice(1).map(({ contentType, sequence }) => [contentType, sequence])).toEqual([
      [1100, 1],
      [1100, 2],
      [1037, 3],
    ])
    channel.close('over')
    expect(channel.trySend(data, 1e9)).toBe(false)
  })

  test('restrict the messages per second: further messages are delayed, and no message is lost', async () => {
    const { pipe, channel, got } = await opened({ messagesPerSecondMax: 300 })
    for (let at = 0; at < 700; at += 1) pipe.say({ contentType: 1007, sequence: at })
    await settle()
    expect(got).toHaveLength(300)
    await pass(1000)
    expect(got).toHaveLength(600)
    await pass(1000)
    expect(got.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 700 }, (_, at) => at))
    channel.close('over')
  })

  test('restrict the bytes per second', async () => {
    const { pipe, channel, got } = await opened({ bytesPerSecondMax: 10_000 })
    for (let at = 0; at < 4; at += 1) pipe.say({ contentType: 1007, body: new Uint8Array(6000) })
    await settle()
    expect(got.length).toBeLessThanOrEqual(2)
    await pass(4000)
    expect(got).toHaveLength(4)
    channel.close('over')
  })
})

describe('data messages on a channel', () => {
  const unmeteredTypes = new Set([1100, 1103])
  const times = (count: number, contentType: number): Buffer =>
    Buffer.concat(Array.from({ length: count }, (_, at) => frameOf({ contentType, sequence: at })))
  const typesOf =
    ({ got }: Rig) =>
    (contentType: number): number =>
      got.filter((message) => message.contentType === contentType).length

  test('have no rate limit, unlike all other messages', async () => {
    const rig = await opened({
      messagesPerSecondMax: 10,
      bytesPerSecondMax: 10_000,
      unmeteredTypes,
    })
    const count = typesOf(rig)
    for (let at = 0; at < 4; at += 1) rig.pipe.push(times(300, 1100))
    // The channel handles 64 messages in a row; these turns of the event loop let it continue.
    for (let turns = 0; turns < 4; turns += 1) await settle()
    expect(count(1100)).toBe(1200)
    rig.pipe.push(times(25, 1007))
    rig.pipe.push(times(300, 1100))
    await settle()
    expect([count(1007), count(1100)]).toEqual([10, 1200])
    await pass(3000)
    expect([count(1007), count(1100)]).toEqual([25, 1500])
    rig.channel.close('over')
  })

  test('count toward the rate limit if the channel skips their body because it is too large', async () => {
    const rig = await opened({ messagesPerSecondMax: 2, unmeteredTypes })
    const body = new Uint8Array(UNLISTED_BODY_BYTES_MAX + 1)
    for (let at = 0; at < 2; at += 1) rig.pipe.say({ contentType: 1103, body })
    rig.pipe.push(times(5, 1007))
    await settle()
    expect([typesOf(rig)(1103), typesOf(rig)(1007)]).toEqual([2, 0])
    rig.channel.close('over')
  })

  test('are read even if the peer does not read, but then requests get no more replies', async () => {
    const rig = await opened({
      trySendBytesMax: 2000,
      unsentBytesMax: 8000,
      messagesPerSecondMax: Infinity,
      unmeteredTypes,
    })
    rig.pipe.isRead = false
    rig.channel.trySend({ contentType: 1100, body: new Uint8Array(1900) }, 2000)
    rig.pipe.push(times(1, 1007))
    rig.pipe.push(times(500, 1100))
    await settle()
    expect([typesOf(rig)(1007), typesOf(rig)(1100)]).toEqual([1, 500])
    // Each is answered.
    for (let at = 0; at < 1000; at += 1) rig.pipe.say({ contentType: 3, sequence: at })
    await settle()
    expect(rig.pipe.isPaused()).toBe(true)
    expect(rig.channel.unsentBytes).toBeLessThan(6000)
    rig.pipe.readOn()
    await settle()
    expect(rig.pipe.ofType(2)).toHaveLength(1001)
    expect(rig.closed).toEqual([])
    rig.channel.close('over')
  })

  test('flow in both directions at the same time, along with control messages', async () => {
    const [near, far] = duplexPair({ highWaterMark: 4096 })
    const limits = { ...channelLimits, unmeteredTypes, messagesPerSecondMax: Infinity }
    const got = [0, 0]
    const ends = [near, far].map((socket, at): Channel => {
      const one: Channel = new Channel({
        socket,
        limits,
        clock,
        ...(at === 0 ? {} : { hello: { ...hello, headers: new Map() } }),
        onHello: (message) => {
          const read = readHello(message)
          one.open(read === null ? null : helloAcceptedMessage(read, 'r1', new Map()))
        },
        onMessage: () => {
          got[at] = (got[at] ?? 0) + 1
          return null
        },
        onClose: (reason) => expect(reason).toBe('over'),
      })
      return one
    })
    await settle()
    const count = 2000
    for (const one of ends) {
      let left = count
      const goOn = (): void => {
        for (; left > 0; left -= 1) {
          if (left % 10 === 0) one.send({ contentType: 3 })
          if (!one.trySend({ contentType: 1100, body: new Uint8Array(500) }, 65_536)) break
        }
        if (left > 0) one.onceWritable(goOn)
      }
      goOn()
    }
    for (let turn = 0; turn < 2000 && got.some((each) => each < count); turn += 1) await settle()
    // The count includes answers to the latency probes.
    expect(Math.min(...got)).toBeGreaterThanOrEqual(count)
    for (const one of ends) one.close('over')
  })
})

describe('a message that a channel sends', () => {
  test('is written without a copy if its body is large, and in a single write if its body is small', async () => {
    const { pipe, channel } = await opened()
    const written = vi.spyOn(pipe, 'write')
    const large = new Uint8Array(10_240).fill(7)
    channel.send({ contentType: 1100, body: large })
    channel.send({ contentType: 1037, body: new Uint8Array(200) })
    await settle()
    const pieces = written.mock.calls.map(([piece]) => piece as Uint8Array)
    expect(pieces.map(({ length }) => length)).toEqual([20, 10_240, 220])
    expect(pieces[1]).toBe(large)
    expect(pipe.sent.slice(1).map(({ body }) => body.length)).toEqual([10_240, 200])
    channel.close('over')
  })

  test('is sent by trySend at the end of the event loop turn, in order, and before a close', async () => {
    const { pipe, channel } = await opened()
    const sent = (): number[] => pipe.sent.slice(1).map(({ contentType }) => contentType)
    channel.trySend({ contentType: 1100 }, 1000)
    channel.send({ contentType: 1037 })
    channel.trySend({ contentType: 1101 }, 1000)
    expect(sent()).toEqual([])
    await new Promise<void>((done) => process.nextTick(done))
    expect(sent()).toEqual([1100, 1037, 1101])
    channel.send({ contentType: 1037 })
    expect(sent()).toHaveLength(4)
    channel.trySend({ contentType: 1100 }, 1000)
    channel.close('over')
    expect(sent()).toHaveLength(5)
    await settle()
    expect(pipe.destroyed).toBe(true)
  })

  test('does not contain the heartbeat headers of the channel from which it was forwarded', async () => {
    const { pipe, channel, got } = await opened()
    const stamps = [
      [5, encodeUint64(1n)],
      [6, encodeUint64(2n)],
    ] as const
    const headers = new Map<number, Uint8Array>([...stamps, [2256, encodeText('circuit')]])
    channel.send({ contentType: 1100, headers })
    pipe.say({ contentType: 1100, headers })
    await settle()
    const [read] = got
    if (read !== undefined) channel.trySend(read, 1000)
    await settle()
    const [own, passedOn] = pipe.ofType(1100)
    expect([...(own?.headers ?? [])]).toEqual([[2256, encodeText('circuit')]])
    // Only the heartbeat stamp of the peer is returned.
    expect([...(passedOn?.headers ?? [])].map(([key]) => key)).toEqual([2256, 6])
    expect(passedOn?.headers.get(6)).toEqual(encodeUint64(1n))
    channel.close('over')
  })
})

describe('a channel whose reading is paused', () => {
  test('delivers no further messages, stops reading, and delivers the messages in order once reading is resumed', async () => {
    const { pipe, got, channel } = await opened()
    channel.pauseReading()
    for (let at = 0; at < 20; at += 1) pipe.say({ contentType: 1007, sequence: at })
    await settle()
    expect(got).toEqual([])
    expect(pipe.isPaused()).toBe(true)
    channel.resumeReading()
    await settle()
    expect(got.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 20 }, (_, at) => at))
    channel.close('over')
    channel.resumeReading()
  })

  test('keeps back the messages that it has already read if a handler pauses the channel', async () => {
    const rig: Rig = await opened({}, () => rig.channel.pauseReading())
    const { pipe, got, channel } = rig
    pipe.push(Buffer.concat(Array.from({ length: 5 }, (_, sequence) => frameOf({ sequence }))))
    await settle()
    for (let at = 1; at <= 5; at += 1) {
      expect(got).toHaveLength(at)
      channel.resumeReading()
      channel.resumeReading()
      // The callback does not run within the call.
      expect(got).toHaveLength(at)
      await settle()
    }
    channel.close('over')
  })

  test('stays paused when a rate limit or the wait for its peer ends, and applies the rate limit again after the pause', async () => {
    const { pipe, got, channel } = await opened({ messagesPerSecondMax: 10 })
    pipe.push(Buffer.concat(Array.from({ length: 30 }, (_, sequence) => frameOf({ sequence }))))
    await settle()
    expect(got).toHaveLength(10)
    channel.pauseReading()
    await pass(5000)
    pipe.isRead = false
    channel.send({ contentType: 1037, body: new Uint8Array(1500) })
    pipe.readOn()
    await settle()
    expect(got).toHaveLength(10)
    channel.resumeReading()
    await settle()
    expect(got).toHaveLength(20)
    channel.close('over')
  })

  test('does not read what its peer sends', async () => {
    const rig = await opened({ unmeteredTypes: new Set([1100]) })
    rig.channel.pauseReading()
    const frame = frameOf({ contentType: 1100, body: new Uint8Array(1000) })
    let sent = 1
    for (; rig.pipe.push(frame) && sent < 1000; sent += 1);
    await settle()
    expect(sent).toBeLessThan(10)
    rig.channel.resumeReading()
    await settle()
    expect(rig.got).toHaveLength(sent)
    rig.channel.close('over')
  })

  test('counts the time before and after the pause as silence of the peer, but not the time of the pause', async () => {
    const { pipe, closed, channel } = await opened()
    pipe.say({ contentType: 5, headers: new Map([[6, encodeUint64(1n)]]) })
    await pass(20_000)
    channel.pauseReading()
    await pass(200_000)
    expect(closed).toEqual([])
    expect(channel.silentForMs).toBe(20_000)
    channel.resumeReading()
    await pass(9000)
    expect(closed).toEqual([])
    await pass(3000)
    expect(closed).toEqual(['no answer to heartbeats'])
  })

  test('measures no round trip time from a heartbeat response that arrived during the pause', async () => {
    const { pipe, channel } = await opened()
    const answer = { contentType: 5, headers: new Map([[6, encodeUint64(1n)]]) }
    await pass(10_000)
    nowMs += 20
    pipe.say(answer)
    await settle()
    expect(channel.roundTripMs).toBe(20)
    await pass(10_000)
    channel.pauseReading()
    pipe.say(answer)
    nowMs += 5000
    channel.resumeReading()
    await settle()
    expect(channel.silentForMs).toBe(0)
    expect(channel.roundTripMs).toBe(20)
    channel.close('over')
  })
})

describe('callbacks that run once a channel is writable', () => {
  const data = { contentType: 1100, body: new Uint8Array(1500) }

  test('are called once, after all queued messages were written, in a later event loop turn', async () => {
    const { pipe, channel } = await opened()
    const calls: string[] = []
    channel.onceWritable(() => calls.push('nothing waits'))
    expect(calls).toEqual([])
    await settle()
    expect(calls).toEqual(['nothing waits'])
    pipe.isRead = false
    // Fewer bytes than the number above which the socket emits `drain`.
    channel.trySend({ contentType: 1100, body: new Uint8Array(10) }, 1e6)
    const again = (): number => calls.push('all has gone')
    channel.onceWritable(again)
    channel.onceWritable(again)
    await settle()
    expect(calls).toHaveLength(1)
    pipe.readOn()
    await settle()
    expect(calls).toEqual(['nothing waits', 'all has gone'])
    channel.close('over')
  })

  test('are called one after the other, so that every caller makes progress', async () => {
    const { pipe, channel } = await opened()
    const turns: string[] = []
    const user = (name: string) => (): void => {
      turns.push(name)
      pipe.isRead = false
      while (channel.trySend(data, 4000));
      channel.onceWritable(users[name] ?? (() => undefined))
    }
    const users: Record<string, () => void> = {}
    for (const name of ['a', 'b', 'c']) users[name] = user(name)
    pipe.isRead = false
    channel.trySend(data, 1e6)
    for (const one of Object.values(users)) channel.onceWritable(one)
    for (let round = 0; round < 40 && turns.length < 6; round += 1) {
      pipe.readOn()
      await settle()
    }
    expect(turns.slice(0, 6)).toEqual(['a', 'b', 'c', 'a', 'b', 'c'])
    channel.close('over')
  })

  test('are not called after the channel has closed', async () => {
    const { pipe, channel } = await opened()
    let isCalled = false
    pipe.isRead = false
    channel.trySend(data, 1e6)
    channel.onceWritable(() => (isCalled = true))
    channel.close('over')
    channel.onceWritable(() => (isCalled = true))
    pipe.readOn()
    await settle()
    expect(isCalled).toBe(false)
  })
})

test('a channel reports its end only once, when its socket closes', async () => {
  const { pipe, closed } = await opened()
  pipe.push(null)
  await settle()
  expect(closed).toEqual(['closed by the peer'])
})
