import { create, toBinary } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'
import { ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import { applyLogEntry } from '../../src/fsm/apply-log-entry.ts'
import { StateMachine } from '../../src/fsm/state-machine.ts'
import type { Position } from '../../src/raft/types.ts'
import { LogWriter, service, startMs } from './support/log.ts'
import { writeRandomLog } from './support/random-log.ts'
import { ManualSchedule, TestStore } from './support/store.ts'
import { ClusterState } from '../../src/fsm/access/cluster-state.ts'

const clock = { nowMs: () => startMs, monotonicMs: () => 0 }

interface Bench {
  readonly machine: StateMachine
  readonly log: LogWriter
  readonly store: TestStore
  readonly time: ManualSchedule
  readonly persisted: Position[]
}

async function open(
  store = new TestStore(),
  flushBytes = 1024 * 1024,
  dirtyCharactersMax = Infinity,
): Promise<Bench> {
  const time = new ManualSchedule()
  const limits = { flushPeriodMs: 200, flushBytes, dirtyCharactersMax }
  const machine = await StateMachine.open({ store, clock, schedule: time.schedule, limits })
  const persisted: Position[] = []
  machine.onPersisted = (position) => persisted.push(position)
  const log = new LogWriter(
    (entry) => machine.apply(entry),
    () => machine.digests(),
  )
  return { machine, store, time, persisted, log }
}

test('applying one log twice gives equal digests at every index, and no two indexes have the same digests', () => {
  const digests: string[] = []
  const first = new ClusterState()
  const log = new LogWriter((entry) => {
    const applied = applyLogEntry(first, entry)
    digests.push(`${first.stateDigest()} ${first.entitiesDigest()}`)
    return applied
  })
  log.form()
  writeRandomLog(log, 1, 800)
  const second = new ClusterState()
  const again = log.entries.map((entry) => {
    applyLogEntry(second, entry)
    return `${second.stateDigest()} ${second.entitiesDigest()}`
  })
  expect(again).toEqual(digests)
  expect(new Set(digests).size).toBe(digests.length)
})

test('a state that is loaded from the store equals the applied state, and stays equal with further entries', async () => {
  const { machine, log, store } = await open()
  log.form()
  writeRandomLog(log, 2, 600)
  const before = machine.digests()
  await machine.close()
  const reopened = await open(store)
  expect(reopened.machine.digests()).toEqual(before)
  expect(reopened.machine.progress()).toEqual({ applied: before.index, persisted: before.index })

  const whole = new ClusterState()
  for (const entry of log.entries) applyLogEntry(whole, entry)
  const rest = new LogWriter((entry) => {
    applyLogEntry(whole, entry)
    return reopened.machine.apply(entry)
  })
  rest.entries.push(...log.entries)
  rest.timeMs = log.timeMs
  writeRandomLog(rest, 3, 300)
  expect(reopened.machine.digests().state).toBe(whole.stateDigest())
  expect(reopened.machine.digests().entities).toBe(whole.entitiesDigest())
})

test('the sorted ids of a table do not depend on the order of creation, and its records can be counted by a field', async () => {
  const { machine, log } = await open()
  log.form()
  for (const id of ['s3', 's1', 's2']) log.create('service', id, service(`name of ${id}`))
  expect([...machine.ids('service')]).toEqual(['s3', 's1', 's2'])
  expect([...machine.sortedIds('service')]).toEqual(['s1', 's2', 's3'])
  expect(machine.countWith('terminator', 'serviceId', 's1')).toBe(0)
  expect(machine.countWith('identity', 'authPolicyId', 'default')).toBe(1)
})

test('a store is rejected if its records do not match the digest stored with their log position', async () => {
  const { machine, log, store } = await open()
  log.form()
  log.create('service', 's1', service('one'))
  await machine.close()
  const value = store.contents.records.get('e/service/s1') ?? ''
  store.contents.records.set('e/service/s1', value.replace('one', 'eno'))
  await expect(StateMachine.open({ store, clock })).rejects.toThrow('damaged')
})

test('the state machine writes changes to the store soon after the first change, in one batch', async () => {
  const { machine, log, store, time, persisted } = await open()
  log.form()
  log.create('service', 's1', service('one'))
  expect(store.writes).toBe(0)
  time.advance(199)
  expect(store.writes).toBe(0)
  time.advance(1)
  await expect.poll(() => persisted).toEqual([{ term: 1, index: 2 }])
  expect(store.writes).toBe(1)
  expect(machine.progress()).toEqual({ applied: 2, persisted: 2 })
})

test('the state machine writes many changes together, with at most one batch in progress', async () => {
  const { machine, log, store, time } = await open(new TestStore(), 1000)
  let release: () => void = () => undefined
  store.gate = new Promise((resolve) => {
    release = resolve
  })
  log.form()
  for (let i = 0; i < 100; i += 1) log.create('service', `s${i}`, service(`service ${i}`))
  expect(store.inFlight).toBe(1)
  expect(machine.progress().persisted).toBe(0)
  release()
  await expect
    .poll(() => {
      time.advance(200)
      return machine.progress().persisted
    })
    .toBe(101)
  expect(store.inFlightMost).toBe(1)
})

test('the state machine reports a backlog once a slow store has many writes to complete, until the store has caught up', async () => {
  const { machine, log, store } = await open(new TestStore(), 1000, 20_000)
  let release: () => void = () => undefined
  store.gate = new Promise((resolve) => {
    release = resolve
  })
  log.form()
  let created = 0
  for (; !machine.isBehind; created += 1) {
    log.create('service', `s${created}`, service(`service ${created}`))
  }
  expect(store.inFlight).toBe(1)
  expect(created).toBeGreaterThan(20)
  expect(created).toBeLessThan(200)
  release()
  await expect.poll(() => machine.isBehind).toBe(false)
  await expect.poll(() => machine.progress().persisted).toBe(created + 1)
})

test('an entry that changes no record also advances the persisted index, so that the log can be compacted up to it', async () => {
  const { machine, log, time } = await open()
  const record = { members: [{ id: 'ctrl1', voter: true, address: '127.0.0.1:1' }] }
  const configuration = create(ConfigurationSchema, record)
  log.append('configuration', toBinary(ConfigurationSchema, configuration))
  time.advance(200)
  await expect.poll(() => machine.progress().persisted).toBe(1)
  expect(machine.persistedMark()).toEqual({
    position: { term: 1, index: 1 },
    configuration,
    timeMs: startMs,
    cameBySnapshot: false,
  })
})

test('the state machine reports a failure of the store once, and writes nothing afterwards', async () => {
  const { machine, log, store, time, persisted } = await open()
  const failures: Error[] = []
  machine.onFailed = (error) => failures.push(error)
  store.failure = new Error('disk')
  log.form()
  time.advance(200)
  await expect.poll(() => failures.map((error) => error.message)).toEqual(['disk'])
  log.create('service', 's1', service('one'))
  time.advance(200)
  await machine.close()
  expect(persisted).toEqual([])
  expect(failures).toHaveLength(1)
})

test('after an entry that cannot be applied, no further entry is applied, and the partly applied state is discarded', async () => {
  const { machine, log, store } = await open()
  log.form()
  expect(() => log.append('command', Uint8Array.of(255))).toThrow('entry 2 can not be applied')
  expect(() => log.create('service', 's1', service('one'))).toThrow('entry 2')
  await machine.close()
  expect(store.writes).toBe(0)
})

test('the state machine ignores an entry that was already applied, and refuses a gap', async () => {
  const { machine, log } = await open()
  log.form()
  const [entry] = log.entries
  if (entry === undefined) throw new Error('no entry')
  expect(machine.apply(entry)).toEqual({
    index: 1,
    origin: null,
    outcome: null,
    audit: null,
  })
  expect(() => machine.apply({ ...entry, index: 3 })).toThrow('without gaps')
})

test('a caller that waits for an index is notified when the index is applied, or after the timeout', async () => {
  const { machine, log, time } = await open()
  const second = machine.waitForApplied(2, 1000)
  const third = machine.waitForApplied(3, 1000)
  log.form()
  log.create('service', 's1', service('one'))
  expect(await second).toBe(true)
  expect(await machine.waitForApplied(1, 0)).toBe(true)
  time.advance(1000)
  expect(await third).toBe(false)
})

test('a snapshot of one state machine replaces the state of another, also for readers and waiting callers', async () => {
  const source = await open()
  source.log.form()
  writeRandomLog(source.log, 5, 300)
  const target = await open()
  target.log.append('noop', new Uint8Array())
  const waiting = target.machine.waitForApplied(source.machine.appliedIndex, 1000)

  const snapshot = await source.machine.snapshot()
  const receiver = await target.machine.receive()
  for await (const chunk of snapshot.chunks()) await receiver.write(chunk)
  expect(await receiver.finish()).toEqual(snapshot.mark)
  expect(target.machine.appliedIndex).toBe(1)
  await target.machine.restore(receiver)

  expect(await waiting).toBe(true)
  expect(target.machine.digests()).toEqual(source.machine.digests())
  expect(target.machine.list('service', {})).toEqual(source.machine.list('service', {}))
  expect(target.persisted.at(-1)).toEqual(snapshot.mark.position)
  target.log.entries.length = 0
  target.log.entries.push(...source.log.entries)
  target.log.timeMs = source.log.timeMs
  expect(target.log.create('service', 'after', service('after restore')).ok).toBe(true)
  expect(target.machine.progress().applied).toBe(source.machine.appliedIndex + 1)
})
