import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { create, toBinary } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'
import { CommandKind, FeatureLevelRaiseSchema } from '../../proto/gen/command_pb.ts'
import { seededConfigTypes } from '../../src/fsm/seed/seed-config-types.ts'
import type { JsonObject } from '../../src/lib/text/canonical-json.ts'
import { formedState, type LogWriter } from './support/log.ts'
import { Restore, contentOf, restorableState } from './support/restoring.ts'
import type { ClusterState } from '../../src/fsm/access/cluster-state.ts'

// Goal: the entry that raises the level of a cluster of release 0.1.0 replaces its schemas with the
// current ones, in the same way on all controllers. Method: the config types as that release stored
// them.

const released = JSON.parse(
  readFileSync(join(import.meta.dirname, 'config-types-0.1.0.json'), 'utf8'),
) as Readonly<Record<string, { readonly schema: JsonObject }>>

const seeds = new Map(seededConfigTypes.map(({ id, schema }) => [id, schema]))

function writeReleased(log: LogWriter): void {
  for (const [id, { schema }] of Object.entries(released)) {
    if (seeds.has(id)) log.patch('configType', id, { schema })
  }
}

function raise(log: LogWriter): unknown {
  const payload = toBinary(FeatureLevelRaiseSchema, create(FeatureLevelRaiseSchema, { level: 2 }))
  return log.command(CommandKind.FEATURE_LEVEL_RAISE, payload).outcome
}

const schemaOf = (state: ClusterState, id: string): JsonObject | undefined =>
  state.get('configType', id)?.schema

test('config type schemas of release 0.1.0 are kept below feature level 2, and updated at level 2', () => {
  const { state, log } = formedState()
  writeReleased(log)
  for (const id of seeds.keys()) expect(schemaOf(state, id), id).toEqual(released[id]?.schema)
  expect(raise(log)).toMatchObject({ ok: true })
  for (const [id, schema] of seeds) expect(schemaOf(state, id), id).toEqual(schema)
  const host = state.get('configType', 'NH5p4FpGR')
  expect(host?.revision, 'the revision changes').toBe(state.position.index)
  expect(host?.updatedAt).toBe(state.logTimeMs)
  raise(log)
  expect(state.get('configType', 'NH5p4FpGR')).toEqual(host)
})

test('config type schemas that an operator changed, and config types that were deleted, are not updated', () => {
  const { state, log } = formedState()
  writeReleased(log)
  const schema = { ...released['NH5p4FpGR']?.schema, description: 'of our own' }
  log.patch('configType', 'NH5p4FpGR', { schema })
  log.delete('configType', 'proxy.v1')
  raise(log)
  expect(schemaOf(state, 'NH5p4FpGR')).toEqual(schema)
  expect(schemaOf(state, 'proxy.v1')).toBeUndefined()
  expect(schemaOf(state, 'g7cIWbcGg')).toEqual(seeds.get('g7cIWbcGg'))
})

test('restoring a backup of release 0.1.0 does not bring back the config type schemas of that release', () => {
  const old = formedState()
  writeReleased(old.log)
  const { state, log } = restorableState()
  const restore = new Restore(log, contentOf(old.state))
  restore.stage()
  expect(restore.end()).toMatchObject({ ok: true })
  for (const [id, schema] of seeds) expect(schemaOf(state, id), id).toEqual(schema)
})
