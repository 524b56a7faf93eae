import { expect, test } from 'vitest'
import { kindNames } from '../../src/entities/kind-names.ts'
import type { RecordOf } from '../../src/entities/kind-records.ts'
import { idReferenceField } from '../../src/entities/fields.ts'
import type { Identity } from '../../src/entities/kinds/identity.ts'
import type { Mfa } from '../../src/entities/kinds/mfa.ts'
import { entities, findEntity, isKindName } from '../../src/entities/registry.ts'
import type { EntityRecord } from '../../src/lib/entity-record.ts'
import { type ChangeFeed, isChangeOfKind, type RecordChange } from '../../src/ports/change-feed.ts'
import type { StateView } from '../../src/ports/state-view.ts'
import { ClusterState } from '../../src/fsm/access/cluster-state.ts'

// tsc checks this file: an error that does not occur where one is expected is itself an error.

test('each kind of record has a descriptor under its name, and the kinds are sorted by name', () => {
  expect(entities.map(({ name }) => name)).toEqual(kindNames)
  expect([...kindNames].sort()).toEqual(kindNames)
})

test('the TypeScript type of a record follows from the name of its kind', () => {
  const state = new ClusterState()
  const base = { createdAt: 1, updatedAt: 1, revision: 1 }
  state.put('mfa', { ...base, id: 'alice', identityId: 'alice', isVerified: true })
  const mfa: Mfa | undefined = state.get('mfa', 'alice')
  expect(mfa?.isVerified).toBe(true)
  // @ts-expect-error: a record of one kind is not a record of another kind.
  const identity: Identity | undefined = state.get('mfa', 'alice')
  expect(identity?.id).toBe('alice')
  // @ts-expect-error: the kind has no such field.
  expect(mfa?.isVerifed).toBeUndefined()
  // @ts-expect-error: the kind has no such field by index access either.
  expect(mfa?.['isVerifed']).toBeUndefined()
  for (const row of state.table('mfa').rows.values()) expect(row.record.codesId).toBe('')
})

test('the fields of a record can be read by name if the record’s kind is unknown at compile time', () => {
  const state = new ClusterState()
  for (const kind of kindNames) {
    const record: EntityRecord | undefined = state.get(kind, 'x')
    expect(record?.['name']).toBeUndefined()
  }
})

test('code that uses a kind name that does not exist does not compile', () => {
  const state = new ClusterState()
  // @ts-expect-error: this kind does not exist.
  expect(state.get('no-such-kind', 'x')).toBeUndefined()
  // @ts-expect-error: this kind does not exist.
  expect(() => state.put('no-such-kind', { id: 'x' })).toThrow('no-such-kind')
  // @ts-expect-error: this kind does not exist.
  expect(idReferenceField('no-such-kind', 'refuse').reference?.to).toBe('no-such-kind')
})

test('a kind name that comes from outside the program is validated', () => {
  const name: string = 'no-such-kind'
  expect(isKindName(name)).toBe(false)
  expect(isKindName('toString')).toBe(false)
  expect(isKindName('mfa')).toBe(true)
  expect(() => findEntity(name)).toThrow('no-such-kind')
})

/** Calls that are only compiled, never run. */
export function unrun(view: StateView, feed: ChangeFeed, change: RecordChange): readonly unknown[] {
  const services: readonly RecordOf<'service'>[] = view.list('service', {}).records
  const ofHolder: readonly RecordOf<'authenticator'>[] = view.findAll(
    'authenticator',
    'identityId',
    'alice',
  )
  const fingerprint = isChangeOfKind(change, 'router') ? change.after?.fingerprint : null
  return [
    services,
    ofHolder,
    fingerprint,
    // @ts-expect-error: this kind does not exist.
    view.find('no-such-kind', 'name', 'x'),
    // @ts-expect-error: the kind has no such field.
    view.find('service', 'nam', 'x'),
    // @ts-expect-error: this kind does not exist.
    view.count('no-such-kind'),
    // @ts-expect-error: this kind does not exist.
    view.list('no-such-kind', {}),
    // @ts-expect-error: this kind does not exist.
    view.listing({ of: 'kind', entity: 'no-such-kind' }, {}),
    // @ts-expect-error: this kind does not exist.
    view.subList('no-such-kind', 'x', 'services', {}),
    // @ts-expect-error: the kind has no such field.
    view.listNaming('authenticator', 'holderId', 'x', {}),
    // @ts-expect-error: this kind does not exist.
    view.ref('no-such-kind', 'x'),
    // @ts-expect-error: this kind does not exist.
    feed.follow(['no-such-kind'], { onEntry: () => {}, onReplaced: () => {} }),
  ]
}
