import { expect, test } from 'vitest'
import { formedState, identity, policy, service } from './support/log.ts'
import { ClusterState } from '../../src/fsm/access/cluster-state.ts'

/** The complete content of a state's indexes, and their orders. */
function indexed(state: ClusterState) {
  return Array.from(state.tables, ([name, { entity, ids, indexes }]) => ({
    name,
    ids: [...ids],
    entries: Array.from(indexes.entries(), (entry) => Object.values(entry).join(' ')).sort(),
    values: Object.keys(entity.fields).map((field) => [field, [...(indexes.values(field) ?? [])]]),
  }))
}

function loadedAgain(state: ClusterState): ClusterState {
  const loaded = new ClusterState()
  loaded.featureLevel = state.featureLevel
  for (const { key, value } of state.takeDirty()) if (value !== null) loaded.load(key, value)
  loaded.loaded()
  return loaded
}

test('a state loaded from the store finds the same records as the state that was stored', () => {
  const { state, log } = formedState()
  // Neither names nor IDs are added in order, and one name sorts differently by UTF-16 units than
  // by code points.
  for (const name of ['zoë', '\u{1F600}', '\uFF5E', 'bob', 'alice']) {
    log.create('identity', `id-${name.codePointAt(0)}`, identity(name, ['staff', name]))
  }
  log.create('service', 'mail', service('mail', ['office']))
  log.create('servicePolicy', 'use', policy('use', ['#staff'], ['@mail']))
  const loaded = loadedAgain(state)
  expect(indexed(loaded)).toEqual(indexed(state))
  expect(loaded.table('identity').indexes.values('name')?.size).toBe(6)
  expect(loaded.entitiesDigest()).toBe(state.entitiesDigest())
})

test('fields that are stored as zero or omitted are loaded as zero, in the usual order of fields', () => {
  const { state, log } = formedState()
  log.create('identity', 'alice', identity('Alice'))
  const loaded = loadedAgain(state)
  const [before, after] = [state, loaded].map((one) => one.get('identity', 'alice'))
  expect(before).toBeDefined()
  expect(JSON.stringify(after)).toBe(JSON.stringify(before))
})

test('a state returns its stored records exactly as it loads them, in the order of the store', () => {
  const { state, log } = formedState()
  for (const name of ['\u{1F600}', '\uFF5E', 'bob', 'a/b', 'a']) {
    log.create('identity', name, identity(name))
  }
  log.create('service', 'mail', service('mail'))
  const records = [...state.storedRecords()]
  const keys = records.map(({ key }) => Buffer.from(key, 'utf8'))
  expect(keys).toEqual([...keys].sort((a, b) => Buffer.compare(a, b)))
  const written = state
    .takeDirty()
    .filter(({ key }) => key.startsWith('e/') || key.startsWith('m/'))
  expect(new Map(records.map(({ key, value }) => [key, value]))).toEqual(
    new Map(written.map(({ key, value }) => [key, value])),
  )
})
