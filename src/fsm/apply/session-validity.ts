import type { ApiSession } from '../../entities/kinds/api-session.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import type { ValidityRecords } from '../../ports/state-view.ts'
import type { State } from '../records/state.ts'
import {
  isSessionCertificateAccepted,
  pendingFactors,
  type PendingFactor,
} from './authentication.ts'
import type { CommandContext, WriteConsequences } from './command-context.ts'
import { isSessionSignerAccepted } from './external-tokens.ts'
import { createWriteConsequences } from './references.ts'

/** Validity of a session according to the records, regardless of the session's expiry. */
interface SessionStanding {
  readonly session: ApiSession
  readonly identity: Identity
  /**
   * Whether controllers still accept the certificate and the signer that opened the session; true
   * if the session was opened without them.
   */
  readonly isHonored: boolean
  /** Second factors that the session lacks; empty for a fully authenticated session. */
  readonly pendingFactors: readonly PendingFactor[]
  /** True if the session is fully authenticated and its identity is an administrator. */
  readonly isAdmin: boolean
}

/** The validity of a session, with the version of the records for which it was evaluated. */
interface Judgement {
  readonly version: number
  readonly standing: SessionStanding
}

/**
 * Last evaluation of each session, by state. Records are replaced, never modified, so a session
 * that was written again has no entry. The weak maps do not keep old sessions or states in memory.
 */
const judgements = new WeakMap<ValidityRecords, WeakMap<ApiSession, Judgement>>()

/**
 * Evaluates whether a session is valid, for requests and commands. The result is cached until a
 * relevant record is written: the session, its identity, or a record of `sessionValidityKinds`.
 * @returns null if the session or its identity does not exist.
 */
export function sessionValidity(
  records: ValidityRecords,
  sessionId: string,
): SessionStanding | null {
  const session = records.get('apiSession', sessionId)
  if (session === undefined) return null
  const identity = records.get('identity', session.identityId)
  if (identity === undefined) return null
  const version = records.standingVersion
  const own = judgements.get(records) ?? new WeakMap<ApiSession, Judgement>()
  const last = own.get(session)
  // @guard partial-sessions--kept
  if (last?.version === version && last.standing.identity === identity) return last.standing
  const standing = judged(records, session, identity)
  judgements.set(records, own.set(session, { version, standing }))
  return standing
}

function judged(
  records: ValidityRecords,
  session: ApiSession,
  identity: Identity,
): SessionStanding {
  const pending = pendingFactors(records, identity, session)
  return {
    session,
    identity,
    isHonored:
      isSessionCertificateAccepted(records, session) && isSessionSignerAccepted(records, session),
    pendingFactors: pending,
    isAdmin: identity.isAdmin && pending.length === 0,
  }
}

/**
 * Feature level from which the log ends sessions when the credential that opened them becomes
 * invalid.
 */
const ENDED_FROM_LEVEL = 2

/** Fields of a session that reference a record on which the session depends. */
type Owner = 'identityId' | 'authenticatorId' | 'caId' | 'signerId'

/**
 * Ends all API sessions that reference a record, and everything that depends on these sessions.
 * @param exceptId id of a session that continues.
 */
export function endSessionsReferencing(
  { state, context }: Pick<WriteConsequences, 'state' | 'context'>,
  field: Owner,
  id: string,
  exceptId = '',
): void {
  const { remove } = createWriteConsequences(state, context)
  for (const sessionId of Array.from(state.table('apiSession').indexes.ids(field, id))) {
    if (sessionId !== exceptId) remove('apiSession', sessionId)
  }
}

/**
 * Ends the sessions that a changed record makes invalid (from feature level 2). Otherwise the
 * controllers would only refuse the requests of these sessions, and routers would keep their
 * circuits open.
 */
export function endSessionsInvalidatedBy(
  consequences: WriteConsequences,
  field: Exclude<Owner, 'identityId'>,
  id: string,
): void {
  if (consequences.state.featureLevel < ENDED_FROM_LEVEL) return
  endSessionsReferencing(consequences, field, id)
}

/**
 * Ends the invalid sessions that controllers at a lower feature level had only refused, and not
 * ended.
 */
export function endRefusedSessions(state: State, from: number, context: CommandContext): void {
  if (from >= ENDED_FROM_LEVEL || state.featureLevel < ENDED_FROM_LEVEL) return
  const { remove } = createWriteConsequences(state, context)
  for (const id of Array.from(state.table('apiSession').ids)) {
    if (sessionValidity(state, id)?.isHonored === false) remove('apiSession', id)
  }
}
