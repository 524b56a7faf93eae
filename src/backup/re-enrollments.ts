import type { State } from '../fsm/records/state.ts'

interface NamedRecord {
  readonly id: string
  readonly name: string
}

/** Records of one kind whose current certificate a restore makes unknown. */
export interface ReEnrollmentsOfKind {
  readonly count: number
  /** The first records in the order of their names, at most `SHOWN_RECORDS_MAX`. */
  readonly first: readonly NamedRecord[]
}

/** Routers and identities that must enroll again after a restore. */
export interface ReEnrollments {
  readonly routers: ReEnrollmentsOfKind
  readonly identities: ReEnrollmentsOfKind
}

const SHOWN_RECORDS_MAX = 20

/**
 * Finds the routers and identities that must enroll again after a restore of `backup`: they have
 * enrolled or renewed their certificate after the backup, so that the backup does not contain the
 * certificate that they use now. Records that the restore removes do not count.
 */
export function findReEnrollments(live: State, backup: State): ReEnrollments {
  return {
    routers: firstByName(routersToEnroll(live, backup)),
    identities: firstByName(identitiesToEnroll(live, backup)),
  }
}

function* routersToEnroll(live: State, backup: State): Generator<NamedRecord> {
  for (const { record } of live.table('router').rows.values()) {
    const { id, fingerprint } = record
    const restored = backup.get('router', id)
    if (fingerprint === null || restored === undefined) continue
    // A router may also connect with a certificate that it had not used at the time of the backup.
    if ([restored.fingerprint, restored.nextFingerprint].includes(fingerprint)) continue
    yield { id, name: restored.name }
  }
}

function* identitiesToEnroll(live: State, backup: State): Generator<NamedRecord> {
  const found = new Set<string>()
  const { indexes } = backup.table('authenticator')
  for (const { record } of live.table('authenticator').rows.values()) {
    const { method, fingerprint, identityId } = record
    const identity = backup.get('identity', identityId)
    if (method !== 'cert' || fingerprint === null || identity === undefined) continue
    const restored = backup.get('authenticator', indexes.owner('fingerprint', fingerprint) ?? '')
    if (restored?.identityId === identityId || found.has(identityId)) continue
    found.add(identityId)
    yield { id: identityId, name: identity.name }
  }
}

function firstByName(records: Iterable<NamedRecord>): ReEnrollmentsOfKind {
  const all = [...records].sort((a, b) => (a.name < b.name ? -1 : 1))
  return { count: all.length, first: all.slice(0, SHOWN_RECORDS_MAX) }
}
