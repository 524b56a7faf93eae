import type { State } from '../records/state.ts'
import type { ApiSession } from '../../entities/kinds/api-session.ts'
import type { Ca } from '../../entities/kinds/ca.ts'
import type { PrimaryRules, SecondaryRules } from '../../entities/parts/auth-policy-factors.ts'
import type { AuthPolicy } from '../../entities/kinds/auth-policy.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import type { MfaAttempts } from '../../entities/kinds/mfa-attempts.ts'
import type { PasswordAttempts } from '../../entities/kinds/password-attempts.ts'
import type { RecordSource } from '../../ports/state-view.ts'

const DEFAULT_AUTH_POLICY = 'default'

/**
 * The auth policy of an identity, or the default policy if the identity has none. Undefined: the
 * policy does not exist, so the identity cannot log in.
 */
export function identityAuthPolicy(
  records: RecordSource,
  identity: Pick<Identity, 'authPolicyId'>,
): AuthPolicy | undefined {
  const { authPolicyId } = identity
  return records.get('authPolicy', authPolicyId === '' ? DEFAULT_AUTH_POLICY : authPolicyId)
}

/** A factor that a session still lacks to be fully authenticated. */
export type PendingFactor =
  | { readonly kind: 'totp' }
  | { readonly kind: 'extJwt'; readonly signerId: string }

/** Session fields that record the factors provided so far. */
type GivenFactors = Pick<ApiSession, 'isMfaComplete'>

/**
 * Session field that records each factor; null: no field, because each request must prove the
 * factor. The compiler requires an entry for every kind of factor, because routers also refuse a
 * session that lacks a recorded factor.
 */
const givenFields: Readonly<Record<PendingFactor['kind'], keyof GivenFactors | null>> = {
  totp: 'isMfaComplete',
  extJwt: null,
}

/**
 * Whether the session lacks a factor that a session field would record. (A factor that each request
 * must prove has no such field.)
 */
export function lacksSessionFactor(pending: readonly PendingFactor[]): boolean {
  return pending.some(({ kind }) => givenFields[kind] !== null)
}

/** Kinds of the factors that a session has recorded. */
export function recordedFactorKinds(given: GivenFactors): PendingFactor['kind'][] {
  const kinds = Object.keys(givenFields) as PendingFactor['kind'][]
  return kinds.filter((kind) => {
    const field = givenFields[kind]
    return field !== null && given[field]
  })
}

const TOTP = { kind: 'totp' } as const

/**
 * Field of an auth policy that requires each factor. The compiler requires an entry for every kind
 * of factor, because recoveries and restores must find all policies that require a factor.
 */
const askingFields: Readonly<Record<PendingFactor['kind'], keyof SecondaryRules>> = {
  totp: 'requireTotp',
  extJwt: 'requireExtJwtSigner',
}

/**
 * Second factors that an identity must provide under its current policy and MFA: a TOTP code if it
 * has MFA or if its policy requires TOTP, and a JWT if its policy requires one from a signer. Null:
 * without a policy the required factors are unknown, so no factor is sufficient.
 */
export function requiredFactors(
  records: RecordSource,
  identity: Pick<Identity, 'id' | 'authPolicyId'>,
): readonly PendingFactor[] | null {
  const secondary = identityAuthPolicy(records, identity)?.secondary
  if (secondary === undefined) return null
  const { requireTotp, requireExtJwtSigner: signerId } = secondary
  const asked: AskedFactors = {
    totp: requireTotp || hasMfa(records, identity.id) ? TOTP : null,
    extJwt: signerId === null || signerId === '' ? null : { kind: 'extJwt', signerId },
  }
  const required: PendingFactor[] = []
  for (const factor of Object.values(asked)) if (factor !== null) required.push(factor)
  return required
}

/** The required factor of each kind; null: not required. */
type AskedFactors = {
  readonly [K in PendingFactor['kind']]: Extract<PendingFactor, { readonly kind: K }> | null
}

/**
 * Factors that a session of the identity still lacks; empty for a fully authenticated session. An
 * external JWT is valid only for the request that contains it, so `pendingFactorsWithToken`
 * considers it.
 */
export function pendingFactors(
  records: RecordSource,
  identity: Pick<Identity, 'id' | 'authPolicyId'>,
  given: GivenFactors,
): readonly PendingFactor[] {
  const required = requiredFactors(records, identity)
  if (required === null) return [TOTP]
  // @guard partial-sessions--factor
  return required.filter(({ kind }) => {
    const field = givenFields[kind]
    return field === null || !given[field]
  })
}

/** Whether an identity has proved that it possesses its TOTP secret. */
export function hasMfa(records: RecordSource, identityId: string): boolean {
  return records.get('mfa', identityId)?.isVerified === true
}

/** Limits for submitting TOTP codes, per identity, over all controllers. */
export const mfaLimits = {
  /**
   * Number of attempts without a correct code before the first pause. Each further attempt causes
   * another pause.
   */
  attemptsMax: 10,
  /** Duration of the first pause; each further pause is twice as long as the previous one. */
  pauseMsMin: 30_000,
  /**
   * Maximum duration of one pause after wrong TOTP codes; the duration stops growing at this
   * value.
   */
  pauseMsMax: 15 * 60_000,
} as const

/** End of the pause after wrong codes, UTC ms; a time in the past if codes are accepted. */
export function mfaPausedUntilMs(
  attempts: Pick<MfaAttempts, 'count' | 'lastAt'> | undefined,
): number {
  const { attemptsMax, pauseMsMin, pauseMsMax } = mfaLimits
  if (attempts === undefined || attempts.count < attemptsMax) return 0
  const doublings = Math.min(attempts.count - attemptsMax, 10)
  return (attempts.lastAt ?? 0) + Math.min(pauseMsMin * 2 ** doublings, pauseMsMax)
}

/**
 * Whether a password, with a TOTP code if required, is sufficient for a fully authenticated session
 * under a policy. Every identity can enroll TOTP.
 */
export function allowsPasswordWithoutJwt(policy: AuthPolicy | undefined): policy is AuthPolicy {
  if (policy?.primary.updb.allowed !== true) return false
  const { totp: _, ...others } = askingFields
  return Object.values(others).every((field) => !asksFor(policy, field))
}

/** Whether a password alone is sufficient for a fully authenticated session under a policy. */
function allowsPasswordAlone(policy: AuthPolicy | undefined): boolean {
  return allowsPasswordWithoutJwt(policy) && !asksFor(policy, askingFields.totp)
}

function asksFor({ secondary }: AuthPolicy, field: keyof SecondaryRules): boolean {
  const asked = secondary[field]
  return asked !== false && asked !== null && asked !== ''
}

/**
 * Auth policy for a recovered administrator: the current policy if it accepts a password alone,
 * otherwise the default policy if that one does. Undefined: the recovery must create a policy.
 */
export function recoveryAuthPolicy(
  records: RecordSource,
  identity: Pick<Identity, 'authPolicyId'>,
): AuthPolicy | undefined {
  return [
    identityAuthPolicy(records, identity),
    identityAuthPolicy(records, { authPolicyId: '' }),
  ].find(allowsPasswordAlone)
}

export const lockoutLimits = {
  /**
   * Maximum duration for which an administrator's password is locked, regardless of the auth
   * policy.
   */
  adminLockMsMax: 15 * 60_000,
} as const

/** Feature level from which every lock of an administrator's password expires. */
const BOUNDED_FROM_LEVEL = 2

/** Rules by which wrong attempts lock an identity's password. */
export interface LockoutRules extends Pick<PrimaryRules['updb'], 'maxAttempts'> {
  /** Lock duration in the auth policy; Infinity: until an administrator unlocks the password. */
  readonly policyLockMs: number
  /**
   * Time for which the password is locked. Attempts are counted until the duration in the auth
   * policy has passed, which may be longer.
   */
  readonly lockMs: number
}

type Attempts = Pick<PasswordAttempts, 'count' | 'lastAt'>

/**
 * Lockout rules for an identity. From feature level 2 on, the lockout of an administrator always
 * expires; otherwise anyone who can write auth policies could let strangers lock out every
 * administrator. Undefined: the identity cannot log in.
 */
export function identityLockoutRules(
  records: RecordSource,
  identity: Pick<Identity, 'authPolicyId' | 'isAdmin'>,
  featureLevel: number,
): LockoutRules | undefined {
  const updb = identityAuthPolicy(records, identity)?.primary.updb
  if (updb === undefined) return undefined
  const { maxAttempts, lockoutDurationMinutes: minutes } = updb
  const policyLockMs = minutes > 0 ? minutes * 60_000 : Infinity
  // @guard administrators-locked-out--bound, administrators-locked-out--others
  const isBounded = identity.isAdmin && featureLevel >= BOUNDED_FROM_LEVEL
  const lockMs = isBounded ? Math.min(policyLockMs, lockoutLimits.adminLockMsMax) : policyLockMs
  return { maxAttempts, policyLockMs, lockMs }
}

/** Whether the counted attempts lock the password at the given time. */
export function isLockedOut(
  attempts: Attempts | undefined,
  { maxAttempts, lockMs }: LockoutRules,
  atMs: number,
): boolean {
  if (attempts === undefined || maxAttempts <= 0) return false
  // @guard guesses-over-controllers--limit
  return attempts.count >= maxAttempts && atMs < (attempts.lastAt ?? 0) + lockMs
}

/** Begin and end of a password lock; null: the password is not locked. */
export function passwordLockPeriod(
  state: Pick<State, 'get' | 'table' | 'featureLevel'>,
  identity: Identity,
  atMs: number,
): { readonly sinceMs: number; readonly untilMs: number | null } | null {
  for (const id of state.table('authenticator').indexes.ids('identityId', identity.id)) {
    const attempts = state.get('passwordAttempts', id)
    if (attempts === undefined) continue
    const rules = identityLockoutRules(state, identity, state.featureLevel)
    if (rules === undefined || !isLockedOut(attempts, rules, atMs)) continue
    const sinceMs = attempts.lastAt ?? 0
    const untilMs = sinceMs + rules.lockMs
    return { sinceMs, untilMs: untilMs === Infinity ? null : untilMs }
  }
  return null
}

/**
 * Number that the next attempt gets: 1 for the first attempt, and after a lock with the duration in
 * the auth policy has expired.
 */
export function nextAttemptNumber(
  attempts: Attempts | undefined,
  rules: LockoutRules,
  atMs: number,
): number {
  if (attempts === undefined) return 1
  // @guard administrators-locked-out--count
  const lapsedMs = (attempts.lastAt ?? 0) + rules.policyLockMs
  if (attempts.count >= rules.maxAttempts && atMs >= lapsedMs) return 1
  return attempts.count + 1
}

/**
 * Whether a log-in still accepts the certificate that opened a session. If a third-party CA issued
 * it, the CA must be verified and enabled for authentication. True for a session that was opened
 * without a certificate.
 */
export function isSessionCertificateAccepted(records: RecordSource, session: ApiSession): boolean {
  if (session.certFingerprint === null) return true
  const { caId, authenticatorId } = session
  const issuer = caId || (records.get('authenticator', authenticatorId)?.caId ?? '')
  return issuer === '' || isCaAcceptedForLogIn(records.get('ca', issuer))
}

/**
 * Whether certificates from the CA allow a log-in: the CA is verified, and authentication is
 * enabled for it.
 */
export function isCaAcceptedForLogIn(ca: Ca | undefined): boolean {
  // @guard certificate-of-a-ca--taken-back
  return ca?.isVerified === true && ca.isAuthEnabled
}
