import type { Entity } from './define-entity.ts'
import type { KindName } from './kind-names.ts'
import type { ComputedSource } from './fields.ts'
import { findEntity } from './registry.ts'

/**
 * Kinds with a table whose changes the audit log stores. Changes of sessions, second factors and
 * revocations are not stored, because no request of an administrator edits the fields of these
 * records.
 */
export const historyKinds = [
  'authPolicy',
  'authenticator',
  'ca',
  'config',
  'configType',
  'controllerSetting',
  'edgeRouterPolicy',
  'enrollment',
  'externalJwtSigner',
  'identity',
  'postureCheck',
  'router',
  'service',
  'serviceConfig',
  'serviceEdgeRouterPolicy',
  'servicePolicy',
  'terminator',
] as const satisfies readonly KindName[]

/** The fields of one kind, divided by whether the audit log stores their values. */
export interface HistoryFields {
  /** Fields whose values the audit log stores, sorted. */
  readonly kept: readonly string[]
  /**
   * Fields whose values the audit log never stores: secrets, references to secrets, and internal
   * values.
   */
  readonly withheld: readonly string[]
}

function isObserved(shownAs: ComputedSource | null): boolean {
  return shownAs?.from === 'lastSeen' || shownAs?.from === 'routerPresence'
}

function fieldsOf({ fields }: Entity): HistoryFields {
  // Omits fields in which the controllers record activity and presence, because no administrator
  // edits them.
  const stored = Object.entries(fields)
    .filter(([, { computed, shownAs }]) => computed === null && !isObserved(shownAs))
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    kept: stored.flatMap(([name, { published }]) => (published === 'shown' ? [name] : [])),
    // Hidden lists of ids are in neither list: they are derived from other fields and contain no
    // secret.
    withheld: stored.flatMap(([name, { published, kind }]) =>
      published === 'shown' || kind === 'references' ? [] : [name],
    ),
  }
}

/**
 * These fields determine the text of audit entries, which is part of the replicated state and must
 * be the same on every controller. So never move a field of an existing feature level to the other
 * list.
 */
export const historyFields: ReadonlyMap<string, HistoryFields> = new Map(
  historyKinds.map((kind) => [kind, fieldsOf(findEntity(kind))]),
)
