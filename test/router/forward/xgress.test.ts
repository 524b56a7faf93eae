import { describe, expect, test } from 'vitest'

import type { OutboundMessage } from '../../../src/channel/frame.ts'
import { LoneEnd } from './lone-end.ts'
import { areSamePieces, arrivedFrom, calm, pieceOf, XgressPair } from './xgress-pair.ts'

// Goal: two ends carry what their applications send, wait for each other, and close correctly,
// however their applications behave. Method: two ends over a path in virtual time.

const MIB = 1024 * 1024

function isOver({ initiator, terminator }: XgressPair): boolean {
  return initiator.closed.length + terminator.closed.length === 2
}

describe('Circuit endpoints over a path without loss', () => {
  test('carry data in both directions, finish, and close', () => {
    const pair = new XgressPair().start()
    const { initiator, terminator, time } = pair
    const there = [pieceOf(10_240, { edgeFlags: 2 }), pieceOf(0, { edgeFlags: 1 }), pieceOf(5)]
    const back = [pieceOf(70_000), pieceOf(1, { traceId: Uint8Array.of(1, 2, 3) })]
    initiator.application.write(there)
    terminator.application.write(back)
    expect(time.runUntil(() => isOver(pair), 60_000)).toBe(true)
    expect(areSamePieces(terminator.application.delivered, there)).toBe(true)
    expect(areSamePieces(initiator.application.delivered, back)).toBe(true)
    for (const side of [initiator, terminator]) {
      expect(side.closed).toEqual([['both ends have finished', true]])
      expect(side.application.reasons).toEqual(['both ends have finished'])
      expect(side.application.isFinished).toBe(true)
      expect(side.xgress.bufferedBytes).toBe(0)
      expect(side.counts.retransmission).toBe(0)
    }
  })

  test('at the terminator send no data before the circuit starts, and all of it afterwards', () => {
    const { initiator, terminator, time } = new XgressPair()
    terminator.application.write([pieceOf(100)])
    time.runFor(10_000)
    expect(terminator.sent).toEqual([])
    initiator.xgress.start()
    time.runFor(100)
    expect(areSamePieces(initiator.application.delivered, [pieceOf(100)])).toBe(true)
    expect(initiator.application.isFinished).toBe(true)
  })

  test.each(['initiator', 'terminator'] as const)(
    'continue for minutes after the %s at the other end has finished',
    (first) => {
      const pair = new XgressPair().start()
      const { time } = pair
      const [one, other] =
        first === 'initiator'
          ? [pair.initiator, pair.terminator]
          : [pair.terminator, pair.initiator]
      other.application.finishesAtEnd = false
      time.runFor(100)
      one.application.write([pieceOf(10)])
      for (let minute = 1; minute <= 5; minute += 1) {
        time.runFor(60_000)
        other.application.write([pieceOf(minute)])
      }
      time.runFor(1000)
      expect(other.application.isFinished).toBe(true)
      expect(one.application.delivered.map(({ body }) => body.length)).toEqual([1, 2, 3, 4, 5])
      expect([one.closed, other.closed]).toEqual([[], []])
      expect(one.application.isFinished).toBe(false)
      other.xgress.finish()
      expect(time.runUntil(() => isOver(pair), 30_000)).toBe(true)
      expect(one.application.isFinished).toBe(true)
    },
  )

  test('pause the sending application when the receiving application stops reading, and resume it later', () => {
    const options = { rxBufferSize: 200_000, txPortalMaxSize: 100_000 }
    const pair = new XgressPair({ options }).start()
    const { initiator, terminator, time } = pair
    terminator.application.takesMore = () => false
    const pieces = Array.from({ length: 200 }, (_, k) => pieceOf(10_000 + k))
    initiator.application.write(pieces)
    time.runFor(60_000)
    expect(terminator.application.delivered).toHaveLength(1)
    expect(initiator.application.hasSentAll).toBe(false)
    expect(terminator.xgress.bufferedBytes).toBeLessThan(2 * 200_000)
    expect(initiator.xgress.bufferedBytes).toBeLessThan(200_000)
    // The sender writes the rejected payload again only after it learns that the receiver has room.
    terminator.application.takesMore = () => true
    terminator.application.resume()
    expect(time.runUntil(() => terminator.application.isFinished, 1000)).toBe(true)
    expect(areSamePieces(terminator.application.delivered, pieces)).toBe(true)
  })

  test('fill the buffer of a reader that has stopped, and then probe the reader at most once a second', () => {
    const bytes = 200_000
    const options = { rxBufferSize: bytes, txPortalMaxSize: bytes, txPortalStartSize: bytes }
    const weather = { ...calm, delayMsMin: 20, delayMsMax: 20 }
    const pair = new XgressPair({ options, weather }).start()
    const { initiator, terminator, time } = pair
    terminator.application.takesMore = () => false
    initiator.application.write(Array.from({ length: 200 }, () => pieceOf(10_000)))
    time.runFor(1000)
    // The sender probes for room with one payload, for which the receiver may have no room.
    expect(terminator.xgress.bufferedBytes).toBeGreaterThan(bytes)
    expect(initiator.xgress.inFlightBytes).toBeLessThanOrEqual(10_000)
    const { retransmission } = initiator.counts
    time.runFor(60_000)
    expect(initiator.counts.retransmission - retransmission).toBeLessThanOrEqual(60)
    expect(initiator.counts.retransmission - retransmission).toBeGreaterThan(30)
  })

  test('deliver all data to a slow reader, however long it takes', () => {
    const options = { rxBufferSize: 50_000, txPortalMaxSize: 50_000, txPortalStartSize: 50_000 }
    const pair = new XgressPair({ options }).start()
    const { initiator, terminator, time } = pair
    terminator.application.takesMore = () => {
      time.after(45_000, () => terminator.application.resume())
      return false
    }
    const pieces = Array.from({ length: 30 }, () => pieceOf(10_000))
    initiator.application.write(pieces)
    expect(time.runUntil(() => terminator.application.isFinished, 3_600_000)).toBe(true)
    expect(areSamePieces(terminator.application.delivered, pieces)).toBe(true)
  })

  test('send data again that a full link refused, when the link accepts data again', () => {
    const pair = new XgressPair({ weather: { ...calm, refused: 0.9 } }).start()
    pair.initiator.application.write([pieceOf(100_000), pieceOf(100_000)])
    pair.terminator.application.write([])
    expect(pair.time.runUntil(() => isOver(pair), 60_000)).toBe(true)
    expect(pair.terminator.application.delivered).toHaveLength(2)
  })

  test('limit the number of unacknowledged small pieces of data, not only their bytes', () => {
    const pair = new XgressPair().start()
    pair.isCut = true
    const { initiator, time } = pair
    initiator.application.write(Array.from({ length: 9000 }, () => pieceOf(1)))
    time.runFor(100)
    expect(initiator.counts.payload).toBeLessThanOrEqual(8192)
    expect(initiator.application.hasSentAll).toBe(false)
  })

  test('transfer 64 MiB with a send window of 4 MiB', () => {
    const pair = new XgressPair().start()
    const { initiator, terminator, time } = pair
    let bytes = 0
    terminator.application.deliver = ({ body }) => {
      bytes += body.length
      return true
    }
    terminator.application.write([])
    initiator.application.write(Array.from({ length: 1024 }, () => pieceOf(65_536)))
    expect(time.runUntil(() => isOver(pair), 60_000)).toBe(true)
    expect(bytes).toBe(64 * MIB)
  })
})

describe('A circuit endpoint reports to its application whether all data was delivered', () => {
  test('as true once both endpoints have finished, seconds before the endpoint is removed', () => {
    const pair = new XgressPair().start()
    const { initiator, terminator, time } = pair
    for (const { application } of [initiator, terminator]) application.write([pieceOf(10)])
    time.runFor(500)
    for (const { application } of [initiator, terminator]) {
      expect([application.reasons, application.isWhole]).toEqual([
        ['both ends have finished'],
        true,
      ])
    }
    expect([initiator.closed, terminator.closed]).toEqual([[], []])
  })

  test('as false if the circuit is unrouted before the other endpoint has finished', () => {
    const { initiator, time } = new XgressPair().start()
    initiator.application.write([pieceOf(10)])
    initiator.xgress.finish()
    time.runFor(500)
    initiator.xgress.unrouted()
    expect(initiator.application.isWhole).toBe(false)
  })

  test('as false if the circuit is unrouted before the endpoint itself has finished', () => {
    const { initiator, terminator, time } = new XgressPair().start()
    initiator.application.write([pieceOf(10)])
    terminator.application.finishesAtEnd = false
    time.runFor(500)
    expect(terminator.application.isFinished).toBe(true)
    terminator.xgress.unrouted()
    expect(terminator.application.isWhole).toBe(false)
  })

  test('as false if the other application has failed, after all data that it had sent', () => {
    const { initiator, terminator, time } = new XgressPair().start()
    for (const { application } of [initiator, terminator]) application.finishesAtEnd = false
    time.runFor(1000)
    terminator.application.write([pieceOf(10), pieceOf(20)])
    terminator.xgress.abort('the target has reset the connection')
    time.runFor(1000)
    const { delivered, isFinished, isWhole, reasons } = initiator.application
    expect(delivered.map(({ body }) => body.length)).toEqual([10, 20])
    expect({ isFinished, isWhole, reasons }).toEqual({
      isFinished: false,
      isWhole: false,
      reasons: ['the other end has failed'],
    })
  })

  test('as false if the other endpoint ends before its application has finished', () => {
    const { initiator, terminator, time } = new XgressPair().start()
    for (const { application } of [initiator, terminator]) application.finishesAtEnd = false
    terminator.application.write([pieceOf(10)])
    time.runFor(1000)
    terminator.xgress.end('the router stops')
    time.runFor(1000)
    const { isFinished, isWhole } = initiator.application
    expect({ isFinished, isWhole }).toEqual({ isFinished: false, isWhole: false })
  })

  test('as false immediately if the other endpoint cannot write to its application', () => {
    const { initiator, terminator, time } = new XgressPair().start()
    initiator.application.finishesAtEnd = false
    time.runFor(100)
    terminator.xgress.abort('broken pipe')
    time.runFor(100)
    expect(initiator.application.isWhole).toBe(false)
  })
})

describe('A circuit endpoint closes', () => {
  test('when its application throws; then the other application learns that data may be missing', () => {
    const pair = new XgressPair().start()
    const { initiator, terminator, time } = pair
    terminator.application.takesMore = () => {
      throw new Error('the disk is full')
    }
    initiator.application.finishesAtEnd = false
    initiator.application.write([pieceOf(10), pieceOf(20)])
    expect(time.runUntil(() => isOver(pair), 60_000)).toBe(true)
    expect(terminator.closed).toEqual([['the disk is full', true]])
    expect([initiator.application.isFinished, initiator.application.isWhole]).toEqual([
      false,
      false,
    ])
    expect(terminator.application.delivered).toHaveLength(1)
  })

  test('when its application closes; then data that it sent still arrives, and it receives no more', () => {
    const pair = new XgressPair({ weather: { ...calm, delayMsMin: 50, delayMsMax: 50 } }).start()
    const { initiator, terminator, time } = pair
    initiator.application.finishesAtEnd = false
    terminator.application.finishesAtEnd = false
    time.runFor(1000)
    terminator.application.write([pieceOf(300_000), pieceOf(300_001)])
    terminator.xgress.close('the server has gone')
    expect(terminator.application.reasons).toEqual(['the server has gone'])
    expect(terminator.xgress.isClosed).toBe(true)
    initiator.application.write([pieceOf(10)])
    expect(time.runUntil(() => isOver(pair), 60_000)).toBe(true)
    expect(initiator.application.delivered).toHaveLength(2)
    expect(initiator.application.isFinished).toBe(true)
    expect(terminator.application.delivered).toEqual([])
    expect(terminator.closed).toEqual([['the server has gone', true]])
    expect(initiator.closed).toEqual([['both ends have finished', true]])
  })

  test('when a write to its application fails; then the other endpoint stops sending immediately', () => {
    const pair = new XgressPair().start()
    const { initiator, terminator, time } = pair
    terminator.application.takesMore = () => false
    initiator.application.finishesAtEnd = false
    initiator.application.write(Array.from({ length: 2000 }, () => pieceOf(10_000)))
    time.runFor(1000)
    const { payload } = initiator.counts
    terminator.xgress.abort('broken pipe')
    time.runFor(100)
    expect(initiator.xgress.bufferedBytes).toBe(0)
    expect(initiator.xgress.send(pieceOf(1))).toBe(false)
    expect(time.runUntil(() => isOver(pair), 60_000)).toBe(true)
    // The only further payload is the one that ends the circuit.
    expect(initiator.counts.payload).toBe(payload + 1)
  })

  test('30 s after it has finished if the other endpoint does not respond', () => {
    const pair = new XgressPair().start()
    const { initiator, time } = pair
    initiator.application.finishesAtEnd = false
    time.runFor(100)
    pair.isCut = true
    initiator.application.write([pieceOf(10)])
    time.runFor(600_000)
    expect(initiator.closed).toEqual([])
    // From here on, the initiator resends the payload at most every 10 s.
    expect(initiator.counts.retransmission).toBeLessThan(10_000)
    initiator.xgress.close('the client has gone')
    time.runFor(29_000)
    expect(initiator.closed).toEqual([])
    time.runFor(1500)
    expect(initiator.closed).toEqual([['the client has gone', true]])
  })

  test('when the circuit does not start in time', () => {
    const pair = new XgressPair()
    const { terminator, time } = pair
    time.runFor(179_000)
    expect(terminator.closed).toEqual([])
    time.runFor(1500)
    const reason = 'no start of the circuit within 180000 ms'
    expect(terminator.closed).toEqual([[reason, true]])
    expect(terminator.application.reasons).toEqual([reason])
    expect(terminator.sent).toEqual([])
  })

  test('when the circuit is unrouted; then received data is delivered, and nothing is sent', () => {
    const end = new LoneEnd(false)
    end.application.takesMore = () => false
    for (const sequence of [0, 1, 2, 4]) end.payload(sequence, { body: Buffer.from(`${sequence}`) })
    end.sent()
    end.xgress.unrouted()
    expect(end.closed).toEqual([])
    end.payload(3, { body: Buffer.from('3') })
    end.application.takesMore = () => true
    end.application.resume()
    expect(end.application.delivered.map(({ body }) => Buffer.from(body).toString())).toEqual([
      '0',
      '1',
      '2',
    ])
    expect(end.application.isFinished).toBe(false)
    expect(end.closed).toEqual([['the circuit was unrouted', false]])
    expect(end.payloads()).toEqual([])
  })

  test('when the circuit is unrouted, even if its application never reads again', () => {
    const end = new LoneEnd(false)
    end.application.takesMore = () => false
    for (const sequence of [0, 1]) end.payload(sequence, { body: Buffer.from('x') })
    end.xgress.unrouted()
    end.pass(29_000)
    expect(end.closed).toEqual([])
    end.pass(2000)
    expect(end.closed).toEqual([['the circuit was unrouted', false]])
  })

  test('when its application sends far more than the circuit accepts without waiting', () => {
    const pair = new XgressPair().start()
    const { initiator, time } = pair
    pair.isCut = true
    initiator.application.finishesAtEnd = false
    for (let k = 0; k < 1000; k += 1) initiator.xgress.send(pieceOf(65_536))
    time.runFor(100)
    expect(initiator.closed).toEqual([['the application sends without waiting', true]])
    expect(initiator.xgress.bufferedBytes).toBe(0)
  })

  test('only once, even if its methods are called afterwards', () => {
    const end = new LoneEnd(false)
    end.xgress.end('stopped')
    end.sent()
    end.payload(0, { body: Buffer.from('x') })
    end.acknowledge([0])
    end.xgress.start()
    end.xgress.finish()
    end.xgress.close('again')
    end.xgress.abort('again')
    end.xgress.resume()
    end.xgress.unrouted()
    end.xgress.onLinkWritable()
    expect(end.xgress.send(pieceOf(1))).toBe(false)
    end.pass(60_000)
    expect(end.closed).toEqual([['stopped', true]])
    expect(end.application.reasons).toEqual(['stopped'])
    expect([end.sent(), end.application.delivered]).toEqual([[], []])
  })
})

describe('Two circuit endpoints whose applications send data while they receive data', () => {
  test('exchange data without unlimited recursion', () => {
    const ends: LoneEnd[] = []
    const toOther =
      (other: number) =>
      (message: OutboundMessage): 'sent' => {
        ends[other]?.xgress.receive(arrivedFrom(message))
        return 'sent'
      }
    const client = new LoneEnd(false, { transmit: toOther(1) })
    const server = new LoneEnd(true, { transmit: toOther(0) })
    ends.push(client, server)
    // The start of the circuit was lost, because no other end existed yet.
    client.pass(300)
    let rounds = 0
    let depth = 0
    let depthMax = 0
    const echoing = (end: LoneEnd) => (): boolean => {
      rounds += 1
      depth += 1
      depthMax = Math.max(depthMax, depth)
      if (rounds < 10_000) end.xgress.send(pieceOf(100))
      depth -= 1
      return true
    }
    client.application.deliver = echoing(client)
    server.application.deliver = echoing(server)
    client.xgress.send(pieceOf(100))
    expect(rounds).toBe(10_000)
    expect(depthMax).toBeLessThanOrEqual(2)
  })
})
