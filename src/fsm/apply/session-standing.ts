import type { ApiSession } from '../../entities/kinds/api-session.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import type { StandingRecords } from '../../ports/state-view.ts'
import { isCertificateHonoured, pendingFactors, type PendingFactor } from './authentication.ts'
import { isSignerHonoured } from './external-tokens.ts'
import type { Consequences } from './kind-rules.ts'

/** How a session stands by the records, whatever the time is. */
export interface SessionStanding {
  readonly session: ApiSession
  readonly identity: Identity
  /** Its certificate and its signer are still taken; true where it was opened by neither. */
  readonly isHonoured: boolean
  /** Second factors that it lacks; none: it is a full session. */
  readonly pendingFactors: readonly PendingFactor[]
  /** An administrator, in a full session. */
  readonly isAdmin: boolean
}

/** The standing of a session, and what it was judged by. */
interface Judgement {
  readonly records: StandingRecords
  readonly version: number
  readonly standing: SessionStanding
}

/**
 * The last judgement of each session. A record is never changed but replaced, so that a session
 * that was written since has none.
 */
const judgements = new WeakMap<ApiSession, Judgement>()

/**
 * Judges a session as it stands, for requests and for commands. It is judged again once a record
 * that decides it was written: the session, its identity, or any of `standingKinds`.
 * @returns null for a session that is not there, or whose identity is not.
 */
export function standingOf(records: StandingRecords, sessionId: string): SessionStanding | null {
  const session = records.get<ApiSession>('apiSession', sessionId)
  if (session === undefined) return null
  const identity = records.get<Identity>('identity', session.identityId)
  if (identity === undefined) return null
  const version = records.standingVersion
  const last = judgements.get(session)
  if (
    last?.version === version &&
    last.standing.identity === identity &&
    last.records === records
  ) {
    return last.standing
  }
  const standing = judged(records, session, identity)
  judgements.set(session, { records, version, standing })
  return standing
}

function judged(
  records: StandingRecords,
  session: ApiSession,
  identity: Identity,
): SessionStanding {
  const pending = pendingFactors(records, identity, session)
  return {
    session,
    identity,
    isHonoured: isCertificateHonoured(records, session) && isSignerHonoured(records, session),
    pendingFactors: pending,
    isAdmin: identity.isAdmin && pending.length === 0,
  }
}

/** Level from which on sessions end in the log when what they were opened by is taken no more. */
const ENDED_FROM_LEVEL = 2

/**
 * Ends the API sessions that name a record, with all that lives by them, so that routers close what
 * they carry for them: the gate alone would refuse their requests, and leave their circuits open.
 */
export function endSessionsOf(
  field: 'authenticatorId' | 'caId' | 'signerId',
  id: string,
  { state, remove }: Consequences,
): void {
  if (state.featureLevel < ENDED_FROM_LEVEL) return
  for (const sessionId of Array.from(state.table('apiSession').indexes.ids(field, id))) {
    remove('apiSession', sessionId)
  }
}
