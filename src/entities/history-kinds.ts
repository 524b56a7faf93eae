import type { Entity } from './define.ts'
import type { KindName } from './kind-names.ts'
import type { ComputedSource } from './fields.ts'
import { findEntity } from './registry.ts'

/**
 * Kinds with a table whose changes the audit log keeps. Sessions, second factors and revocations
 * are not among them: they are written often, and nobody edits them.
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

/** The fields of a kind's records in the audit log. */
export interface HistoryFields {
  /** Fields whose values are kept, sorted. */
  readonly kept: readonly string[]
  /** Fields whose values are never kept: secrets, and references to secrets. */
  readonly withheld: readonly string[]
}

function isObserved(shownAs: ComputedSource | null): boolean {
  return shownAs?.from === 'lastSeen' || shownAs?.from === 'routerPresence'
}

function fieldsOf({ fields }: Entity): HistoryFields {
  // Nobody edits what the controllers record about activity and presence.
  const stored = Object.entries(fields)
    .filter(([, { computed, shownAs }]) => computed === null && !isObserved(shownAs))
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    kept: stored.flatMap(([name, { published }]) => (published === 'shown' ? [name] : [])),
    // Lists of ids are derived from other fields, and hold no secret.
    withheld: stored.flatMap(([name, { published, kind }]) =>
      published === 'shown' || kind === 'references' ? [] : [name],
    ),
  }
}

/**
 * Part of the replicated state, because every controller must keep the same text of an entry: a
 * field of an existing feature level never moves from one list to the other.
 */
export const historyFields: ReadonlyMap<string, HistoryFields> = new Map(
  historyKinds.map((kind) => [kind, fieldsOf(findEntity(kind))]),
)
