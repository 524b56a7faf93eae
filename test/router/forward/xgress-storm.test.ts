import { describe, expect, test } from 'vitest'

import { seededRandom } from '../../../src/lib/random.ts'
import type { PayloadContent } from '../../../src/channel/messages/payload.ts'
import { areSamePieces, randomPieces, type Side, type Weather, XgressPair } from './xgress-pair.ts'

// Goal: however the path between two ends treats messages, all pieces arrive once, complete and in
// order, and no resource remains. Method: hundreds of seeds, each with a separate path, options and
// applications, in virtual time.

const SEEDS = 200

function weatherOf(seed: number): Weather {
  const random = seededRandom(seed)
  const delayMsMin = random.integer(0, 60)
  return {
    lost: random.next() * 0.3,
    repeated: random.next() * 0.2,
    refused: random.next() * 0.2,
    delayMsMin,
    delayMsMax: delayMsMin + random.integer(0, 120),
  }
}

/** Small windows, so that a few pieces are enough to fill them. */
function optionsOf(seed: number): Readonly<Record<string, unknown>> {
  const random = seededRandom(seed + 1_000_000)
  const windowBytes = random.integer(20_000, 300_000)
  return {
    txPortalStartSize: random.integer(5000, windowBytes),
    txPortalMinSize: 4000,
    txPortalMaxSize: windowBytes,
    rxBufferSize: random.integer(20_000, 300_000),
    txQueueSize: random.integer(1, 8),
    mtu: random.next() < 0.3 ? random.integer(100, 2000) : 0,
    randomDrops: random.next() < 0.2,
    drop1InN: 20,
  }
}

/** Makes the application stop reading after some pieces, for a random time. */
function makeSlow({ application }: Side, pair: XgressPair): void {
  const { random, time } = pair
  application.takesMore = () => {
    if (random.next() < 0.7) return true
    time.after(random.integer(1, 400), () => application.resume())
    return false
  }
}

describe('Two circuit endpoints over a path that loses, delays, reorders, repeats and refuses payloads', () => {
  test('deliver all data once, complete and in order, and keep no state afterwards', () => {
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const options = optionsOf(seed)
      const pair = new XgressPair({ seed, weather: weatherOf(seed), options }).start()
      const { initiator, terminator, random, time } = pair
      const pieces = (): PayloadContent[] => randomPieces(random, random.integer(0, 50), 12_000)
      const [there, back] = [pieces(), pieces()]
      if (seed % 2 === 0) makeSlow(initiator, pair)
      if (seed % 3 === 0) makeSlow(terminator, pair)
      initiator.application.write(there)
      terminator.application.write(back)
      const isOver = (): boolean => initiator.closed.length + terminator.closed.length === 2
      const isFinished = (): boolean =>
        initiator.application.isFinished && terminator.application.isFinished
      const isEmpty = (): boolean =>
        isOver() || initiator.xgress.bufferedBytes + terminator.xgress.bufferedBytes === 0
      expect(time.runUntil(isFinished, 3_600_000), `seed ${seed} finishes`).toBe(true)
      expect(time.runUntil(isEmpty, 60_000), `seed ${seed} empties`).toBe(true)
      expect(isOver(), `seed ${seed} empties before it closes`).toBe(false)
      expect(time.runUntil(isOver, 120_000), `seed ${seed} closes`).toBe(true)
      for (const [side, sent] of [
        [terminator, there],
        [initiator, back],
      ] as const) {
        const { application, wentOverWindow, xgress } = side
        expect(wentOverWindow, `seed ${seed}: window`).toBe(false)
        expect(xgress.windowBytes).toBeLessThanOrEqual(Number(options['txPortalMaxSize']))
        expect(areSamePieces(application.delivered, sent), `seed ${seed}: pieces`).toBe(true)
        expect(application.reasons, `seed ${seed}`).toHaveLength(1)
        expect(application.faults, `seed ${seed}`).toEqual([])
      }
    }
  }, 60_000)

  test('close only once, and deliver earlier data before they close, in any order of events', () => {
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const pair = new XgressPair({ seed, weather: weatherOf(seed), options: optionsOf(seed) })
      const { initiator, terminator, random, time } = pair
      const sides = [initiator, terminator]
      const pieces = sides.map(() => randomPieces(random, random.integer(0, 40), 6000))
      pair.start()
      for (const [at, side] of sides.entries()) {
        side.application.finishesAtEnd = random.next() < 0.5
        makeSlow(side, pair)
        side.application.write(pieces[at] ?? [])
      }
      for (let step = 0; step < 4; step += 1) {
        time.runFor(random.integer(0, 1500))
        const { xgress } = random.next() < 0.5 ? initiator : terminator
        const steps = [
          () => xgress.finish(),
          () => xgress.close('gone'),
          () => xgress.abort('broken'),
          () => xgress.unrouted(),
          () => xgress.end('stopped'),
          () => (pair.isCut = random.next() < 0.5),
        ]
        steps[random.integer(0, steps.length - 1)]?.()
      }
      // Finally, the applications close their ends.
      for (const { xgress } of sides) xgress.close('over')
      time.runFor(120_000)
      for (const [at, { application, closed, wentOverWindow, xgress }] of sides.entries()) {
        expect(closed, `seed ${seed}`).toHaveLength(1)
        expect(application.reasons, `seed ${seed}`).toHaveLength(1)
        expect([application.faults, wentOverWindow, xgress.bufferedBytes]).toEqual([[], false, 0])
        const first = pieces[1 - at]?.slice(0, application.delivered.length) ?? []
        expect(areSamePieces(application.delivered, first), `seed ${seed}`).toBe(true)
      }
    }
  }, 60_000)
})
