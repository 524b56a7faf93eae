import { describe, expect, test } from 'vitest'
import { SequenceWindow } from '../../src/lib/sequence-window.ts'

describe('A window of sequence numbers', () => {
  test('numbers its values beginning with 1', () => {
    const window = new SequenceWindow<string>()
    expect([window.lowest, window.next, window.size]).toEqual([1, 1, 0])
    expect(['a', 'b', 'c'].map((value) => window.add(value))).toEqual([1, 2, 3])
    expect([0, 1, 2, 3, 4].map((number) => window.get(number))).toEqual([
      undefined,
      'a',
      'b',
      'c',
      undefined,
    ])
    expect([window.lowest, window.next, window.size]).toEqual([1, 4, 3])
  })

  test('has the number of its first remaining value as its lowest number', () => {
    const window = new SequenceWindow<string>()
    for (const value of ['a', 'b', 'c']) window.add(value)
    expect(window.remove(2)).toBe('b')
    expect(window.remove(2)).toBeUndefined()
    expect([window.lowest, window.size]).toEqual([1, 2])
    expect(window.remove(1)).toBe('a')
    expect([window.lowest, window.size]).toEqual([3, 1])
    expect(window.remove(3)).toBe('c')
    expect([window.lowest, window.next, window.size]).toEqual([4, 4, 0])
  })

  test('contains the same values as a map after random additions and removals', () => {
    const window = new SequenceWindow<number>()
    const map = new Map<number, number>()
    let random = 1
    for (let step = 0; step < 20_000; step += 1) {
      random = (random * 48_271) % 2_147_483_647
      // The window alternately grows to hundreds of values and becomes empty.
      const isGrowing = Math.floor(step / 1000) % 2 === 0
      if (random % 10 < (isGrowing ? 7 : 2)) {
        const number = window.add(random)
        map.set(number, random)
      } else {
        const numbers = [...map.keys()]
        const number = numbers[random % Math.max(1, Math.min(numbers.length, 40))] ?? 0
        expect(window.remove(number)).toBe(map.get(number))
        map.delete(number)
      }
      const [lowest = window.next] = map.keys()
      expect([window.size, window.lowest]).toEqual([map.size, lowest])
    }
    expect([...window.values()]).toEqual([...map.values()])
  })

  test('does not return values that were removed during an iteration', () => {
    const window = new SequenceWindow<string>()
    for (const value of ['a', 'b', 'c']) window.add(value)
    const seen: string[] = []
    for (const value of window.values()) {
      seen.push(value)
      window.remove(2)
    }
    expect(seen).toEqual(['a', 'c'])
  })
})
