import type { Enrollment } from '../../entities/kinds/enrollment.ts'
import type { Revocation } from '../../entities/kinds/revocation.ts'
import { TOKEN_REVOCATION_FEATURE_LEVEL } from '../../ports/feature-level.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type {
  CommandContext,
  WriteConsequences,
  KindRules,
  ValidatedWrite,
  CompletedWrite,
} from '../apply/command-context.ts'
import { identityActionRefusal } from '../apply/actor-rights.ts'
import { refusedOutcome } from '../apply/outcome.ts'
import type { State } from '../records/state.ts'

export const revocationLimits = {
  /**
   * Lifetime of a revocation that a request creates for an identity or a session. It exceeds the
   * lifetime of every access token.
   */
  lifetimeMs: 24 * 60 * 60_000,
  /**
   * Lifetime of a revocation of one token by its `jti`. It exceeds the maximum of
   * `oidc.refreshTokenMs`, because the session of a refresh token continues.
   */
  tokenRevocationMs: 91 * 24 * 60 * 60_000,
  /**
   * Maximum stored revocations other than those of API sessions; further ones are refused with 429
   * SERVER_TOO_MANY_REQUESTS.
   */
  revocationsMax: 10_000,
  /**
   * Lifetime of the revocation that is stored when a session with OIDC tokens ends: longer than the
   * lifetime of any access token, because routers must refuse the session's tokens until these
   * expire.
   */
  sessionRevocationMs: 60 * 60_000,
  /**
   * Maximum stored revocations of sessions; when a session ends, the revocations of identities and
   * tokens count as well. The limit is separate, so that repeated log-ins and log-outs cannot
   * exhaust the limit for other revocations.
   */
  sessionRevocationsMax: 100_000,
} as const

export const revocationRules: KindRules<Revocation> = {
  judgeWrite: judgeRevocation,
  afterWrite: settle,
}

function judgeRevocation(
  state: State,
  { id, before, after }: ValidatedWrite<Revocation>,
  context: CommandContext,
): Outcome | null {
  const { logTimeMs } = context
  const type = after.type as Revocation['type']
  // The revocation is refused if the caller may not act on the identity whose sessions or
  // enrollment it would end.
  const denial =
    before === undefined
      ? identityActionRefusal(state, holderOf(state, { id, type }), context)
      : null
  if (denial !== null) return denial
  const max = maxOf(type)
  if (state.table('revocation').rows.size < max) return null
  const inForce = revocations(state).filter(
    (one) => isInForce(one, logTimeMs) && maxOf(one.type) === max,
  )
  return inForce.length < max ? null : tooMany(max)
}

function maxOf(type: Revocation['type']): number {
  const { revocationsMax, sessionRevocationsMax } = revocationLimits
  return type === 'API_SESSION' ? sessionRevocationsMax : revocationsMax
}

function isInForce({ expiresAt }: Revocation, logTimeMs: number): boolean {
  return (expiresAt ?? 0) > logTimeMs
}

function tooMany(max: number): Outcome {
  return refusedOutcome(
    'SERVER_TOO_MANY_REQUESTS',
    `${max} revocations are in force; wait until some have expired`,
  )
}

/**
 * Ends the API sessions that a revocation names, with their service sessions, or removes the
 * enrollment with the revoked token. The revocation expires by log time; expired revocations are
 * removed in the same log entry.
 */
function settle(
  { before, after }: CompletedWrite<Revocation>,
  consequences: WriteConsequences,
): void {
  const { state, context, put } = consequences
  if (before === undefined) endRevoked(after, consequences)
  const { lifetimeMs, tokenRevocationMs } = revocationLimits
  const isLong = after.type === 'JTI' && state.featureLevel >= TOKEN_REVOCATION_FEATURE_LEVEL
  const expiresAt = context.logTimeMs + (isLong ? tokenRevocationMs : lifetimeMs)
  put('revocation', after.id, { ...after, expiresAt })
  removeExpired(consequences)
}

function removeExpired({ state, context, remove }: WriteConsequences): void {
  for (const one of revocations(state)) {
    if (!isInForce(one, context.logTimeMs)) remove('revocation', one.id)
  }
}

/**
 * When a session ends, expired revocations are removed only if the number of stored ones is a
 * multiple of this or has reached the maximum, because thousands of sessions may end one by one.
 */
const PURGE_EVERY = 256

/**
 * Revokes the tokens of a session that has ended for any reason, because the tokens may not have
 * expired yet.
 */
export function revokeSession(id: string, consequences: WriteConsequences): void {
  const { state, context, put } = consequences
  const { sessionRevocationsMax: max } = revocationLimits
  const { rows } = state.table('revocation')
  if (rows.size >= max || (rows.size > 0 && rows.size % PURGE_EVERY === 0)) {
    removeExpired(consequences)
  }
  // At this limit, no further revocation is stored, so routers accept the tokens until they expire.
  if (rows.size >= max) return
  const expiresAt = context.logTimeMs + revocationLimits.sessionRevocationMs
  put('revocation', id, { type: 'API_SESSION', expiresAt })
}

function endRevoked({ id, type }: Revocation, { state, remove }: WriteConsequences): void {
  if (type === 'API_SESSION') remove('apiSession', id)
  if (type === 'JTI') {
    const enrollment = enrollmentBy(state, id)
    if (enrollment !== undefined) remove('enrollment', enrollment.id)
  }
  if (type !== 'IDENTITY') return
  for (const session of [...state.table('apiSession').indexes.ids('identityId', id)].sort()) {
    remove('apiSession', session)
  }
}

/** Id of the identity whose tokens are revoked; '' if unknown. */
function holderOf(state: State, { id, type }: Pick<Revocation, 'id' | 'type'>): string {
  if (type === 'IDENTITY') return id
  if (type === 'JTI') return enrollmentBy(state, id)?.identityId ?? ''
  return state.get('apiSession', id)?.identityId ?? ''
}

/** Finds an enrollment by its token, which is also the `jti` of the enrollment's JWT. */
function enrollmentBy(state: State, token: string): Enrollment | undefined {
  const id = state.table('enrollment').indexes.owner('token', token)
  return id === undefined ? undefined : state.get('enrollment', id)
}

/** Revocations sorted by id, so that every controller processes them in the same order. */
function revocations(state: State): Revocation[] {
  return [...state.table('revocation').ids].flatMap((id) => state.get('revocation', id) ?? [])
}
