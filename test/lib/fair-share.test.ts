import { expect, test } from 'vitest'
import { FairShare } from '../../src/lib/bounds/fair-share.ts'

function fill(share: FairShare, caller: string): number {
  let taken = 0
  while (share.hasRoomFor(caller)) {
    share.take(caller)
    taken += 1
  }
  return taken
}

test('a single caller can use at most three quarters of a capacity, so that a quarter is left for others', () => {
  const share = new FairShare(100)
  expect(fill(share, 'a')).toBe(75)
  expect(fill(share, 'b')).toBe(25)
  expect(share.hasRoomFor('c')).toBe(false)
})

test('a caller that uses more than its share of a capacity gets no more until it uses less, and other callers get their shares', () => {
  const share = new FairShare(100)
  fill(share, 'a')
  fill(share, 'b')
  for (let i = 0; i < 40; i += 1) share.giveBack('a')
  expect(fill(share, 'b')).toBe(25)
  expect(share.hasRoomFor('a')).toBe(true)
  expect(fill(share, 'a')).toBe(15)
})

test('many callers each get an equal share and together use the whole capacity', () => {
  const share = new FairShare(1000)
  const callers = Array.from({ length: 10 }, (_, i) => `caller ${i}`)
  const taken = new Map<string, number>()
  for (let round = 0; round < 200; round += 1) {
    for (const caller of callers) {
      if (!share.hasRoomFor(caller)) continue
      share.take(caller)
      taken.set(caller, (taken.get(caller) ?? 0) + 1)
    }
  }
  expect([...taken.values()]).toEqual(callers.map(() => 100))
})

test('a capacity of one unit is available to any caller', () => {
  const share = new FairShare(1)
  expect(fill(share, 'a')).toBe(1)
  expect(share.hasRoomFor('b')).toBe(false)
  share.giveBack('a')
  expect(fill(share, 'b')).toBe(1)
})
