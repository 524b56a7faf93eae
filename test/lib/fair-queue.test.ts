import { expect, test } from 'vitest'
import { FairQueue } from '../../src/lib/bounds/fair-queue.ts'

test('callers in a queue take turns, and the items of each caller are served in their order', () => {
  const queue = new FairQueue<string>(16)
  for (const item of ['a1', 'a2', 'a3', 'b1', 'c1', 'c2']) queue.push(item.charAt(0), item)
  expect(queue.drain()).toEqual(['a1', 'b1', 'c1', 'a2', 'c2', 'a3'])
  expect(queue.shift()).toBeUndefined()
})

test('a new caller in a queue is served next, no matter how many items of another caller wait', () => {
  const queue = new FairQueue<string>(16)
  for (let i = 0; i < 5; i += 1) queue.push('a', `a${i}`)
  expect(queue.shift()).toBe('a0')
  queue.push('b', 'b0')
  expect(queue.shift()).toBe('a1')
  expect(queue.shift()).toBe('b0')
})

test('no single caller can fill the queue, and the queue never exceeds its capacity', () => {
  const queue = new FairQueue<number>(8)
  const pushed = (caller: string): number =>
    Array.from({ length: 20 }, (_, i) => queue.push(caller, i)).filter(Boolean).length
  expect(pushed('a')).toBe(6)
  expect(pushed('b')).toBe(2)
  expect(pushed('c')).toBe(0)
  expect(queue.drain()).toHaveLength(8)
  expect(pushed('c')).toBe(6)
})
