import { expect, test } from 'vitest'
import { LargeBodyQueue } from '../../src/api/http/large-body-queue.ts'

const limits = {
  largeBodyBytes: 10,
  largeBodiesBytesMax: 100,
  largeBodiesWaitingMax: 3,
  largeBodyWaitMs: 60_000,
}
const tooMany = { code: 'SERVER_TOO_MANY_REQUESTS' }

test('large bodies are admitted while they fit the total limit; the others wait, and are admitted in order of arrival', async () => {
  const bodies = new LargeBodyQueue(limits)
  const first = await bodies.take(60)
  const taken: string[] = []
  const second = bodies.take(60).then((giveBack) => {
    taken.push('second')
    return giveBack
  })
  const third = bodies.take(20).then((giveBack) => {
    taken.push('third')
    return giveBack
  })
  await Promise.resolve()
  expect(taken).toEqual([])
  expect(bodies.bytes).toBe(60)
  first()
  first()
  const giveBacks = await Promise.all([second, third])
  expect(taken).toEqual(['second', 'third'])
  expect(bodies.bytes).toBe(80)
  for (const giveBack of giveBacks) giveBack()
  expect(bodies.bytes).toBe(0)
})

test('a body larger than the total limit is admitted if no other large body is in memory', async () => {
  const bodies = new LargeBodyQueue(limits)
  const giveBack = await bodies.take(500)
  const next = bodies.take(20)
  giveBack()
  const last = await next
  expect(bodies.bytes).toBe(20)
  last()
})

test('a large body is refused immediately if too many wait, and refused later if it waits too long', async () => {
  const bodies = new LargeBodyQueue({ ...limits, largeBodyWaitMs: 20 })
  const giveBack = await bodies.take(100)
  const waiting = Promise.allSettled([bodies.take(50), bodies.take(50), bodies.take(50)])
  await expect(bodies.take(50)).rejects.toMatchObject(tooMany)
  const refused = { status: 'rejected', reason: tooMany }
  expect(await waiting).toMatchObject([refused, refused, refused])
  const last = bodies.take(40)
  giveBack()
  const lastGiveBack = await last
  expect(bodies.bytes).toBe(40)
  lastGiveBack()
})

test('a body up to the size limit for small bodies does not count as large', () => {
  const bodies = new LargeBodyQueue(limits)
  expect([bodies.isLarge(10), bodies.isLarge(11)]).toEqual([false, true])
})
