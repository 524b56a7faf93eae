import { describe, expect, test } from 'vitest'

import { xgressOptions } from '../../../src/overlay/circuits/xgress-options.ts'
import { LoneEnd } from './lone-end.ts'
import { calm, pieceOf, XgressPair } from './xgress-pair.ts'

// Goal: each option of a dialer or listener that concerns an end of a circuit has its documented
// effect. Method: one end, or two, in virtual time; one option at a time differs from its default.

function lone(given: Readonly<Record<string, unknown>>, isStarted = true): LoneEnd {
  const end = new LoneEnd(true, { options: xgressOptions(given) })
  if (isStarted) end.payload(0, { flags: 4 })
  end.sent()
  return end
}

/** Sends pieces until the end takes no more. */
function bytesInFlight(end: LoneEnd, pieceBytes = 1000): number {
  for (let k = 0; k < 20_000 && end.xgress.send(pieceOf(pieceBytes)); k += 1);
  return end.xgress.inFlightBytes
}

describe('The options of a circuit endpoint:', () => {
  test('an option has its default value when it is missing or has the wrong type', () => {
    const { mtu, txPortalMaxSize, retxScale, circuitStartTimeout } = xgressOptions({
      txPortalMaxSize: 'large',
      retxScale: 2.5,
      unknown: 1,
    })
    expect([mtu, txPortalMaxSize, retxScale, circuitStartTimeout]).toEqual([
      0, 4_194_304, 2.5, 180_000,
    ])
  })

  test('mtu splits larger payloads', () => {
    const end = lone({ mtu: 100 })
    end.xgress.send(pieceOf(250))
    end.xgress.send(pieceOf(100))
    const payloads = end.payloads()
    expect(payloads.map(({ body, flags }) => [body.length, flags & 8])).toEqual([
      [100, 8],
      [100, 8],
      [52, 8],
      [100, 0],
    ])
    expect(Buffer.from(payloads[0]?.body ?? []).toString('hex', 0, 2)).toBe('fa01')
  })

  test('randomDrops drops one payload in drop1InN', () => {
    const numbers = [0.3, 0.2, 0.9, 0.26]
    const end = new LoneEnd(false, {
      options: xgressOptions({ randomDrops: true, drop1InN: 4 }),
      random: () => numbers.shift() ?? 1,
    })
    end.sent()
    for (let at = 0; at < 4; at += 1) end.payload(at, { body: Buffer.from(`${at}`) })
    expect(end.acknowledgements().map(({ sequences }) => sequences)).toEqual([[0], [2], [3]])
  })

  test('txQueueSize limits the number of waiting payloads', () => {
    const end = lone({ txQueueSize: 3 }, false)
    const answers = Array.from({ length: 3 }, () => end.xgress.send(pieceOf(1)))
    expect(answers).toEqual([true, true, false])
  })

  test('txPortalStartSize is the initial size of the send window', () => {
    expect(bytesInFlight(lone({ txPortalStartSize: 10_000 }))).toBe(11_000)
  })

  test('txPortalMaxSize is the maximum size of the send window', () => {
    expect(bytesInFlight(lone({ txPortalMaxSize: 20_000 }))).toBe(21_000)
  })

  test('txPortalIncreaseThresh and txPortalIncreaseScale determine how the send window grows', () => {
    const end = lone({
      txPortalStartSize: 10_000,
      txPortalIncreaseThresh: 3,
      txPortalIncreaseScale: 2,
    })
    bytesInFlight(end)
    end.acknowledge([0, 1])
    expect(end.xgress.windowBytes).toBe(10_000)
    end.acknowledge([2])
    expect(end.xgress.windowBytes).toBe(10_000 + 3 * 1000 * 2)
  })

  test('txPortalRetxThresh, txPortalRetxScale and txPortalMinSize determine how the send window shrinks', () => {
    const end = lone({
      txPortalStartSize: 10_000,
      txPortalRetxThresh: 2,
      txPortalRetxScale: 0.5,
      txPortalMinSize: 3000,
    })
    for (let k = 0; k < 2; k += 1) end.xgress.send(pieceOf(10))
    end.pass(100)
    expect(end.xgress.windowBytes).toBe(10_000)
    end.pass(100)
    expect(end.xgress.windowBytes).toBe(5000)
    end.pass(60_000)
    expect(end.xgress.windowBytes).toBe(3000)
  })

  /**
   * The time after which one payload is sent again, after a measured round trip of 100 ms, in steps
   * of the timer.
   */
  function sentAgainAfterMs(given: Readonly<Record<string, unknown>>, duplicates = 0): number {
    const end = lone(given)
    end.acknowledge(Array.from({ length: duplicates }, () => 999))
    end.xgress.send(pieceOf(1))
    const stamp = end.payloads()[0]?.stamp ?? 0
    end.nowMs += 100
    end.acknowledge([0], { stamp })
    end.xgress.send(pieceOf(2))
    end.sent()
    const fromMs = end.nowMs
    while (end.payloads().length === 0) end.pass(10)
    return end.nowMs - fromMs
  }

  test('retxScale, retxAddMs and retxMaxMs determine when a payload is resent', () => {
    expect(sentAgainAfterMs({})).toBe(150)
    expect(sentAgainAfterMs({ retxScale: 3 })).toBe(300)
    expect(sentAgainAfterMs({ retxAddMs: 200 })).toBe(350)
    expect(sentAgainAfterMs({ retxScale: 50, retxMaxMs: 400 })).toBe(400)
  })

  test('txPortalDupAckThresh increases the retransmission delay after duplicate acknowledgments', () => {
    expect(sentAgainAfterMs({ txPortalDupAckThresh: 10 }, 50)).toBe(250)
  })

  test('retxStartMs is the delay of the first retransmission', () => {
    const end = lone({ retxStartMs: 1000 })
    end.xgress.send(pieceOf(1))
    end.sent()
    end.pass(900)
    expect(end.payloads()).toEqual([])
    end.pass(100)
    expect(end.payloads()).toHaveLength(1)
  })

  test('maxRttScale limits how fast the estimated round trip time can grow', () => {
    const waits = [0, 1, 4].map((maxRttScale) => {
      const end = lone({ maxRttScale })
      for (const roundTripMs of [100, 2000]) {
        const stamp = end.nowMs
        end.nowMs += roundTripMs
        end.acknowledge([999], { stamp })
      }
      end.xgress.send(pieceOf(1))
      end.sent()
      const fromMs = end.nowMs
      while (end.payloads().length === 0) end.pass(5)
      return end.nowMs - fromMs
    })
    // The mean of 100 and 2000, 200 or 400, multiplied by 1.5.
    expect(waits).toEqual([1575, 225, 375])
  })

  test('rxBufferSize limits the bytes that wait until the application reads them', () => {
    const end = lone({ rxBufferSize: 10_000 })
    end.application.takesMore = () => false
    for (let at = 1; at < 100; at += 1) end.payload(at, { body: new Uint8Array(1000) })
    expect(end.xgress.bufferedBytes).toBe(11_000)
  })

  test('maxCloseWaitMs is how long a circuit endpoint that has finished waits for the other endpoint', () => {
    const pair = new XgressPair({ weather: calm, options: { maxCloseWaitMs: 8000 } }).start()
    const { initiator, time } = pair
    time.runFor(100)
    pair.isCut = true
    initiator.xgress.close('gone')
    time.runFor(7900)
    expect(initiator.closed).toEqual([])
    time.runFor(300)
    expect(initiator.closed).toEqual([['gone', true]])
  })

  test('circuitStartTimeout is how long a terminator waits for the start of the circuit', () => {
    const end = lone({ circuitStartTimeout: 2000 }, false)
    end.pass(1900)
    expect(end.closed).toEqual([])
    end.pass(100)
    expect(end.closed).toHaveLength(1)
  })
})
