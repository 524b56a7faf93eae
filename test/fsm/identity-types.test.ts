import { create, toBinary } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'
import { CommandKind, FeatureLevelRaiseSchema, FormSchema } from '../../proto/gen/command_pb.ts'
import { applyLogEntry } from '../../src/fsm/apply-log-entry.ts'
import { initialSeedRecords } from '../../src/fsm/seed/seed.ts'
import { LogWriter, formedState, identity } from './support/log.ts'
import { ClusterState } from '../../src/fsm/access/cluster-state.ts'

// Goal: from feature level 2 on, an identity keeps the type that it was given, also in a cluster
// that an earlier release created; below that level, every version stores the same.

const { ENTITY_CREATE, ENTITY_PATCH, ENTITY_REPLACE, FEATURE_LEVEL_RAISE, FORM } = CommandKind

function raise(log: LogWriter): void {
  const message = create(FeatureLevelRaiseSchema, { level: 2 })
  log.command(FEATURE_LEVEL_RAISE, toBinary(FeatureLevelRaiseSchema, message))
}

/** A cluster that release 0.1.0 created: with two types, at level 1. */
function clusterOfOld(): { readonly state: ClusterState; readonly log: LogWriter } {
  const state = new ClusterState()
  const log = new LogWriter((entry) => applyLogEntry(state, entry))
  const all = initialSeedRecords({
    adminId: 'admin',
    adminAuthenticatorId: 'admin-updb',
    adminName: 'admin',
    passwordHash: '$argon2id$test',
  })
  const records = all.filter(
    ({ entity, id }) => entity !== 'identityType' || ['Default', 'Router'].includes(id),
  )
  log.command(FORM, toBinary(FormSchema, create(FormSchema, { clusterId: 'cluster', records })))
  return { state, log }
}

const typesOf = (state: ClusterState): string[] => [...state.table('identityType').ids].toSorted()

test('a cluster of an earlier release gets the missing identity types once, when the feature level is raised', () => {
  const { state, log } = clusterOfOld()
  expect(typesOf(state)).toEqual(['Default', 'Router'])
  raise(log)
  expect(typesOf(state)).toEqual(['Default', 'Device', 'Router', 'Service', 'User'])
  const digest = state.entitiesDigest()
  raise(log)
  expect(state.entitiesDigest()).toBe(digest)
})

test('the type in a write of an identity is ignored below the feature level that introduced types, and stored from that level on', () => {
  const { state, log } = clusterOfOld()
  const written = { ...identity('before'), typeId: 'Device' }
  expect(log.raw(ENTITY_CREATE, 'identity', 'before', written).ok).toBe(true)
  expect(state.get('identity', 'before')?.['typeId']).toBe('Default')
  raise(log)
  expect(log.raw(ENTITY_PATCH, 'identity', 'before', { typeId: 'Device' }).ok).toBe(true)
  expect(state.get('identity', 'before')?.['typeId']).toBe('Device')
  expect(log.raw(ENTITY_REPLACE, 'identity', 'before', identity('before')).ok).toBe(true)
  expect(state.get('identity', 'before')?.['typeId']).toBe('Device')
})

test('an edge router with tunneling gives its identity the type Router; a write of an identity can neither set nor replace this type', () => {
  const { state, log } = formedState()
  raise(log)
  const refused = { ok: false, fault: { field: 'type' } }
  const made = { ...identity('false'), typeId: 'Router' }
  expect(log.raw(ENTITY_CREATE, 'identity', 'false', made)).toMatchObject(refused)
  log.create('identity', 'i', identity('plain'))
  expect(log.raw(ENTITY_PATCH, 'identity', 'i', { typeId: 'Router' })).toMatchObject(refused)
  log.create('edgeRouter', 'r', { name: 'gate', isTunnelerEnabled: true })
  expect(state.get('identity', 'r')?.['typeId']).toBe('Router')
  expect(log.raw(ENTITY_PATCH, 'identity', 'r', { typeId: 'User' })).toMatchObject(refused)
  const unknown = log.raw(ENTITY_PATCH, 'identity', 'i', { typeId: 'Person' })
  expect(unknown).toMatchObject({ ok: false, code: 'NOT_FOUND' })
})
