import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { create } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import { type Configuration, ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import { AlarmWatch } from '../../src/cluster/health/alarm-watch.ts'
import { Alarms } from '../../src/cluster/health/alarms.ts'
import { DivergenceWatch } from '../../src/cluster/state-transfer/state-divergence-handler.ts'
import { configurationFailureTolerance } from '../../src/cluster/health/failure-tolerance.ts'
import { type KnownMember, MemberDescriptions } from '../../src/cluster/soft-state/known-members.ts'
import type { Clock } from '../../src/lib/clock.ts'
import { alarmTable } from '../../src/cluster/alarm-table.ts'
import type { MemberView } from '../../src/ports/cluster-view.ts'
import { RecordedLog, until } from './mesh-fixture.ts'

class ManualClock implements Clock {
  ms = 1_000_000
  nowMs(): number {
    return this.ms
  }
  monotonicMs(): number {
    return this.ms
  }
}

function configurationOf(voters: readonly string[], outgoingVoters: string[] = []): Configuration {
  return create(ConfigurationSchema, {
    members: voters.map((id) => ({ id, voter: true })),
    outgoingVoters,
  })
}

const view = (id: string, changes: Partial<MemberView> = {}): MemberView => ({
  id,
  address: '',
  voter: true,
  leader: false,
  connected: true,
  version: '',
  apiAddresses: [],
  routerAddresses: [],
  certificatePem: '',
  featureLevel: 1,
  startedAtMs: 1,
  lastContactMs: 0,
  progress: null,
  readOnly: false,
  vitals: null,
  ...changes,
})

const skewed = (id: string, clockOffsetMs: number): MemberView =>
  view(id, {
    vitals: {
      leaderId: null,
      last: 0,
      fsyncP99Ms: 0,
      loopDelayP99Ms: 0,
      priority: 50,
      clockOffsetMs,
      isFailing: false,
    },
  })

const LOW_SPACE_BYTES = 512 * 1024 * 1024

function stage() {
  const clock = new ManualClock()
  const log = new RecordedLog()
  const alarms = new Alarms(clock, log.log)
  return { clock, log, alarms, watch: new AlarmWatch(alarms, clock, LOW_SPACE_BYTES) }
}

/** The free disk space is unknown, and log time is behind all clocks. */
const calm = { freeBytes: null, logTimeMs: 0 } as const

const codes = (alarms: Alarms): string[] => alarms.list().map(({ code }) => code)

test('an alarm keeps its start time, and is logged once when it is raised and once when it clears', () => {
  const { clock, log, alarms } = stage()
  alarms.raise('CLOCK_SKEW', { member: 'b', offsetMs: 3000 })
  const [first] = alarms.list()
  clock.ms += 5000
  alarms.raise('CLOCK_SKEW', { member: 'b', offsetMs: 4000 })
  const text =
    'the clock of b is 4.0 s ahead of this one; synchronize both by NTP, and check that neither host is overloaded'
  expect(alarms.list()).toEqual([{ ...first, text }])
  alarms.clear('CLOCK_SKEW', 'another')
  expect(codes(alarms)).toEqual(['CLOCK_SKEW'])
  alarms.clear('CLOCK_SKEW', 'b')
  expect(codes(alarms)).toEqual([])
  expect(log.lines.map((line) => line.split(' {')[0])).toEqual([
    'warn the clock of b is 3.0 s ahead of this one; synchronize both by NTP, and check that neither host is overloaded',
    `info cleared: ${text}`,
  ])
})

test('an alarm that is raised and cleared fifty times in five seconds is logged as raised once and as cleared once', () => {
  const { clock, log, alarms } = stage()
  for (let n = 0; n < 50; n += 1) {
    alarms.raise('NO_QUORUM_SPARE', {
      nextRisk: 'losing one more voter stops writes',
      unreachable: [],
    })
    clock.ms += 100
    alarms.clear('NO_QUORUM_SPARE')
  }
  expect(log.lines).toHaveLength(2)
})

test('an alarm about low free space is raised once, and clears only when the free space exceeds the limit by a margin', () => {
  const { alarms, log, watch } = stage()
  const one = configurationOf(['a'])
  for (let n = 0; n < 20; n += 1) {
    const freeBytes = LOW_SPACE_BYTES + (n % 2 === 0 ? -1 : 1)
    watch.look(one, [view('a')], { ...calm, freeBytes })
  }
  expect(codes(alarms)).toEqual(['LOW_SPACE'])
  watch.look(one, [view('a')], { ...calm, freeBytes: 2 * LOW_SPACE_BYTES })
  expect(codes(alarms)).toEqual([])
  expect(log.lines).toHaveLength(2)
})

const differsAt = (index: number) => ({ index, isSame: false })
const agreesAt = (index: number) => ({ index, isSame: true })

test('a controller raises one alarm, of severity warning, for each member whose state differs from its own', () => {
  const { alarms } = stage()
  const watch = new DivergenceWatch(alarms)
  watch.keep(['a', 'b', 'c'])
  watch.note('c', 1000, differsAt(64))
  watch.note('c', 1000, null)
  watch.note('b', 1000, differsAt(64))
  expect(alarms.list()).toMatchObject([{ code: 'STATE_DIVERGED' }, { code: 'STATE_DIVERGED' }])
  expect(alarms.list().map(({ severity }) => severity)).toEqual(['warning', 'warning'])
  watch.clear()
  expect(codes(alarms)).toEqual([])
})

test('the divergence alarm of a member clears when the member restarts or leaves the cluster', () => {
  const { alarms } = stage()
  const watch = new DivergenceWatch(alarms)
  watch.keep(['a', 'b', 'c'])
  watch.note('c', 1000, differsAt(64))
  watch.note('c', 2000, null)
  expect(codes(alarms)).toEqual([])
  watch.note('c', 2000, differsAt(128))
  expect(codes(alarms)).toEqual(['STATE_DIVERGED'])
  watch.keep(['a', 'b'])
  expect(codes(alarms)).toEqual([])
})

test('the divergence alarm of a member clears when the states are equal again at a later index', () => {
  const { alarms } = stage()
  const watch = new DivergenceWatch(alarms)
  watch.keep(['a', 'b', 'c'])
  watch.note('c', 1000, differsAt(128))
  watch.note('c', 1000, agreesAt(64))
  watch.note('c', 1000, agreesAt(128))
  expect(codes(alarms)).toEqual(['STATE_DIVERGED'])
  watch.note('c', 1000, agreesAt(192))
  expect(codes(alarms)).toEqual([])
})

test('at most 64 alarms are listed, and only STATE_QUARANTINED and APPLY_STOPPED are critical', () => {
  const { alarms } = stage()
  for (let n = 0; n < 100; n += 1) alarms.raise('STATE_DIVERGED', { member: `${n}`, index: 1 })
  expect(alarms.list()).toHaveLength(64)
  const rows = Object.entries(alarmTable)
  const critical = rows.filter(([, { severity }]) => severity === 'critical').map(([code]) => code)
  expect(critical).toEqual(['STATE_QUARANTINED', 'APPLY_STOPPED'])
})

/** The table of alarms in the page for operators. */
function printedAlarms(): string {
  const rows = Object.entries(alarmTable).map(
    ([code, { severity, meaning, remedy }]) =>
      `| \`${code}\` | ${severity} | ${meaning} | ${remedy} |`,
  )
  return ['| code | severity | meaning | remedy |', '|---|---|---|---|', ...rows, ''].join('\n')
}

test('docs/operate/alarms.md contains the table of alarms in the source', () => {
  const path = join(import.meta.dirname, '../../docs/operate/alarms.md')
  const page = readFileSync(path, 'utf8')
  const printed = page.replace(/^\| code \|.*\n(?:\|.*\n)+/m, () => printedAlarms())
  if (process.env['FLOTILLA_RECORD'] === '1') writeFileSync(path, printed)
  expect(readFileSync(path, 'utf8'), 'FLOTILLA_RECORD=1 records it').toBe(printed)
  expect(printed.split(printedAlarms())).toHaveLength(2)
})

test('the source raises every alarm in the table and no others', () => {
  const src = join(import.meta.dirname, '../../src')
  const raised = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => [
      ...readFileSync(join(src, file), 'utf8').matchAll(/larms\.raise\(\s*'([A-Z_]+)'/g),
    ])
    .map(([, code = '']) => code)
  expect([...new Set(raised)].sort()).toEqual(Object.keys(alarmTable).sort())
})

test.each([
  [[], [], -1, 'the members are not known here yet'],
  [['a'], ['a'], 0, 'only one voter'],
  [['a', 'b'], ['a', 'b'], 0, 'losing one more voter stops writes'],
  [['a', 'b', 'c'], ['a', 'b', 'c'], 1, 'writes survive the failure of one voter'],
  [['a', 'b', 'c'], ['a', 'c'], 0, 'losing one more voter stops writes'],
  [['a', 'b', 'c'], ['a'], -1, 'writes wait until b or c is reachable'],
  [
    ['a', 'b', 'c', 'd', 'e'],
    ['a', 'b', 'c', 'd', 'e'],
    2,
    'writes survive the failure of 2 voters',
  ],
])(
  'a cluster with the voters %j, of which %j are connected, has the failure tolerance %i',
  (voters, connected, spare, sentence) => {
    const found = configurationFailureTolerance(configurationOf(voters), (id) =>
      connected.includes(id),
    )
    expect(found.spare).toBe(spare)
    expect(found.nextRisk).toContain(sentence)
  },
)

test('the failure tolerance of a joint configuration is the lower one of its two halves', () => {
  const joint = configurationOf(['a', 'b', 'c', 'd', 'e'], ['a', 'b', 'f'])
  expect(configurationFailureTolerance(joint, (id) => id !== 'f')).toMatchObject({
    spare: 0,
    voters: 6,
  })
  expect(configurationFailureTolerance(joint, () => true).spare).toBe(1)
})

test('an alarm about a clock is raised if the clock is wrong for five seconds without interruption, but not after a single late message', () => {
  const { clock, alarms, watch } = stage()
  const one = configurationOf(['a', 'b'])
  watch.look(one, [view('a'), skewed('b', -2500)], calm)
  clock.ms += 4000
  watch.look(one, [view('a'), skewed('b', 10)], calm)
  clock.ms += 4000
  watch.look(one, [view('a'), skewed('b', -2500)], calm)
  clock.ms += 4900
  watch.look(one, [view('a'), skewed('b', -2500)], calm)
  expect(codes(alarms)).toEqual([])
  clock.ms += 100
  watch.look(one, [view('a'), skewed('b', -2500)], calm)
  expect(alarms.list()[0]?.text).toBe(
    'the clock of b is 2.5 s behind this one; synchronize both by NTP, and check that neither host is overloaded',
  )
  watch.look(one, [view('a'), skewed('b', 1000)], calm)
  clock.ms += 30_000
  watch.look(one, [view('a'), skewed('b', 1000)], calm)
  expect(codes(alarms)).toEqual([])
})

test('a clock offset that varies around two seconds raises one alarm, which clears only when the offset is well below two seconds', () => {
  const { clock, alarms, log, watch } = stage()
  const two = configurationOf(['a', 'b'])
  const lookFor = (ms: number, offsetMs: number): void => {
    for (const endMs = clock.ms + ms; clock.ms < endMs; clock.ms += 1000) {
      watch.look(two, [view('a'), skewed('b', offsetMs)], calm)
    }
  }
  for (let n = 0; n < 20; n += 1) {
    lookFor(60_000, 2100)
    lookFor(60_000, 1900)
  }
  expect(alarms.list()).toMatchObject([
    {
      code: 'CLOCK_SKEW',
      text: 'the clock of b is 1.9 s ahead of this one; synchronize both by NTP, and check that neither host is overloaded',
    },
  ])
  expect(log.lines).toHaveLength(1)
  lookFor(29_000, 1400)
  expect(codes(alarms)).toEqual(['CLOCK_SKEW'])
  lookFor(3000, 1400)
  expect(codes(alarms)).toEqual([])
  expect(log.lines).toHaveLength(2)
})

test('removing a member immediately clears the alarm about its clock', () => {
  const { clock, alarms, watch } = stage()
  const one = configurationOf(['a'])
  watch.look(one, [view('a'), skewed('b', 9000)], calm)
  clock.ms += 5000
  watch.look(one, [view('a'), skewed('b', 9000)], calm)
  expect(codes(alarms)).toEqual(['CLOCK_SKEW'])
  watch.look(one, [view('a')], calm)
  expect(codes(alarms)).toEqual([])
})

test('a voter whose connection breaks repeatedly raises one alarm, which clears after the voter stays connected', () => {
  const { clock, alarms, log, watch } = stage()
  const three = configurationOf(['a', 'b', 'c'])
  const lookFor = (ms: number, connected: boolean): void => {
    const members = [view('a'), view('b'), view('c', { connected })]
    for (const endMs = clock.ms + ms; clock.ms < endMs; clock.ms += 1000) {
      watch.look(three, members, calm)
    }
  }
  for (let n = 0; n < 20; n += 1) {
    lookFor(10_000, false)
    lookFor(20_000, true)
  }
  expect(codes(alarms)).toEqual(['NO_QUORUM_SPARE'])
  expect(log.lines).toHaveLength(1)
  lookFor(11_000, true)
  expect(codes(alarms)).toEqual([])
  expect(log.lines).toHaveLength(2)
})

test('a cluster of three voters with one voter disconnected raises an alarm until the voter returns', () => {
  const { clock, alarms, watch } = stage()
  const three = configurationOf(['a', 'b', 'c'])
  const all = [view('a'), view('b'), view('c')]
  const without = [view('a'), view('b'), view('c', { connected: false })]
  watch.look(three, without, calm)
  clock.ms += 5000
  watch.look(three, without, calm)
  expect(alarms.list()[0]).toMatchObject({
    code: 'NO_QUORUM_SPARE',
    text: 'losing one more voter stops writes; unreachable from here: c',
    severity: 'warning',
  })
  watch.look(three, all, calm)
  clock.ms += 30_000
  watch.look(three, all, calm)
  expect(codes(alarms)).toEqual([])
  const two = configurationOf(['a', 'b'])
  watch.look(two, [view('a'), view('b')], calm)
  clock.ms += 5000
  watch.look(two, [view('a'), view('b')], calm)
  expect(codes(alarms)).toEqual([])
})

test('a log with a missing tail raises an alarm, which clears once the log is repaired', () => {
  const { alarms, watch } = stage()
  watch.lookAtDebt({ term: 4, index: 90 })
  expect(alarms.list()).toMatchObject([
    { code: 'LOG_REPAIRING', text: expect.stringContaining('entries up to 90 of term 4') },
  ])
  watch.lookAtDebt({ term: 4, index: Number.MAX_SAFE_INTEGER })
  expect(alarms.list()[0]?.text).toContain('entries of term 4')
  watch.lookAtDebt(null)
  expect(alarms.list()).toEqual([])
})

test('free space below the limit raises an alarm, which stays while the free space is unknown and clears at twice the limit', () => {
  const { alarms, watch } = stage()
  const one = configurationOf(['a'])
  watch.look(one, [view('a')], { ...calm, freeBytes: LOW_SPACE_BYTES - 1 })
  expect(codes(alarms)).toEqual(['LOW_SPACE'])
  watch.look(one, [view('a')], calm)
  expect(codes(alarms)).toEqual(['LOW_SPACE'])
  watch.look(one, [view('a')], { ...calm, freeBytes: 2 * LOW_SPACE_BYTES })
  expect(codes(alarms)).toEqual([])
})

test('the descriptions of members are saved at most once a minute and at shutdown, without those of removed members', async () => {
  const clock = new ManualClock()
  const saved: string[][] = []
  const said: KnownMember = { version: 'v1', startedAtMs: 5, apiAddresses: [], certificatePem: '' }
  const memory = {
    load: () => new Map([['old', said]]),
    save: (members: ReadonlyMap<string, KnownMember>) => {
      saved.push([...members.keys()])
      return Promise.resolve()
    },
  }
  const known = new MemberDescriptions(memory, clock, () => undefined)
  expect(known.of('old')).toEqual(said)
  known.note('a', said)
  known.keep(new Set(['old', 'a']))
  expect(saved).toEqual([['old', 'a']])
  await Promise.resolve()
  clock.ms += 59_000
  known.note('a', { ...said, startedAtMs: 6 })
  known.note('b', { ...said, startedAtMs: 0 })
  known.keep(new Set(['a', 'b']))
  expect(saved).toHaveLength(1)
  clock.ms += 1000
  known.keep(new Set(['a', 'b']))
  expect(saved[1]).toEqual(['a'])
  await Promise.resolve()
  await known.save()
  expect(saved).toHaveLength(2)
  known.note('a', { ...said, startedAtMs: 7 })
  await known.save()
  expect(saved).toHaveLength(3)
})

test('certificates of removed members are kept for 90 days, and only those of the last 16 removed members', () => {
  const clock = new ManualClock()
  const day = 24 * 60 * 60_000
  const said = (certificatePem: string): KnownMember => ({
    version: 'v1',
    startedAtMs: 5,
    apiAddresses: [],
    certificatePem,
  })
  const known = new MemberDescriptions(null, clock, () => undefined)
  known.note('a', said('pem a'))
  known.note('b', said(''))
  known.keep(new Set(['a', 'b']))
  expect(known.former()).toEqual([])
  const removedAtMs = clock.ms
  known.keep(new Set())
  expect(known.of('a')).toBe(null)
  expect(known.former()).toEqual([{ certificatePem: 'pem a', removedAtMs }])
  known.note('a', said('pem of another key'))
  clock.ms += 90 * day - 1
  known.keep(new Set(['a']))
  expect(known.former()).toEqual([{ certificatePem: 'pem a', removedAtMs }])
  clock.ms += 1
  known.keep(new Set(['a']))
  expect(known.former()).toEqual([])
  for (let number = 0; number < 20; number += 1) {
    known.note(`c${number}`, said(`pem ${number}`))
    known.keep(new Set(['a']))
  }
  expect(known.former().map(({ certificatePem }) => certificatePem)).toEqual(
    Array.from({ length: 16 }, (_, at) => `pem ${at + 4}`),
  )
})

test('if member descriptions change during a save, the save that was requested last completes only after it has written the change', async () => {
  const clock = new ManualClock()
  const saved: number[] = []
  let finish = (): void => undefined
  const memory = {
    load: () => new Map<string, KnownMember>(),
    save: async (members: ReadonlyMap<string, KnownMember>) => {
      const count = members.size
      await new Promise<void>((resolve) => (finish = resolve))
      saved.push(count)
    },
  }
  const known = new MemberDescriptions(memory, clock, () => undefined)
  const said: KnownMember = { version: 'v1', startedAtMs: 5, apiAddresses: [], certificatePem: '' }
  known.note('a', said)
  known.keep(new Set(['a', 'b']))
  known.note('b', said)
  const last = known.save()
  finish()
  await Promise.resolve()
  await until('the second one has begun', () => {
    finish()
    return saved.length === 2
  })
  await last
  expect(saved).toEqual([1, 2])
})

test('log time that is far ahead of the clocks of a majority raises an alarm until log time is no longer ahead', () => {
  const { clock, alarms, watch } = stage()
  const record = configurationOf(['a', 'b', 'c'])
  const look = (aheadMs: number, offsets: readonly number[] = [0, 0]): void => {
    const peers = ['b', 'c'].map((id, at) => skewed(id, offsets[at] ?? 0))
    const logTimeMs = clock.nowMs() + aheadMs
    watch.look(record, [skewed('a', 0), ...peers], { freeBytes: null, logTimeMs })
  }
  const twoDaysMs = 2 * 24 * 60 * 60_000
  look(twoDaysMs)
  clock.ms += 5000
  look(twoDaysMs, [twoDaysMs, twoDaysMs])
  expect(codes(alarms), 'log time is no further ahead than a majority of the clocks').not.toContain(
    'LOG_TIME_AHEAD',
  )
  look(twoDaysMs)
  clock.ms += 5000
  look(twoDaysMs)
  expect(alarms.list().find(({ code }) => code === 'LOG_TIME_AHEAD')?.text).toBe(
    'log time is 172800 s ahead of the clocks of a majority; check that those are right, then run flotilla cluster reset-log-time',
  )
  watch.look(record, [skewed('a', 0)], { freeBytes: null, logTimeMs: 0 })
  clock.ms += 60_000
  watch.look(record, [skewed('a', 0)], { freeBytes: null, logTimeMs: 0 })
  expect(codes(alarms), 'one clock of three is not enough').toContain('LOG_TIME_AHEAD')
  look(0)
  clock.ms += 30_000
  look(0)
  expect(codes(alarms)).not.toContain('LOG_TIME_AHEAD')
})
