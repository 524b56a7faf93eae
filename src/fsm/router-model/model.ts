import { isRecordInKindScope } from '../../entities/define-entity.ts'
import { entityByKind } from '../../entities/registry.ts'
import type { KindName, RecordOf } from '../../entities/kind-records.ts'
import { isChangeOfKind, type RecordChange } from '../../ports/change-feed.ts'
import type { ServicePolicy } from '../../entities/kinds/service-policy.ts'
import type { ModelAction, ModelEvent, ModelIdentity } from '../../ports/router-model.ts'
import { isEffectivePolicy } from '../records/roles.ts'
import type { State } from '../records/state.ts'
import { changeWithinScope } from '../access/access-changes.ts'
import { policyMemberEvents, policyMemberChanges } from './members.ts'
import { toModelIdentity, type ModelKind, modelKinds, toModelRecordEvent } from './shapes.ts'

/** Kinds of records from which the router data model is built. */
export const modelSourceKinds: readonly KindName[] = [...modelKinds, 'serviceConfig']

/** The whole model as events, from the current records. */
export function* wholeModelEvents(state: State): Iterable<ModelEvent> {
  for (const kind of modelKinds) {
    const { rows } = state.table(kind)
    for (const { record } of rows.values()) {
      if (!isRecordInKindScope(entityByKind[kind], record) || !isEffectivePolicy(record)) continue
      yield toModelRecordEvent(state, kind, 'create', record)
      if (kind === 'servicePolicy') yield* policyMemberEvents(state, record as ServicePolicy)
    }
  }
}

/** The identity as edge routers receive it; undefined if it does not exist. */
export function findModelIdentity(state: State, id: string): ModelIdentity | undefined {
  const identity = state.get('identity', id)
  return identity === undefined ? undefined : toModelIdentity(state, identity)
}

/**
 * Model changes by one log entry, ordered so that no event references a record that the router does
 * not know (except services in the data of an identity): creations and updates, then policy
 * memberships, then deletions.
 */
export function modelChanges(state: State, changes: readonly RecordChange[]): ModelEvent[] {
  const changed: ModelEvent[] = []
  const gone: ModelEvent[] = []
  for (const kind of modelKinds) {
    for (const change of changes) {
      if (!isChangeOfKind(change, kind)) continue
      const { before: was, after: is } = changeWithinScope(entityByKind[kind], change)
      const action: ModelAction =
        is === undefined ? 'delete' : was === undefined ? 'create' : 'update'
      const record = is ?? was
      if (record === undefined) continue
      const event = toModelRecordEvent(state, kind, action, record)
      if (action === 'update' && isSame(state, kind, was, event)) continue
      if (action === 'delete') gone.push(event)
      else changed.push(event)
    }
  }
  changed.push(...identitiesOfConfigs(state, changes))
  return [...changed, ...policyMemberChanges(state, changes), ...gone.reverse()]
}

/**
 * Whether routers would receive the same data before and after. A write that changes only other
 * fields, such as tags, causes no event.
 */
function isSame<K extends ModelKind>(
  state: State,
  kind: K,
  was: RecordOf<K> | undefined,
  event: ModelEvent,
): boolean {
  if (was === undefined) return false
  return JSON.stringify(toModelRecordEvent(state, kind, 'update', was)) === JSON.stringify(event)
}

/** Update events for the identities whose config overrides changed. */
function identitiesOfConfigs(state: State, changes: readonly RecordChange[]): ModelEvent[] {
  const made = new Set(
    changes.flatMap(({ kind, id, before }) =>
      kind === 'identity' && before === undefined ? [id] : [],
    ),
  )
  const ids = new Set<string>()
  for (const change of changes) {
    if (!isChangeOfKind(change, 'serviceConfig')) continue
    for (const record of [change.before, change.after]) {
      if (record !== undefined) ids.add(record.identityId)
    }
  }
  return [...ids].sort().flatMap((id): ModelEvent[] => {
    const value = findModelIdentity(state, id)
    // An identity that the same entry created gets no event: its creation event already contains
    // the overrides. `isSame` alone would not suppress the update event, because it compares both
    // versions with the new overrides.
    return value === undefined || made.has(id)
      ? []
      : [{ kind: 'identity', action: 'update', value }]
  })
}
