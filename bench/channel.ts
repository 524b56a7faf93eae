import type { AddressInfo } from 'node:net'
import { connect, createServer, type TLSSocket } from 'node:tls'

import { Channel } from '../src/channel/channel.ts'
import { helloAcceptedMessage, readHello } from '../src/channel/hello.ts'
import { encodeInt32, encodeText, encodeUint64 } from '../src/channel/headers.ts'
import { channelLimits } from '../src/channel/limits.ts'
import { channelContentType, HELLO_SEQUENCE } from '../src/channel/numbers.ts'
import { systemClock } from '../src/lib/clock.ts'
import { newCa } from '../test/support/authorities.ts'
import { heading, spread } from './support/report.ts'

// Measures the cost of a data frame for both peers of a channel together, including TLS: in one
// direction, over a local TLS connection. Measures the processor time of the whole process, so
// other load on the machine has little influence. `node bench/channel.ts`

const PAYLOAD = 1100
const ROUNDS = 7
const QUEUED_BYTES_MAX = 1024 * 1024

const limits = { ...channelLimits, unmeteredTypes: new Set([PAYLOAD]) }

async function socketPair(): Promise<{ near: TLSSocket; far: TLSSocket }> {
  const { certificatePem, privateKeyPem } = await newCa('bench', Date.now())
  const server = createServer({ cert: certificatePem, key: privateKeyPem })
  const accepted = Promise.withResolvers<TLSSocket>()
  server.on('secureConnection', accepted.resolve)
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  const near = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
  const far = await accepted.promise
  server.close()
  return { near, far }
}

/** Calls back when this number of payloads has arrived. */
class Count {
  #left = 0
  #done: () => void = () => undefined

  reach(count: number): Promise<void> {
    this.#left = count
    return new Promise((done) => (this.#done = done))
  }

  add(): void {
    this.#left -= 1
    if (this.#left === 0) this.#done()
  }
}

async function channelPair(count: Count): Promise<Channel> {
  const { near, far } = await socketPair()
  const ends = { limits, clock: systemClock, onClose: (reason: string) => console.error(reason) }
  const reader: Channel = new Channel({
    ...ends,
    socket: far,
    onHello: (message) => {
      const hello = readHello(message)
      if (hello !== null) reader.open(helloAcceptedMessage(hello, 'reader', new Map()))
    },
    onMessage: () => {
      count.add()
      return null
    },
  })
  const opened = Promise.withResolvers<Channel>()
  const writer: Channel = new Channel({
    ...ends,
    socket: near,
    hello: {
      contentType: channelContentType.hello,
      sequence: HELLO_SEQUENCE,
      headers: new Map(),
      body: encodeText('writer'),
    },
    onHello: () => {
      writer.open(null)
      opened.resolve(writer)
    },
    onMessage: () => null,
  })
  return await opened.promise
}

async function send(writer: Channel, count: Count, frames: number, bytes: number): Promise<void> {
  const body = new Uint8Array(bytes).fill(7)
  const circuitId = encodeText('4Rz6sNbUd')
  let sent = 0
  const goOn = (): void => {
    for (; sent < frames; sent += 1) {
      const headers = new Map([
        [2256, circuitId],
        [2257, encodeUint64(BigInt(sent))],
        [2258, encodeInt32(0)],
      ])
      if (!writer.trySend({ contentType: PAYLOAD, headers, body }, QUEUED_BYTES_MAX)) break
    }
    if (sent < frames) writer.onceWritable(goOn)
  }
  const isOver = count.reach(frames)
  goOn()
  await isOver
}

console.log(heading('frames over a channel: processor time, min / median / max of the rounds'))
const count = new Count()
const writer = await channelPair(count)
for (const [what, bytes, frames] of [
  ['payloads of 10 KiB', 10_240, 10_000],
  ['messages of 200 bytes', 200, 50_000],
] as const) {
  const [perFrameUs, perMbMs]: [number[], number[]] = [[], []]
  await send(writer, count, frames, bytes)
  for (let round = 0; round < ROUNDS; round += 1) {
    const before = process.cpuUsage()
    await send(writer, count, frames, bytes)
    const { user, system } = process.cpuUsage(before)
    perFrameUs.push((user + system) / frames)
    perMbMs.push((user + system) / 1000 / ((frames * bytes) / 1e6))
  }
  console.log(
    `${what.padEnd(22)} ${spread(perFrameUs, 2)} us a frame, ${spread(perMbMs, 2)} ms a MB`,
  )
}
process.exit(0)
