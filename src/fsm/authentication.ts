import type { ApiSession } from '../entities/api-session.ts'
import type { Authenticator } from '../entities/authenticator.ts'
import type { Ca } from '../entities/ca.ts'
import type { PrimaryRules } from '../entities/auth-policy-factors.ts'
import type { AuthPolicy } from '../entities/auth-policy.ts'
import type { Identity } from '../entities/identity.ts'
import type { PasswordAttempts } from '../entities/password-attempts.ts'
import type { EntityRecord } from '../lib/entity-record.ts'

/** The part of the state, or of a view of it, that these judgements read. */
export interface RecordSource {
  get<R extends EntityRecord = EntityRecord>(kind: string, id: string): R | undefined
}

export const DEFAULT_AUTH_POLICY = 'default'

/** The auth policy of an identity: the default one where it names none. Undefined: nobody may log in. */
export function authPolicyOf(
  records: RecordSource,
  identity: Pick<Identity, 'authPolicyId'>,
): AuthPolicy | undefined {
  const { authPolicyId } = identity
  return records.get<AuthPolicy>(
    'authPolicy',
    authPolicyId === '' ? DEFAULT_AUTH_POLICY : authPolicyId,
  )
}

/** What a session still lacks to be a full one. */
export type PendingFactor =
  { readonly kind: 'totp' } | { readonly kind: 'extJwt'; readonly signerId: string }

const TOTP: readonly PendingFactor[] = [{ kind: 'totp' }]

/**
 * The second factors that the auth policy of an identity asks for and its sessions lack, as the policy stands now; none: they
 * are full sessions. No second factor can be given yet, so each one that is asked for is pending.
 */
export function pendingFactors(
  records: RecordSource,
  identity: Pick<Identity, 'authPolicyId'>,
): readonly PendingFactor[] {
  const secondary = authPolicyOf(records, identity)?.secondary
  // Without a policy nobody can tell what is enough.
  if (secondary === undefined) return TOTP
  const { requireTotp, requireExtJwtSigner: signerId } = secondary
  const ofSigner: readonly PendingFactor[] =
    signerId === null || signerId === '' ? [] : [{ kind: 'extJwt', signerId }]
  return requireTotp ? [...TOTP, ...ofSigner] : ofSigner
}

/** Whether a policy lets whoever knows a password into a full session. */
export function allowsPasswordAlone(policy: AuthPolicy | undefined): boolean {
  if (policy?.primary.updb.allowed !== true) return false
  const { requireTotp, requireExtJwtSigner: signerId } = policy.secondary
  return !requireTotp && (signerId === null || signerId === '')
}

/**
 * The policy that an administrator logs in by who is recovered: its own or the default one where that lets it in by a password
 * alone. Undefined: one that is made for it.
 */
export function recoveryPolicyOf(
  records: RecordSource,
  identity: Pick<Identity, 'authPolicyId'>,
): AuthPolicy | undefined {
  return [authPolicyOf(records, identity), authPolicyOf(records, { authPolicyId: '' })].find(
    allowsPasswordAlone,
  )
}

type LockoutRules = Pick<PrimaryRules['updb'], 'maxAttempts' | 'lockoutDurationMinutes'>
type Attempts = Pick<PasswordAttempts, 'count' | 'lastAt'>

/** Whether a password is locked at a time, by the attempts that are counted of it. */
export function isLockedOut(
  attempts: Attempts | undefined,
  rules: LockoutRules,
  atMs: number,
): boolean {
  if (attempts === undefined || rules.maxAttempts <= 0) return false
  return attempts.count >= rules.maxAttempts && !hasLapsed(attempts, rules, atMs)
}

/** A duration of 0 lasts until an administrator ends it. */
function hasLapsed({ lastAt }: Attempts, rules: LockoutRules, atMs: number): boolean {
  const { lockoutDurationMinutes } = rules
  return lockoutDurationMinutes > 0 && atMs >= (lastAt ?? 0) + lockoutDurationMinutes * 60_000
}

/** The number of the next attempt: a lockout that is over begins a new count. */
export function nextAttempt(
  attempts: Attempts | undefined,
  rules: LockoutRules,
  atMs: number,
): number {
  if (attempts === undefined) return 1
  if (attempts.count >= rules.maxAttempts && hasLapsed(attempts, rules, atMs)) return 1
  return attempts.count + 1
}

/**
 * Whether the certificate that a session was opened by is still one that log-ins are taken of: a CA of somebody else that issued
 * it must be verified, and enabled for that. True for a session that was opened by something else.
 */
export function isCertificateHonoured(records: RecordSource, session: ApiSession): boolean {
  if (session.certFingerprint === null) return true
  const { caId, authenticatorId } = session
  const issuer = caId || (records.get<Authenticator>('authenticator', authenticatorId)?.caId ?? '')
  return issuer === '' || takesLogIns(records.get<Ca>('ca', issuer))
}

export function takesLogIns(ca: Ca | undefined): boolean {
  return ca?.isVerified === true && ca.isAuthEnabled
}
