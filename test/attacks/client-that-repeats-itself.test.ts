import { duplexPair } from 'node:stream'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { Channel } from '../../src/channel/channel.ts'
import { channelLimits } from '../../src/channel/limits.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { circuitLimits } from '../../src/overlay/circuits/limits.ts'
import { forwardLimits } from '../../src/router/forward/limits.ts'
import { frameOf } from '../channel/pipe.ts'
import { hostAt } from '../router/forward/peer.ts'
import { endsOf, frame, TestController, TestPlace, TestRouter } from '../router/forward/support.ts'
import { eventually } from '../router/support.ts'

// The attack: a client that contains its circuit endpoints sends the same payload into them as fast
// as it can, and ignores the flow control window. The hosts are at the same router, which stores
// the payloads that their endpoints have not accepted, until its memory is full or other clients
// wait.

const PAYLOAD = 1100
const ACKNOWLEDGEMENT = 1101
const KIB = 1024
const { payloadsQueuedBytesMax } = circuitLimits
const { localDeliveriesMax, localDeliveryBytesMax } = forwardLimits

let router: TestRouter
let controller: TestController
beforeEach(() => {
  router = new TestRouter('r1')
  controller = new TestController()
  controller.connect(router)
  hostAt(router.forwarder)
})
afterEach(() => router.forwarder.stop())

/**
 * A circuit whose endpoint for the client is in the client; the endpoint for the host is in the
 * router.
 */
async function circuitOf(sharer: string, id: string): Promise<RepeatedPlace> {
  const ends = endsOf(id)
  const [answer] = await controller.lay(ends, [router], [])
  expect(answer).toMatchObject({ isSuccess: true })
  const place = new TestPlace(router, controller, ends, false)
  router.forwarder.attach(place.circuit, place)
  return new RepeatedPlace(place, sharer)
}

class RepeatedPlace {
  readonly #place: TestPlace
  readonly #sharer: string

  constructor(place: TestPlace, sharer: string) {
    this.#place = place
    this.#sharer = sharer
  }

  /** Sends the same payload this many times without letting other work run. */
  repeat(times: number, bytes: number): void {
    const { circuit } = this.#place
    const message = frame(circuit.id, 'x'.repeat(bytes), PAYLOAD)
    for (let count = 0; count < times; count += 1) {
      router.forwarder.enter({ ...circuit, sharer: this.#sharer }, message)
    }
  }

  /** Number of payloads that the host has received, each of which it acknowledges. */
  get delivered(): number {
    return this.#place.got.filter(({ contentType }) => contentType === ACKNOWLEDGEMENT).length
  }
}

/**
 * Number of turns of the event loop without a delivery. In each turn, all tasks that are due run,
 * however busy the machine is.
 */
const QUIET_TURNS = 20

/** Waits until no more payloads are delivered. @returns their number. */
async function settled(places: readonly RepeatedPlace[]): Promise<number> {
  let before = -1
  for (let quiet = 0; quiet < QUIET_TURNS;) {
    await new Promise((go) => setTimeout(go, 5))
    const now = places.reduce((sum, { delivered }) => sum + delivered, 0)
    quiet = now === before && now > 0 ? quiet + 1 : 0
    before = now
  }
  return before
}

test('A limited number of bytes is queued for a circuit endpoint, and further data is discarded', async () => {
  const place = await circuitOf('mallory', 'c1')
  place.repeat(20_000, KIB)
  const delivered = await settled([place])
  expect(delivered).toBeGreaterThan(500)
  expect(delivered * KIB).toBeLessThanOrEqual(payloadsQueuedBytesMax)
})

test.each([
  ['bytes', 16 * KIB, 90, 100],
  ['frames', 0, 10, 8000],
] as const)(
  'A limited number of %s of a client is queued for all circuit endpoints together',
  async (_, bytes, ends, times) => {
    const ids = Array.from({ length: ends }, (_each, at) => `c${at}`)
    const places = await Promise.all(ids.map((id) => circuitOf('mallory', id)))
    for (const place of places) place.repeat(times, bytes)
    const delivered = await settled(places)
    expect(delivered * bytes).toBeLessThan(localDeliveryBytesMax)
    expect(delivered).toBeLessThan(localDeliveriesMax)
  },
)

test('A client is served while another client of the same router sends the same data repeatedly', async () => {
  const ids = Array.from({ length: 90 }, (_, at) => `c${at}`)
  const places = await Promise.all(ids.map((id) => circuitOf('mallory', id)))
  const ann = await circuitOf('ann', 'of ann')
  for (const place of places) place.repeat(100, KIB)
  ann.repeat(1, KIB)
  // Checks in every turn, because all deliveries together may take less time than the interval of a
  // timer.
  while (ann.delivered === 0) await new Promise((go) => setImmediate(go))
  const before = places.reduce((sum, { delivered }) => sum + delivered, 0)
  expect(before, 'ann waits for no more than a few stretches').toBeLessThan(5000)
  expect(await settled(places)).toBe(9000)
})

test('A channel that always has more messages handles only a few of them before the router serves other channels', async () => {
  const [near, far] = duplexPair()
  let handled = 0
  const stretches: number[] = []
  const channel: Channel = new Channel({
    socket: near,
    limits: { ...channelLimits, messagesPerSecondMax: Infinity, bytesPerSecondMax: Infinity },
    clock: systemClock,
    onHello: () => channel.open(null),
    onMessage: () => {
      handled += 1
      if (handled === 1) setImmediate(() => stretches.push(handled))
      return null
    },
    onClose: () => undefined,
  })
  far.write(frameOf({ contentType: 0, sequence: -1 }))
  far.write(Buffer.concat(Array.from({ length: 500 }, () => frameOf({ contentType: PAYLOAD }))))
  await eventually(() => handled).toBe(500)
  expect(stretches[0]).toBeLessThanOrEqual(64)
  channel.close('over')
})
