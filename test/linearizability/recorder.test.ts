import { expect, test } from 'vitest'
import { checkBySearch } from './by-search.ts'
import { register } from './models.ts'
import { Recorder } from './recorder.ts'

const write = (argument: number) => ({ process: 'A', key: 'x', kind: 'write', argument })
const read = { process: 'B', key: 'x', kind: 'read', argument: null }

test('a recorded history without a clock keeps the order of its events', () => {
  const recorder = new Recorder()
  recorder.begin(write(1)).ok()
  recorder.begin(write(2)).ok(null, 7)
  recorder.begin(read).ok(1, 7)
  const operations = recorder.operations()
  expect(operations.map(({ invokedAt, returnedAt }) => [invokedAt, returnedAt])).toEqual([
    [1, 2],
    [3, 4],
    [5, 6],
  ])
  expect(operations.map(({ index }) => index)).toEqual([null, 7, 7])
  expect(checkBySearch(operations, register()).kind).toBe('violation')
})

test('all operations in a recorded history overlap if the clock is stopped', () => {
  const recorder = new Recorder({ now: () => 5 })
  recorder.begin(write(1)).ok()
  recorder.begin(write(2)).ok()
  recorder.begin(read).ok(1)
  expect(checkBySearch(recorder.operations(), register()).kind).toBe('linearizable')
})

test('the outcome of a recorded operation that never completed is unknown', () => {
  const recorder = new Recorder()
  const late = recorder.begin(write(1))
  recorder.begin(write(2)).failed()
  recorder.begin(write(3)).unknown()
  expect(recorder.operations().map(({ outcome }) => outcome)).toEqual([
    'unknown',
    'failed',
    'unknown',
  ])
  expect(recorder.operations().map(({ returnedAt }) => returnedAt)).toEqual([Infinity, 3, Infinity])
  late.ok()
  expect(recorder.operations()[0]?.outcome).toBe('ok')
})

test('a recorded operation can complete only once, and the length of a history is limited', () => {
  const recorder = new Recorder({ operationsMax: 2 })
  const first = recorder.begin(write(1))
  first.ok()
  expect(() => first.unknown()).toThrow('ended before')
  recorder.begin(write(2))
  expect(() => recorder.begin(write(3))).toThrow('more than 2 operations')
})

test('a recorded history with impossible times is refused without being checked', () => {
  const recorder = new Recorder({ now: () => 5 })
  recorder.begin(read).ok(1)
  const [operation] = recorder.operations()
  if (operation === undefined) throw new Error('recorded')
  const judge = (wrong: object) => () => checkBySearch([{ ...operation, ...wrong }], register())
  expect(judge({ returnedAt: 4 })).toThrow('impossible times')
  expect(judge({ returnedAt: Infinity })).toThrow('impossible times')
  expect(judge({ invokedAt: Number.NaN })).toThrow('impossible times')
  expect(judge({ index: 1.5 })).toThrow('no index')
  expect(judge({ kind: 'delete' })).toThrow('delete is none of')
})
