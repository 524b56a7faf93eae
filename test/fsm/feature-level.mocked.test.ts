import type { StateStore } from '../../src/ports/state-store.ts'
import { create, toBinary } from '@bufbuild/protobuf'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { CommandKind, FeatureLevelRaiseSchema, FormSchema } from '../../proto/gen/command_pb.ts'
import { entities } from '../../src/entities/registry.ts'
import { applyLogEntry } from '../../src/fsm/apply-log-entry.ts'
import { loadState } from '../../src/fsm/records/load.ts'
import { currentStorePosition } from '../../src/fsm/records/write-behind.ts'
import type { JsonObject } from '../../src/lib/text/canonical-json.ts'
import {
  FEATURE_LEVEL,
  FeatureLevelUnknownError,
  commandFeatureLevel,
} from '../../src/ports/feature-level.ts'
import type { Entry } from '../../src/raft/types.ts'
import { MemoryStateStore } from '../../src/store/state/memory-state-store.ts'
import { NEXT_LEVEL, withNextFields } from '../support/next-fields.ts'
import { LogWriter, formedState, identity, policy, service } from './support/log.ts'
import { ClusterState } from '../../src/fsm/access/cluster-state.ts'

// Goal: two releases that apply the same log have the same state, whatever fields the newer one
// has, until every voter knows them. Method: the modules of the state machine are loaded a second
// time with more fields and the next feature level, and both versions apply the same entries.

interface Generation {
  readonly apply: typeof applyLogEntry
  readonly load: (store: StateStore) => Promise<ClusterState>
  readonly markOf: typeof currentStorePosition
  readonly newState: () => ClusterState
}

const current: Generation = {
  apply: applyLogEntry,
  load: (store) => loadState(store, new ClusterState()),
  markOf: currentStorePosition,
  newState: () => new ClusterState(),
}

/** The next release: its services have more fields, and it knows the next feature level. */
async function nextGeneration(): Promise<Generation> {
  vi.resetModules()
  vi.doMock(import('../../src/ports/feature-level.ts'), async (original) => ({
    ...(await original()),
    FEATURE_LEVEL: NEXT_LEVEL as 3,
  }))
  vi.doMock(import('../../src/entities/kinds/service.ts'), async (original) => {
    const module = await original()
    const { service: known } = module
    return { ...module, service: withNextFields(known) }
  })
  const next = {
    ...(await import('../../src/fsm/apply-log-entry.ts')),
    ...(await import('../../src/fsm/records/load.ts')),
    ...(await import('../../src/fsm/access/cluster-state.ts')),
    ...(await import('../../src/fsm/records/write-behind.ts')),
  }
  return {
    apply: next.applyLogEntry,
    load: (store) => next.loadState(store, new next.ClusterState()),
    markOf: next.currentStorePosition,
    newState: () => new next.ClusterState(),
  }
}

afterEach(() => {
  vi.doUnmock('../../src/ports/feature-level.ts')
  vi.doUnmock('../../src/entities/kinds/service.ts')
  vi.resetModules()
})

function applied(generation: Generation, entries: readonly Entry[]): ClusterState {
  const state = generation.newState()
  for (const entry of entries) generation.apply(state, entry)
  return state
}

function digestsOf(state: ClusterState): readonly string[] {
  return [state.stateDigest(), state.entitiesDigest()]
}

function raiseTo(level: number): Uint8Array {
  return toBinary(FeatureLevelRaiseSchema, create(FeatureLevelRaiseSchema, { level }))
}

/** Writes entries without applying them. */
function unappliedLog(): LogWriter {
  const log = new LogWriter((entry) => ({
    index: entry.index,
    origin: null,
    audit: null,
    outcome: { ok: true, id: '' },
  }))
  log.form()
  return log
}

const later: JsonObject = {
  owner: 'harbour',
  isCritical: true,
  weight: 7,
  zones: ['east'],
  window: { from: 8, days: ['mon'] },
}

/**
 * Commands for each way in which a service is created and changed; some contain the fields of the
 * newer release.
 */
function writeServices(log: LogWriter, name: string): void {
  log.create('identity', `${name}-i`, identity(`${name}-i`, ['staff']))
  log.create('service', `${name}1`, service(`${name}1`, ['web']))
  log.create('servicePolicy', `${name}-p`, policy(`${name}-p`, ['#staff'], ['#web']))
  const fields = { ...service(`${name}2`), ...later }
  log.raw(CommandKind.ENTITY_CREATE, 'service', `${name}2`, fields)
  log.raw(CommandKind.ENTITY_PATCH, 'service', `${name}1`, { owner: 'nobody', tags: { a: 1 } })
  log.raw(CommandKind.ENTITY_REPLACE, 'service', `${name}2`, { ...fields, name: `${name}3` })
  log.batch([
    [CommandKind.ENTITY_CREATE, 'service', `${name}4`, { ...service(`${name}4`), ...later }],
    [CommandKind.ENTITY_PATCH, 'service', `${name}1`, { weight: 9 }],
  ])
  log.create('service', `${name}5`, service(`${name}5`))
  log.delete('service', `${name}5`)
}

describe('one log applied by an older and a newer release', () => {
  test('results in the same state until the feature level is raised, and in a state with the newer fields afterwards', async () => {
    const next = await nextGeneration()
    const log = unappliedLog()
    writeServices(log, 'a')
    const older = applied(current, log.entries)
    const newer = applied(next, log.entries)
    expect(digestsOf(newer)).toEqual(digestsOf(older))
    expect(newer.takeDirty()).toEqual(older.takeDirty())
    expect(newer.get('service', 'a2')).toMatchObject({ owner: '', weight: 1, name: 'a3' })

    const raise = unappliedLog()
    raise.entries.push(...log.entries.slice(raise.entries.length))
    raise.command(CommandKind.FEATURE_LEVEL_RAISE, raiseTo(NEXT_LEVEL))
    expect(() => applied(current, raise.entries)).toThrow(FeatureLevelUnknownError)
    writeServices(raise, 'b')
    const [one, other] = [applied(next, raise.entries), applied(next, raise.entries)]
    expect(digestsOf(one)).toEqual(digestsOf(other))
    expect(one.featureLevel).toBe(NEXT_LEVEL)
    expect(one.get('service', 'a2'), 'removed records remain removed').toMatchObject({ owner: '' })
    expect(one.get('service', 'b2')).toMatchObject({ ...later, name: 'b3' })
    expect(one.get('service', 'b1')).toMatchObject({ owner: 'nobody', weight: 9 })
  })

  test('results in the same state if one release continues with the stored state of the other release', async () => {
    const next = await nextGeneration()
    const log = unappliedLog()
    writeServices(log, 'a')
    const made = applied(current, log.entries)
    for (const [from, to] of [
      [current, next],
      [next, current],
    ] as const) {
      const state = applied(from, log.entries)
      const store = new MemoryStateStore()
      await store.write(state.takeDirty(), from.markOf(state))
      const loaded = await to.load(store)
      expect(digestsOf(loaded)).toEqual(digestsOf(made))
      const more = new LogWriter((entry) => to.apply(loaded, entry))
      more.entries.push(...log.entries)
      more.patch('service', 'a1', { name: 'moved' })
      expect(digestsOf(loaded)).toEqual(digestsOf(applied(current, more.entries)))
    }
  })

  test('is refused by the older release at a higher feature level before the older release reads a record', async () => {
    const next = await nextGeneration()
    const log = unappliedLog()
    log.command(CommandKind.FEATURE_LEVEL_RAISE, raiseTo(NEXT_LEVEL))
    const state = applied(next, log.entries)
    const store = new MemoryStateStore()
    await store.write(
      [...state.takeDirty(), { key: 'e/planet/x', value: '{}' }],
      currentStorePosition(state),
    )
    await expect(loadState(store, new ClusterState())).rejects.toThrow(
      `feature level ${NEXT_LEVEL}, this version supports up to ${FEATURE_LEVEL}; install the version`,
    )
    await expect(loadState(store, new ClusterState())).rejects.toBeInstanceOf(
      FeatureLevelUnknownError,
    )
  })
})

describe('the feature level of a state', () => {
  test('is the level in the command that formed the cluster, 1 by default, and never a level unknown to the release', () => {
    const { state } = formedState()
    expect(state.featureLevel).toBe(1)
    const formWith = (featureLevel: number): ClusterState => {
      const made = new ClusterState()
      const log = new LogWriter((entry) => applyLogEntry(made, entry))
      const message = create(FormSchema, { clusterId: 'c', featureLevel })
      log.command(CommandKind.FORM, toBinary(FormSchema, message))
      return made
    }
    expect(formWith(FEATURE_LEVEL).featureLevel).toBe(FEATURE_LEVEL)
    expect(() => formWith(NEXT_LEVEL)).toThrow(FeatureLevelUnknownError)
  })

  test('never decreases, and is part of the state digest and of the snapshot', async () => {
    const next = await nextGeneration()
    const state = next.newState()
    const log = new LogWriter((entry) => next.apply(state, entry))
    log.form()
    const raise = (level: number): unknown =>
      log.command(CommandKind.FEATURE_LEVEL_RAISE, raiseTo(level)).outcome
    expect(raise(NEXT_LEVEL)).toEqual({ ok: true, id: String(NEXT_LEVEL) })
    expect(raise(1)).toEqual({ ok: true, id: String(NEXT_LEVEL) })
    expect(raise(0)).toEqual({ ok: true, id: String(NEXT_LEVEL) })
    expect(state.featureLevel).toBe(NEXT_LEVEL)
    const level = state.featureLevel
    const raised = state.stateDigest()
    state.featureLevel = 1
    expect(state.stateDigest()).not.toBe(raised)
    state.featureLevel = level
    const store = new MemoryStateStore()
    await store.write(state.takeDirty(), currentStorePosition(state))
    expect(store.mark()?.featureLevel).toBe(NEXT_LEVEL)
    expect((await next.load(store)).featureLevel).toBe(NEXT_LEVEL)
  })

  test('alone determines whether a command for a higher level is refused, so that every release refuses it identically', async () => {
    const next = await nextGeneration()
    for (const generation of [current, next]) {
      const state = generation.newState()
      const log = new LogWriter((entry) => generation.apply(state, entry))
      log.form()
      const payload = LogWriter.write('service', 's', { name: 'x' })
      for (const kind of [CommandKind.ENTITY_CREATE, 4711]) {
        expect(log.command(kind, payload, { level: NEXT_LEVEL })).toMatchObject({
          outcome: { ok: false, code: 'FEATURE_LEVEL_NOT_RAISED' },
          audit: null,
        })
      }
      expect(state.get('service', 's')).toBeUndefined()
    }
  })
})

test('the state machine ignores a field of a later feature level, even if a command handler writes the field', async () => {
  const next = await nextGeneration()
  const state = next.newState()
  const written = { id: 's', createdAt: 1, updatedAt: 1, revision: 1, name: 's', ...later }
  state.put('service', written)
  expect(state.get('service', 's')).toMatchObject({ owner: '', weight: 1, zones: [] })
  state.featureLevel = NEXT_LEVEL
  state.put('service', written)
  expect(state.get('service', 's')).toMatchObject(later)
})

describe('a field or record kind that a release introduces', () => {
  test('has a feature level that the release supports', () => {
    const levels = entities.flatMap(({ since, fields }) => [
      since,
      ...Object.values(fields).map((field) => field.since),
    ])
    for (const kind of Object.values(CommandKind)) {
      if (typeof kind === 'number') levels.push(commandFeatureLevel(kind))
    }
    expect(Math.max(...levels)).toBeLessThanOrEqual(FEATURE_LEVEL)
    expect(Math.min(...levels)).toBe(1)
  })

  test('is never required in a request body, because older clients do not know it', () => {
    const required = entities.flatMap(({ name, since: of, fields }) =>
      Object.entries(fields)
        .filter(([, { since, isRequired }]) => isRequired && since > of)
        .map(([field]) => `${name}.${field}`),
    )
    expect(required).toEqual([])
  })
})

describe('the stored form of a record', () => {
  test('omits fields with zero values, which are restored when the record is loaded', async () => {
    const { state, log } = formedState()
    state.takeDirty()
    log.create('service', 's1', { name: 'one' })
    const [stored] = state.takeDirty().filter(({ key }) => key === 'e/service/s1')
    expect(Object.keys(JSON.parse(stored?.value ?? '') as JsonObject)).not.toContain('tags')
    expect(Object.keys(JSON.parse(stored?.value ?? '') as JsonObject)).toContain('name')
    const again = new ClusterState()
    again.load('e/service/s1', stored?.value ?? '')
    expect(again.get('service', 's1')).toEqual(state.get('service', 's1'))
    expect(again.get('service', 's1')).toMatchObject({ tags: {}, roleAttributes: [] })
  })

  test('is the same whether a field was written with its default value or omitted', () => {
    const { state } = formedState()
    const base = { id: 'p1', createdAt: 1, updatedAt: 1, revision: 1 }
    const zero = Object.fromEntries(
      Object.entries(state.table('authPolicy').entity.fields)
        .filter(([, field]) => field.computed === null)
        .map(([name, field]) => [name, structuredClone(field.zero)]),
    )
    const table = state.table('authPolicy')
    const [bare, full] = [table.shape(base, 1), table.shape({ ...zero, ...base }, 1)]
    expect(table.stored(full)).toBe(table.stored(bare))
    expect(JSON.parse(table.stored(bare))).toEqual(base)
  })
})
