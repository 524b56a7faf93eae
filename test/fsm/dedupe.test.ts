import { createHash } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { create } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import {
  CommandKind,
  type Origin,
  OriginSchema,
  type RequestId,
  RequestIdSchema,
} from '../../proto/gen/command_pb.ts'
import {
  release010DeduplicationLimits,
  ProposerDeduplication,
  requestIdAheadMsMax,
  requestIdsBytesMax,
  requestIdsPerCallerBytesMax,
  RequestDeduplication,
  requestIdRetentionMs,
} from '../../src/fsm/records/deduplication.ts'
import { digestLanes, SetDigest } from '../../src/fsm/records/digest.ts'
import { newShortId } from '../../src/lib/random.ts'
import { newUuidv7 } from '../../src/lib/text/uuid.ts'
import { LogWriter, formedState, service, startMs } from './support/log.ts'

function origin(sequence: number, lowest: number, boot = 1, store = 1): Origin {
  return create(OriginSchema, {
    storeId: new Uint8Array(16).fill(store),
    boot: BigInt(boot),
    sequence: BigInt(sequence),
    lowestOutstanding: BigInt(lowest),
  })
}

function request(id: Uint8Array, hash = 1, caller = 'admin'): RequestId {
  return create(RequestIdSchema, { caller, id, bodyHash: new Uint8Array(32).fill(hash) })
}

describe('deduplication of commands from controllers', () => {
  const payload = (name: string): Uint8Array => LogWriter.write('service', name, { name })

  test('applies a repeated command once, and returns no outcome for the repeated command', () => {
    const { log, state } = formedState()
    const first = log.command(CommandKind.ENTITY_CREATE, payload('a'), { origin: origin(1, 1) })
    expect(first.outcome).toEqual({ ok: true, id: 'a' })
    expect(first.origin).toEqual({ storeId: '01'.repeat(16), boot: 1, sequence: 1 })
    log.delete('service', 'a')
    const again = log.command(CommandKind.ENTITY_CREATE, payload('a'), { origin: origin(1, 1) })
    expect(again.outcome).toBeNull()
    expect(state.get('service', 'a')).toBeUndefined()
  })

  test('applies each of several commands once, even if they arrive out of order', () => {
    const windows = new ProposerDeduplication()
    const taken = [3, 1, 3, 2, 1, 4, 2].map((sequence) =>
      windows.take('s', 1, sequence, 1, sequence),
    )
    expect(taken).toEqual([true, true, false, true, false, true, false])
    expect(windows.stored('s')).toMatchObject({ floor: 5, ahead: [] })
  })

  test('ignores a command whose sequence number its controller has given up in a later command', () => {
    const windows = new ProposerDeduplication()
    expect(windows.take('s', 1, 9, 9, 1)).toBe(true)
    expect(windows.take('s', 1, 4, 1, 2)).toBe(false)
  })

  test('starts a new sequence of numbers when the controller restarts, and refuses later commands of the earlier sequence', () => {
    const windows = new ProposerDeduplication()
    expect(windows.take('s', 1, 1, 1, 1)).toBe(true)
    expect(windows.take('s', 2, 1, 1, 2)).toBe(true)
    expect(windows.take('s', 1, 2, 1, 3)).toBe(false)
    expect(windows.take('other', 1, 1, 1, 4)).toBe(true)
  })

  test('remembers a limited number of stores (data folders), and evicts the store that was seen least recently', () => {
    const windows = new ProposerDeduplication()
    for (let i = 0; i < 300; i += 1) windows.take(`s${i}`, 1, 1, 1, i)
    expect(windows.stored('s0')).toBeNull()
    expect(windows.stored('s299')).not.toBeNull()
  })

  test('closes old gaps in the sequence numbers, so that the record of a store stays small', () => {
    const windows = new ProposerDeduplication()
    for (let i = 2; i < 70_000; i += 1) windows.take('s', 1, i, 1, i)
    expect(windows.stored('s')).toMatchObject({ floor: 70_000, ahead: [] })
  })
})

describe('deduplication of requests from callers', () => {
  test('returns the first outcome for a repeated request, and applies the request once', () => {
    const { log, state } = formedState()
    const id = newUuidv7(startMs)
    const first = log.create('service', 's1', service('one'), { request: request(id) })
    const again = log.create('service', 's2', service('one'), { request: request(id) })
    expect(again).toEqual(first)
    expect(state.table('service').rows.size).toBe(1)
  })

  test('remembers a permanent refusal like any other outcome', () => {
    const { log } = formedState()
    log.create('service', 's1', service('one'))
    const id = newUuidv7(startMs)
    const refusal = log.create('service', 's2', service('one'), { request: request(id) })
    log.delete('service', 's1')
    expect(log.create('service', 's3', service('one'), { request: request(id) })).toEqual(refusal)
  })

  test('refuses a request that reuses a request id with another body, without affecting other callers', () => {
    const { log } = formedState()
    const id = newUuidv7(startMs)
    log.create('service', 's1', service('one'), { request: request(id, 1) })
    expect(log.create('service', 's2', service('two'), { request: request(id, 2) })).toMatchObject({
      code: 'REQUEST_ID_REUSED',
    })
    const other = request(id, 2, 'ann')
    expect(log.create('service', 's2', service('two'), { request: other }).ok).toBe(true)
  })

  test('refuses a request id older than 15 minutes, and one more than five minutes ahead of log time', () => {
    const { log } = formedState()
    const old = request(newUuidv7(startMs - requestIdRetentionMs - 1))
    expect(log.create('service', 's1', service('one'), { request: old })).toMatchObject({
      code: 'REQUEST_ID_EXPIRED',
    })
    const edge = request(newUuidv7(startMs - requestIdRetentionMs))
    expect(log.create('service', 's1', service('one'), { request: edge }).ok).toBe(true)
    const ahead = request(newUuidv7(startMs + requestIdAheadMsMax + 1))
    expect(log.create('service', 's2', service('two'), { request: ahead })).toMatchObject({
      code: 'COULD_NOT_VALIDATE',
    })
  })

  test('never applies a request again after its outcome was discarded, even if the clock was ahead', () => {
    const { log, state } = formedState()
    for (const aheadMs of [-requestIdRetentionMs, 0, requestIdAheadMsMax]) {
      const id = request(newUuidv7(log.timeMs + aheadMs))
      const name = `at ${aheadMs}`
      expect(log.create('service', `a${aheadMs}`, service(name), { request: id }).ok).toBe(true)
      log.delete('service', `a${aheadMs}`)
      const firstMs = log.timeMs
      for (let step = 1; step <= 30; step += 1) {
        log.timeMs = firstMs + step * 60_000
        log.create('service', `b${aheadMs}`, service(name), { request: id })
        expect(state.get('service', `b${aheadMs}`)).toBeUndefined()
      }
    }
  })

  test('discards the outcomes of old requests by log time', () => {
    const { log, state } = formedState()
    log.create('service', 's1', service('one'), { request: request(newUuidv7(startMs)) })
    expect(state.requests.size).toBe(1)
    log.timeMs = startMs + requestIdRetentionMs + requestIdAheadMsMax
    log.append('noop', new Uint8Array())
    expect(state.requests.size).toBe(1)
    log.timeMs += 1
    log.append('noop', new Uint8Array())
    expect(state.requests.size).toBe(0)
  })
})

describe('stored deduplication records', () => {
  test('can be loaded in any order, and afterwards repeated requests get their outcome, and outcomes are discarded in order', () => {
    const { log, state } = formedState()
    const ids = Array.from({ length: 50 }, (_, n) => newUuidv7(startMs - n * 1000))
    for (const [n, id] of ids.entries()) {
      log.timeMs += 1000
      log.create('service', `s${n}`, service(n % 2 === 0 ? `${n}` : '0'), { request: request(id) })
    }
    const again = new RequestDeduplication(new SetDigest())
    const stored = state.takeDirty().filter(({ key }) => key.startsWith('r/'))
    expect(stored.length).toBe(50)
    const hash = '01'.repeat(32)
    for (const { key, value } of stored.toReversed()) again.load(key, value ?? '')
    again.loaded()
    for (const [n, id] of ids.entries()) {
      const now = { logTimeMs: log.timeMs, floorMs: 0, level: 2 }
      const known = state.requests.judge('admin', id, hash, now)
      expect(again.judge('admin', id, hash, now)).toEqual(known)
      expect(known).toMatchObject(n % 2 === 0 ? { ok: true, id: `s${n}` } : { ok: false })
      expect(again.judge('admin', id, '02'.repeat(32), now)).toMatchObject({
        code: 'REQUEST_ID_REUSED',
      })
    }
    const forgotten: string[] = []
    again.forget(Infinity, (key) => forgotten.push(key))
    expect(forgotten).toEqual(stored.map(({ key }) => key))
    expect(again.size).toBe(0)
  })

  test('are rejected if they are malformed', () => {
    const table = new RequestDeduplication(new SetDigest())
    const { key, value } = table.remember('ann', newUuidv7(startMs), {
      atMs: 1,
      bodyHash: '01'.repeat(32),
      index: 2,
      outcome: { ok: true, id: 'x' },
    })
    const other = new RequestDeduplication(new SetDigest())
    expect(() => other.load(`${key}00`, value)).toThrow()
    expect(() => other.load(key, value.replace('"index":2', '"index": 2'))).toThrow('malformed')
    other.load(key, value)
    expect(other.size).toBe(1)
  })

  test('contribute the SHA-256 hash of their key and value to the digest, for values of any length', () => {
    for (const length of [65_535, 65_536, 70_000]) {
      const value = 'ä'.repeat(length)
      const whole = createHash('sha256').update(`key\0${value}`).digest()
      expect(digestLanes('key', value).a).toBe(whole.readInt32LE(0))
      expect(digestLanes('key', value).d).toBe(whole.readInt32LE(12))
    }
  })
})

const noHash = '00'.repeat(32)

/** Stores request IDs of `caller` until one is refused, at most `countMax`. */
function fill(
  table: RequestDeduplication,
  { caller, level, id, countMax }: { caller: string; level: number; id: string; countMax: number },
): number {
  const logTimeMs = startMs
  for (let count = 0; count < countMax; count += 1) {
    const requestId = newUuidv7(startMs)
    const judged = table.judge(caller, requestId, noHash, { logTimeMs, floorMs: 0, level })
    if (judged !== 'new') return count
    const outcome = { ok: true, id } as const
    const index = table.size + 1
    table.remember(caller, requestId, { atMs: startMs, bodyHash: noHash, index, outcome })
  }
  return countMax
}

function judgeNew(
  table: RequestDeduplication,
  caller: string,
  level: number,
  atMs = startMs,
): unknown {
  return table.judge(caller, newUuidv7(atMs), noHash, { logTimeMs: atMs, floorMs: 0, level })
}

const tooMany = { code: 'SERVER_TOO_MANY_REQUESTS' }

test('one caller cannot use up the request ids of other callers, and can use more ids once its earlier ones are discarded', () => {
  const table = new RequestDeduplication(new SetDigest())
  const id = 'x'.repeat(65_536)
  const each = requestIdsPerCallerBytesMax / id.length
  const greedy = { caller: 'greedy', level: 2, id, countMax: 2 * each }
  expect(fill(table, greedy)).toBeGreaterThan(0.9 * each)
  expect(fill(table, greedy)).toBe(0)
  expect(judgeNew(table, 'other', 2)).toBe('new')
  // Before the level was raised, all callers together could use 128 MiB.
  expect(judgeNew(table, 'greedy', 1)).toBe('new')
  fill(table, { ...greedy, caller: 'other' })
  expect(judgeNew(table, 'third', 2)).toMatchObject(tooMany)
  expect(judgeNew(table, 'third', 1)).toBe('new')
  fill(table, { ...greedy, level: 1 })
  expect(table.size * id.length).toBeGreaterThan(0.99 * 128 * 1024 * 1024)
  expect(judgeNew(table, 'third', 1)).toMatchObject(tooMany)
  const laterMs = startMs + requestIdRetentionMs + requestIdAheadMsMax + 1
  table.forget(laterMs, () => undefined)
  expect(judgeNew(table, 'greedy', 2, laterMs)).toBe('new')
})

test('below feature level 2, a caller may use as many request ids as the controllers of release 0.1.0 allow', () => {
  expect(release010DeduplicationLimits).toMatchObject({
    countMax: 1_000_000,
    countPerCallerMax: 750_000,
  })
  const former = { ...release010DeduplicationLimits, countMax: 1000, countPerCallerMax: 750 }
  const table = new RequestDeduplication(new SetDigest(), former)
  const request = { level: 1, id: 'x', countMax: 2000 }
  expect(fill(table, { ...request, caller: 'greedy' })).toBe(750)
  expect(judgeNew(table, 'greedy', 2)).toBe('new')
  expect(fill(table, { ...request, caller: 'other' })).toBe(250)
  expect(judgeNew(table, 'third', 1)).toMatchObject(tooMany)
  expect(judgeNew(table, 'third', 2)).toBe('new')
})

/** The garbage collector of V8, which programs cannot call by default. */
function exposedCollect(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}

test('remembered request ids use no more memory than the limit assumes', () => {
  const table = new RequestDeduplication(new SetDigest())
  const collect = exposedCollect()
  collect()
  const before = process.memoryUsage().heapUsed
  const callers = Array.from({ length: 4 }, () => newShortId())
  for (const caller of callers) {
    for (let n = 0; n < 20_000; n += 1) {
      fill(table, { caller, level: 2, id: newShortId(), countMax: 1 })
    }
  }
  collect()
  const bytesEach = (process.memoryUsage().heapUsed - before) / table.size
  expect(table.size).toBe(80_000)
  expect(bytesEach).toBeGreaterThan(100)
  // About 320 bytes, where the limit counts 347.
  expect(bytesEach).toBeLessThan(requestIdsBytesMax / 265_000)
})
