import { expect, test } from 'vitest'

import { Alarms } from '../../src/cluster/health/alarms.ts'
import {
  Quarantine,
  quarantineLimits,
  type QuarantineRecord,
} from '../../src/cluster/state-transfer/quarantine.ts'
import { evaluateDigests } from '../../src/cluster/state-transfer/state-divergence-handler.ts'
import type { Clock } from '../../src/lib/clock.ts'
import { RecordedLog } from './mesh-fixture.ts'

class ManualClock implements Clock {
  ms = 0
  nowMs = (): number => 1_700_000_000_000 + this.ms
  monotonicMs = (): number => this.ms
}

const heard = (said: Readonly<Record<string, string>>) => new Map(Object.entries(said))

function judge(own: string, said: Readonly<Record<string, string>>, voters = 'abc') {
  return evaluateDigests({ selfId: 'a', own, heard: heard(said), voters: [...voters] })
}

test('a majority of the voters decides whose state is wrong', () => {
  expect(judge('x', { b: 'x', c: 'x' })).toEqual({ kind: 'fine', odd: [] })
  expect(judge('x', { b: 'x', c: 'y' })).toEqual({ kind: 'fine', odd: ['c'] })
  expect(judge('y', { b: 'x', c: 'x' })).toEqual({ kind: 'odd', agreeing: ['b', 'c'] })
  expect(judge('y', { b: 'x', c: 'x', d: 'x', e: 'y' }, 'abcde').kind).toBe('odd')
})

test('one faulty or malicious member cannot put another member out of service', () => {
  expect(judge('x', { b: 'y' })).toEqual({ kind: 'open' })
  expect(judge('x', { b: 'y', c: 'x' })).toEqual({ kind: 'fine', odd: ['b'] })
  expect(judge('x', { b: 'y' }, 'ab')).toEqual({ kind: 'tie' })
})

test('members that are not a majority decide nothing about the state, even if they agree', () => {
  expect(judge('y', { b: 'x', c: 'x' }, 'abcd')).toEqual({ kind: 'open' })
  expect(judge('y', { b: 'x', c: 'x' }, 'abcde')).toEqual({ kind: 'open' })
  expect(judge('y', { b: 'x', c: 'x', d: 'y' }, 'abcd')).toEqual({ kind: 'tie' })
  expect(judge('x', { b: 'y', c: 'z' })).toEqual({ kind: 'tie' })
})

test('the states of learners are compared but do not count toward the majority', () => {
  expect(judge('y', { b: 'x', c: 'x', d: 'x' }, 'bcd')).toMatchObject({ kind: 'odd' })
  expect(judge('y', { b: 'x', c: 'x' }, 'bcd')).toMatchObject({ kind: 'odd' })
  expect(judge('x', { b: 'x', l1: 'y', l2: 'y', l3: 'y' })).toEqual({
    kind: 'fine',
    odd: ['l1', 'l2', 'l3'],
  })
  expect(judge('x', { l1: 'y', l2: 'y', l3: 'y' })).toEqual({ kind: 'open' })
})

class Mark implements QuarantineRecord {
  text: string | null = null
  isSet = (): boolean => this.text !== null
  set = (reason: string): void => {
    this.text = reason
  }
  clear = (): void => {
    this.text = null
  }
}

function stage(mark = new Mark()) {
  const clock = new ManualClock()
  const log = new RecordedLog()
  const alarms = new Alarms(clock, log.log)
  return { clock, log, alarms, mark, made: new Quarantine({ clock, alarms, log: log.log, mark }) }
}

test('a wrong state is quarantined and rebuilt, and serves requests again once a majority has the same state', () => {
  const { clock, alarms, mark, made } = stage()
  expect(made.isQuarantined).toBe(false)
  expect(made.foundOdd(64, ['b', 'c'])).toBe(true)
  expect([made.isQuarantined, mark.isSet()]).toEqual([true, true])
  expect(alarms.list()).toMatchObject([{ code: 'STATE_QUARANTINED', severity: 'critical' }])
  expect(made.isRebuildDue(clock.ms)).toBe(true)
  expect(made.foundOdd(64, ['b', 'c'])).toBe(false)
  expect(made.agreed(64)).toBe(false)
  made.replaced(100)
  expect([made.phase, made.isRebuildDue(clock.ms)]).toEqual(['proving', false])
  // A report about the previous state has no effect.
  expect(made.agreed(99)).toBe(false)
  expect([made.isQuarantined, mark.isSet()]).toEqual([true, true])
  expect(made.agreed(100)).toBe(true)
  expect([made.isQuarantined, mark.isSet()]).toEqual([false, false])
  expect(alarms.list()).toEqual([])
})

test('attempts to get a state from another member are repeated at growing intervals', () => {
  const { clock, made } = stage()
  made.foundOdd(64, ['b', 'c'])
  const waits: number[] = []
  for (let attempt = 0; attempt < 10; attempt += 1) {
    made.failed('nobody is there')
    const failedMs = clock.ms
    while (!made.isRebuildDue(clock.ms)) clock.ms += 100
    waits.push(clock.ms - failedMs)
  }
  expect(waits.slice(0, 3)).toEqual([500, 1000, 2000])
  expect(waits.at(-1)).toBe(quarantineLimits.retryMsMax)
})

test('a state that is wrong after three rebuilds is not rebuilt again, and raises an alarm', () => {
  const { clock, alarms, mark, made } = stage()
  for (let rebuild = 1; rebuild <= 3; rebuild += 1) {
    made.foundOdd(100 * rebuild, ['b', 'c'])
    made.replaced(100 * rebuild + 10)
    // An equal state in between does not reset the count of rebuilds.
    if (rebuild < 3) expect(made.agreed(100 * rebuild + 20)).toBe(true)
    clock.ms += 60_000
  }
  expect(made.foundOdd(400, ['b', 'c'])).toBe(true)
  expect([made.phase, made.isRebuildDue(clock.ms + 1e9)]).toEqual(['stuck', false])
  expect(made.agreed(500)).toBe(false)
  expect([made.isQuarantined, mark.isSet()]).toEqual([true, true])
  expect(alarms.list()).toMatchObject([{ text: expect.stringContaining('restarted') }])
})

test('state rebuilds of more than an hour ago do not count toward the limit', () => {
  const { clock, made } = stage()
  for (let time = 1; time <= 10; time += 1) {
    made.foundOdd(100 * time, ['b', 'c'])
    made.replaced(100 * time + 10)
    expect(made.agreed(100 * time + 20)).toBe(true)
    clock.ms += quarantineLimits.rebuildsWindowMs / 2
  }
})

test('a state that was marked as wrong before the start is quarantined from the start', () => {
  const mark = new Mark()
  mark.set('it was wrong')
  const { clock, alarms, made } = stage(mark)
  expect([made.phase, made.isRebuildDue(clock.ms)]).toEqual(['rebuilding', true])
  expect(alarms.list()).toMatchObject([{ code: 'STATE_QUARANTINED' }])
})

test('a failure to write or remove the quarantine mark is logged, and has no other effect', () => {
  const mark = new Mark()
  const broken = () => {
    throw new Error('the disk is full')
  }
  Object.assign(mark, { set: broken, clear: broken })
  const { log, made } = stage(mark)
  made.foundOdd(64, ['b', 'c'])
  made.replaced(70)
  expect(made.agreed(70)).toBe(true)
  expect(
    log.lines.filter((line) => line.startsWith('error The') || line.startsWith('error')),
  ).toHaveLength(3)
})
