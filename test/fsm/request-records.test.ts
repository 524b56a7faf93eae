import { expect, test } from 'vitest'
import { type RequestRecord, RequestRecords } from '../../src/fsm/records/request-records.ts'
import { seededRandom } from '../../src/lib/random.ts'

function idOf(n: number): Uint8Array {
  const id = new Uint8Array(16)
  new DataView(id.buffer).setFloat64(8, n)
  return id
}

function record(n: number, changes: Partial<RequestRecord> = {}): RequestRecord {
  const lanes = { a: n | 0, b: ~n, c: n * 3, d: -n | 0 }
  return {
    caller: 'zXJ0h6FSkC1z',
    id: idOf(n),
    atMs: 1_800_000_000_000 + n,
    index: n,
    outcome: 'hVx5K7cQmY2a',
    lanes,
    ...changes,
  }
}

test('records come back as they were, and are forgotten in order, whatever their size', () => {
  const random = seededRandom(7)
  const records = new RequestRecords()
  const twin: RequestRecord[] = []
  for (let n = 1; n <= 6000; n += 1) {
    const isLong = random.next() < 0.002
    const caller = ['', 'ann', 'björn', 'x'.repeat(300)][random.integer(0, 3)] ?? ''
    const outcome = (isLong ? '{"ok":false}' : 'é').repeat(random.integer(0, isLong ? 9000 : 20))
    const one = record(n, { caller, outcome })
    records.add(one)
    twin.push(one)
    while (random.next() < (n < 4000 ? 0.3 : 0.6)) {
      const oldest = twin.shift() ?? null
      expect(records.oldest()).toEqual(oldest)
      if (oldest === null) break
      records.forgetOldest()
      expect(records.find(oldest.caller, oldest.id)).toBeNull()
    }
    const some = twin[random.integer(0, Math.max(0, twin.length - 1))]
    if (some !== undefined) expect(records.find(some.caller, some.id)).toEqual(some)
    expect(records.size).toBe(twin.length)
  }
  for (const one of twin) expect(records.find(one.caller, one.id)).toEqual(one)
})

test('records that lie far apart in time or in the log come back as they were', () => {
  const records = new RequestRecords()
  const far = 2 ** 31
  const times = [1, far, far + 1, 2, 2 ** 47, 2 ** 47 - far, 2 ** 47 - far + 1, 3]
  const made = times.flatMap((atMs, n) => [
    record(2 * n, { atMs }),
    record(2 * n + 1, { index: atMs }),
  ])
  for (const one of made) records.add(one)
  for (const one of made) {
    expect(records.oldest()).toEqual(one)
    expect(records.oldestAtMs).toBe(one.atMs)
    records.forgetOldest()
  }
  expect(records.contentBytes).toBe(0)
})

test('one id of two callers is two records', () => {
  const records = new RequestRecords()
  const [ann, bob] = [record(1, { caller: 'ann' }), record(1, { caller: 'bob', index: 2 })]
  records.add(ann)
  records.add(bob)
  expect(records.find('ann', idOf(1))).toEqual(ann)
  expect(records.find('bob', idOf(1))).toEqual(bob)
  expect(records.find('eve', idOf(1))).toBeNull()
  expect(records.find('ann', new Uint8Array(15))).toBeNull()
})

test('what was added in any order stands in that of the log once it is sorted', () => {
  const records = new RequestRecords()
  const random = seededRandom(3)
  const order = Array.from({ length: 5000 }, (_, n) => n + 1)
  for (const n of order.toSorted(() => random.next() - 0.5)) records.add(record(n))
  records.sortByIndex()
  for (const n of order) {
    expect(records.oldest()?.index).toBe(n)
    records.forgetOldest()
  }
})

test('a remembered request takes no more than 80 bytes, and what is forgotten is given back', () => {
  const records = new RequestRecords()
  const count = 200_000
  for (let n = 1; n <= count; n += 1) records.add(record(n))
  const bytesEach = records.bytes / count
  expect(bytesEach).toBeLessThan(80)
  expect(records.contentBytes / count).toBe(56 + 2 * 12)
  for (let n = 1; n < count; n += 1) records.forgetOldest()
  expect(records.bytes).toBeLessThan(256 * 1024)
  records.forgetOldest()
  expect(records.contentBytes).toBe(0)
})
