import { describe, expect, test } from 'vitest'

import { pieceOf, shownPieces, XgressPair } from './xgress-pair.ts'

// Goal: what an application sends comes out at the other end in order, each piece once and whole, and both ends close as they should.
// Method: two ends over a path in virtual time.

describe('two ends over a calm path', () => {
  test('carry pieces both ways, finish and forget the circuit', () => {
    const { initiator, terminator, time } = new XgressPair().start()
    const there = [pieceOf(10_240, { edgeFlags: 2 }), pieceOf(0, { edgeFlags: 1 }), pieceOf(5)]
    const back = [pieceOf(70_000), pieceOf(1, { traceId: Uint8Array.of(1, 2, 3) })]
    initiator.application.write(there)
    terminator.application.write(back)
    const isOver = (): boolean => initiator.closed.length + terminator.closed.length === 2
    expect(time.runUntil(isOver, 60_000)).toBe(true)
    expect(shownPieces(terminator.application.delivered)).toEqual(shownPieces(there))
    expect(shownPieces(initiator.application.delivered)).toEqual(shownPieces(back))
    for (const side of [initiator, terminator]) {
      expect(side.closed).toEqual([['both ends have finished', true]])
      expect(side.application.reasons).toEqual(['both ends have finished'])
      expect(side.application.isFinished).toBe(true)
      expect(side.xgress.bufferedBytes).toBe(0)
      expect(side.counts.retransmission).toBe(0)
    }
  })

  test('a terminator sends nothing before the start of the circuit', () => {
    const pair = new XgressPair()
    const { initiator, terminator, time } = pair
    terminator.application.write([pieceOf(100)])
    time.runFor(10_000)
    expect(terminator.sent).toEqual([])
    initiator.xgress.start()
    time.runFor(100)
    expect(shownPieces(initiator.application.delivered)).toEqual(shownPieces([pieceOf(100)]))
    expect(initiator.application.isFinished).toBe(true)
  })
})
