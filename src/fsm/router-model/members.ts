import { entityByKind } from '../../entities/registry.ts'
import type { ServicePolicy } from '../../entities/kinds/service-policy.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { changesByKind, type RecordChange } from '../../ports/change-feed.ts'
import type { ModelEvent, PolicyMember } from '../../ports/router-model.ts'
import { changeWithinScope, isSameStringList } from '../access/access-changes.ts'
import {
  matchesRoles,
  unorderedIdsSelectedByRoles,
  activePoliciesSelecting,
} from '../records/roles.ts'
import type { State } from '../records/state.ts'

const memberKinds = ['service', 'identity', 'postureCheck'] as const

const roleFields = {
  service: 'serviceRoles',
  identity: 'identityRoles',
  postureCheck: 'postureCheckRoles',
} as const

type MemberChange = RecordChange<PolicyMember>

/**
 * Maximum number of ids per message; a policy that selects more records needs several messages.
 */
const IDS_MAX = 1000

/** All records that a policy selects now. */
export function* policyMemberEvents(state: State, policy: ServicePolicy): Iterable<ModelEvent> {
  for (const of of memberKinds) {
    const roles = policy[roleFields[of]]
    if (roles.length === 0) continue
    const ids = [
      ...unorderedIdsSelectedByRoles(state, of, [{ roles, semantic: policy.semantic }]),
    ].sort()
    yield* eventsOf(policy.id, of, ids, true)
  }
}

/**
 * The changes that one log entry makes to the records that policies select. The result includes
 * only records that still exist.
 */
export function* policyMemberChanges(
  state: State,
  changes: readonly RecordChange[],
): Iterable<ModelEvent> {
  const byKind = changesByKind(changes)
  const policies = new Map(
    (byKind.get('servicePolicy') ?? []).map((change) => [
      change.id,
      changeWithinScope(entityByKind.servicePolicy, change),
    ]),
  )
  for (const of of memberKinds) {
    const moved = new Moved()
    const changed = new Map(
      (byKind.get(of) ?? []).map((change) => [
        change.id,
        changeWithinScope(entityByKind[of], change),
      ]),
    )
    for (const policy of policies.values()) notePolicy(state, of, policy, changed, moved)
    for (const change of changed.values()) noteMember(state, of, change, policies, moved)
    yield* moved.events(of)
  }
}

/**
 * Collects the ids that a written policy starts or stops selecting: ids of records that the same
 * entry wrote, and of all others.
 */
function notePolicy(
  state: State,
  of: PolicyMember,
  { id, before: old, after: now }: RecordChange<'servicePolicy'>,
  changed: ReadonlyMap<string, MemberChange>,
  moved: Moved,
): void {
  if (now === undefined) return
  const field = roleFields[of]
  for (const record of changed.values()) {
    const was = record.before !== undefined && old !== undefined && means(old, field, record.before)
    moved.note(id, record, was, means(now, field, record.after))
  }
  if (old?.semantic === now.semantic && isSameStringList(old[field], now[field])) return
  const idsBefore = old === undefined ? new Set<string>() : unchangedIds(state, of, old, changed)
  const idsAfter = unchangedIds(state, of, now, changed)
  for (const member of idsAfter) if (!idsBefore.has(member)) moved.add(id, member, true)
  for (const member of idsBefore) if (!idsAfter.has(member)) moved.add(id, member, false)
}

/** For a written record, collects the unchanged policies that start or stop selecting it. */
function noteMember(
  state: State,
  of: PolicyMember,
  change: MemberChange,
  policies: ReadonlyMap<string, RecordChange<'servicePolicy'>>,
  moved: Moved,
): void {
  const { before, after } = change
  if (after === undefined) return
  if (before?.roleAttributes === after.roleAttributes) return
  const table = state.table('servicePolicy')
  const meaning = (record: EntityRecord | undefined): ReadonlySet<string> => {
    const found = record === undefined ? [] : activePoliciesSelecting(table, roleFields[of], record)
    return new Set(found.map(({ id }) => id).filter((id) => !policies.has(id)))
  }
  const [had, has] = [meaning(before), meaning(after)]
  for (const id of has) if (!had.has(id)) moved.add(id, change.id, true)
  for (const id of had) if (!has.has(id)) moved.add(id, change.id, false)
}

function means(
  policy: ServicePolicy,
  field: (typeof roleFields)[PolicyMember],
  record: EntityRecord | undefined,
): boolean {
  return record !== undefined && matchesRoles(record, policy[field], policy.semantic)
}

function unchangedIds(
  state: State,
  of: PolicyMember,
  policy: ServicePolicy,
  changed: ReadonlyMap<string, MemberChange>,
): Set<string> {
  const roles = policy[roleFields[of]]
  if (roles.length === 0) return new Set()
  const found = unorderedIdsSelectedByRoles(state, of, [{ roles, semantic: policy.semantic }])
  return new Set([...found].filter((id) => !changed.has(id)))
}

/** Records that policies start or stop selecting, by policy. */
class Moved {
  readonly #added = new Map<string, string[]>()
  readonly #removed = new Map<string, string[]>()

  note(policyId: string, { id, after }: MemberChange, was: boolean, is: boolean): void {
    if (was !== is && after !== undefined) this.add(policyId, id, is)
  }

  add(policyId: string, id: string, isAdded: boolean): void {
    const lists = isAdded ? this.#added : this.#removed
    const ids = lists.get(policyId)
    if (ids === undefined) lists.set(policyId, [id])
    else ids.push(id)
  }

  *events(of: PolicyMember): Iterable<ModelEvent> {
    for (const [lists, isAdded] of [
      [this.#added, true],
      [this.#removed, false],
    ] as const) {
      for (const policyId of [...lists.keys()].sort()) {
        yield* eventsOf(policyId, of, (lists.get(policyId) ?? []).sort(), isAdded)
      }
    }
  }
}

function* eventsOf(
  policyId: string,
  of: PolicyMember,
  ids: readonly string[],
  isAdded: boolean,
): Iterable<ModelEvent> {
  for (let at = 0; at < ids.length; at += IDS_MAX) {
    yield { kind: 'members', policyId, of, ids: ids.slice(at, at + IDS_MAX), isAdded }
  }
}
