import { encodeFrame, FrameDecoder, type OutboundMessage } from '../src/channel/frame.ts'
import { systemClock } from '../src/lib/clock.ts'
import type { CircuitApplication } from '../src/overlay/circuits/circuit-endpoint.ts'
import { Xgress } from '../src/overlay/circuits/xgress.ts'
import { xgressOptions } from '../src/overlay/circuits/xgress-options.ts'
import { heading } from './support/report.ts'
import type { PayloadContent } from '../src/channel/messages/payload.ts'

// Measures the cost of two endpoints of a circuit in one process: processor time for each MB in
// payloads of 10 KiB, with messages passed unchanged and passed as encoded frames, and the memory
// of an idle circuit. `node --expose-gc bench/xgress.ts`

const MB = 1_000_000
const PIECE_BYTES = 10 * 1024
const PIECES = 50_000
const IDLE_PAIRS = 10_000
const TICKS = 50

const options = xgressOptions()

class Sink implements CircuitApplication {
  bytes = 0
  isWritable = true

  deliver({ body }: PayloadContent): boolean {
    this.bytes += body.length
    return true
  }

  onFinished(): void {}

  onWritable(): void {
    this.isWritable = true
  }

  onClosed(): void {}
}

type Carry = (message: OutboundMessage, to: () => Xgress) => void

function pairOf(carry: Carry): { client: Xgress; server: Xgress; sinks: [Sink, Sink] } {
  const sinks: [Sink, Sink] = [new Sink(), new Sink()]
  const ends: Xgress[] = sinks.map(
    (application, at) =>
      new Xgress({
        circuitId: 'Kx8Ty2pQr',
        isTerminator: at === 1,
        options,
        application,
        clock: systemClock,
        onClosed: () => undefined,
        transmit: (message) => {
          carry(message, () => ends[1 - at] as Xgress)
          return 'sent'
        },
      }),
  )
  const [client, server] = ends as [Xgress, Xgress]
  client.start()
  return { client, server, sinks }
}

function asMessage({ contentType, headers = new Map(), body }: OutboundMessage) {
  return { contentType, sequence: 0, headers, body: body ?? new Uint8Array(0) }
}

/** Passes messages without encoding, as between two endpoints in one router. */
const directly: Carry = (message, to) => to().receive(asMessage(message))

const limits = { frameHeadersBytesMax: 65_536, frameHeadersMax: 128, frameBodyBytesMax: 2 ** 24 }
const decoder = new FrameDecoder(limits)
/** Passes messages as over a link, but without a socket. */
const asFrames: Carry = (message, to) => {
  for (const each of decoder.push(encodeFrame(asMessage(message))).messages) to().receive(each)
}

function measure(name: string, carry: Carry): void {
  const { client, sinks } = pairOf(carry)
  const piece = { body: new Uint8Array(PIECE_BYTES), edgeFlags: 0, traceId: null }
  for (let at = 0; at < PIECES / 10; at += 1) client.send(piece)
  const fromBytes = sinks[1].bytes
  const before = process.threadCpuUsage()
  for (let at = 0; at < PIECES; at += 1) client.send(piece)
  const { user, system } = process.threadCpuUsage(before)
  const megabytes = (sinks[1].bytes - fromBytes) / MB
  const us = user + system
  console.log(
    `${name.padEnd(24)} ${(us / 1000 / megabytes).toFixed(3)} ms a MB, ${(us / PIECES).toFixed(2)} us a piece, ` +
      `${(megabytes / (us / 1e6)).toFixed(0)} MB/s of one core`,
  )
}

function measureMemory(): void {
  globalThis.gc?.()
  const before = process.memoryUsage()
  const pairs = Array.from({ length: IDLE_PAIRS }, () => pairOf(directly))
  for (const { client, server } of pairs) {
    client.send({ body: new Uint8Array(100), edgeFlags: 0, traceId: null })
    for (const end of [client, server]) end.tick(systemClock.monotonicMs())
  }
  globalThis.gc?.()
  const after = process.memoryUsage()
  const heap = (after.heapUsed - before.heapUsed) / IDLE_PAIRS
  const external = (after.arrayBuffers - before.arrayBuffers) / IDLE_PAIRS
  console.log(
    `${String(pairs.length)} idle pairs: ${heap.toFixed(0)} bytes of heap and ${external.toFixed(0)} of buffers a pair`,
  )
  const fromUs = process.threadCpuUsage()
  for (let at = 0; at < TICKS; at += 1) {
    const nowMs = systemClock.monotonicMs()
    for (const { client, server } of pairs) {
      client.tick(nowMs)
      server.tick(nowMs)
    }
  }
  const { user, system } = process.threadCpuUsage(fromUs)
  console.log(`a tick of all of them: ${((user + system) / 1000 / TICKS).toFixed(2)} ms`)
}

console.log(heading('two ends of a circuit'))
for (let round = 0; round < 2; round += 1) {
  measure('handed over', directly)
  measure('as frames', asFrames)
}
measureMemory()
