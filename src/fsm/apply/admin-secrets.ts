import type { KindName } from '../../entities/kind-records.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { hasPermittedNames, isOwnedByPrivileged, isPrivileged } from './actor-rights.ts'
import { type IdScope, SetScope } from '../records/sorted-ids.ts'
import type { State } from '../records/state.ts'
import type { Table } from '../records/table.ts'

/** Kinds whose detail contains an enrollment token. */
const disclosingKinds: ReadonlySet<string> = new Set(['enrollment'])

/**
 * Whether the detail of a record contains a secret with which the reader could act as an identity
 * with more rights, or enroll a router with permitted names.
 */
export function disclosesAdminSecret(
  records: Pick<State, 'get'>,
  kind: KindName,
  record: EntityRecord,
): boolean {
  return disclosingKinds.has(kind) && isOwnedByPrivileged(records, kind, record)
}

/**
 * The ids in the scope without the records that only administrators may see; null: no restriction,
 * all records of the table.
 */
export function scopeWithoutAdminSecrets(
  state: State,
  table: Table,
  kind: KindName,
  scope: IdScope | null,
): IdScope | null {
  if (!disclosingKinds.has(kind)) return scope
  const shown = new Set<string>()
  for (const id of scope ?? table.ids) {
    const record = state.get(kind, id)
    if (record !== undefined && !disclosesAdminSecret(state, kind, record)) shown.add(id)
  }
  return new SetScope(shown)
}

/** Whether callers that are not administrators may get a different detail of the record. */
export function hasSecretsHiddenFromNonAdmin(kind: KindName, record: EntityRecord): boolean {
  // @guard enrollments-read-before-a-promotion--shown
  return kind === 'identity'
    ? isPrivileged(record)
    : routerKinds.has(kind) && hasPermittedNames(record)
}

/** Kinds whose detail contains the router's enrollment token. */
const routerKinds: ReadonlySet<string> = new Set(['edgeRouter', 'router', 'transitRouter'])

/**
 * The detail of a privileged identity, or of a router with permitted names, without the secrets
 * that only administrators may see.
 */
export function detailWithoutAdminSecrets(detail: JsonObject): JsonObject {
  const { enrollmentToken: _token, enrollmentJwt: _jwt, ...shown } = detail
  return 'enrollment' in shown ? { ...shown, enrollment: {} } : shown
}
