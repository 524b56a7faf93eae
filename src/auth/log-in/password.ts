import type { Authenticator } from '../../entities/kinds/authenticator.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import type { RefusalCause, LogInRefusalReason } from '../../lib/refusal-reason.ts'
import { identityAuthPolicy } from '../../fsm/apply/authentication.ts'
import { isDisabled } from '../../lib/is-disabled.ts'
import type { LogInThrottle } from './log-in-throttle.ts'
import type { PasswordHashCaller, PasswordVerifier } from '../factors/password-verifier.ts'
import type { PasswordRehasher } from '../factors/password-rehasher.ts'
import type { PasswordLockout } from '../factors/password-lockout.ts'
import type { CredentialProof } from './proof.ts'
import { type Clock, proposalNowMs } from '../../lib/clock.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LatestReads } from '../../ports/latest-reads.ts'

export interface PasswordLogInDeps {
  readonly state: StateView
  readonly clock: Clock
  readonly reads: LatestReads
  readonly throttle: LogInThrottle
  readonly passwords: PasswordVerifier
  readonly lockout: PasswordLockout
  readonly rehasher: PasswordRehasher
}

/** User name and password of a log-in, as the client sent them. */
export interface PasswordCredential {
  readonly username: string
  readonly password: string
}

/**
 * Authenticates by user name and password.
 * @returns the proof, or the reason of a refusal, which only the operator sees. For every reason
 * the client receives the same response after the same amount of work, so that it does not learn
 * which user names exist.
 */
export async function authenticateByPassword(
  deps: PasswordLogInDeps,
  address: string,
  { username, password }: PasswordCredential,
  by: PasswordHashCaller,
): Promise<CredentialProof | RefusalCause> {
  const { state, passwords, lockout } = deps
  let reason: LogInRefusalReason = 'USERNAME_UNKNOWN'
  const proof = await deps.throttle.attempt(username, address, async () => {
    // Without a leader no session can be opened, so no hash is computed. With a leader, this read
    // also finds a password that another controller has just set.
    await deps.reads.reachLatest()
    const authenticator = state.find('authenticator', 'username', username)
    const holder = authenticator === undefined ? reason : holderOf(deps, authenticator)
    if (authenticator === undefined || typeof holder === 'string') {
      if (typeof holder === 'string') reason = holder
      // @guard user-enumeration
      await passwords.verify(by, null, password)
      return null
    }
    const { passwordHash } = authenticator
    reason = 'PASSWORD_WRONG'
    const isRight = await passwords.verify(by, passwordHash, password, async () => {
      const isReserved = await lockout.reserve(authenticator, address)
      if (!isReserved) reason = 'PASSWORD_LOCKED'
      return isReserved
    })
    if (!isRight) return null
    const kept = await deps.rehasher.rehash(authenticator, password, by, address)
    return { authenticator: kept, identityId: holder.id }
  })
  return proof ?? { reason }
}

/** The identity that may log in with this password, or the reason for a refusal. */
function holderOf(
  deps: PasswordLogInDeps,
  { method, identityId }: Authenticator,
): Identity | LogInRefusalReason {
  const records = deps.state.recordsNow
  if (method !== 'updb') return 'USERNAME_UNKNOWN'
  const identity = records.get('identity', identityId)
  if (identity === undefined) return 'IDENTITY_UNKNOWN'
  if (isDisabled(identity, proposalNowMs(deps))) return 'IDENTITY_DISABLED'
  const isAllowed = identityAuthPolicy(records, identity)?.primary.updb.allowed === true
  return isAllowed ? identity : 'METHOD_NOT_ALLOWED'
}
