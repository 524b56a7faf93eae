import type { Authenticator } from '../../entities/kinds/authenticator.ts'
import { authPolicyOf } from '../../fsm/apply/authentication.ts'
import { isDisabled } from '../../lib/is-disabled.ts'
import type { LogInThrottle } from './log-in-throttle.ts'
import type { HashCaller, PasswordVerifier } from '../factors/password-verifier.ts'
import type { PasswordLockout } from '../factors/password-lockout.ts'
import type { Proof } from './proof.ts'
import { type Clock, judgedNowMs } from '../../lib/clock.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LatestReads } from '../../ports/latest-reads.ts'

export interface PasswordProofDeps {
  readonly state: StateView
  readonly clock: Clock
  readonly reads: LatestReads
  readonly throttle: LogInThrottle
  readonly passwords: PasswordVerifier
  readonly lockout: PasswordLockout
}

export interface PasswordGiven {
  readonly username: string
  readonly password: string
}

/**
 * Authenticates by user name and password.
 * @returns null for every refusal, after the same work, so that the answer does not reveal which
 * user names exist.
 */
export function provePassword(
  deps: PasswordProofDeps,
  address: string,
  { username, password }: PasswordGiven,
  by: HashCaller,
): Promise<Proof | null> {
  const { state, passwords, lockout } = deps
  return deps.throttle.attempt(username, address, async () => {
    // Without a leader no session can open, so no hash is computed. With one, this read sees a
    // password that another controller set a moment ago.
    await deps.reads.reachLatest()
    const authenticator = state.find('authenticator', 'username', username)
    const identityId = authenticator === undefined ? null : holderOf(deps, authenticator)
    if (authenticator === undefined || identityId === null) {
      // @guard user-enumeration
      await passwords.verify(by, null, password)
      return null
    }
    const { passwordHash } = authenticator
    const isRight = await passwords.verify(by, passwordHash, password, () =>
      lockout.reserve(authenticator, address),
    )
    return isRight ? { authenticator, identityId } : null
  })
}

/** The identity that may log in with this password, or null. */
function holderOf(deps: PasswordProofDeps, { method, identityId }: Authenticator): string | null {
  const records = deps.state.recordsNow
  if (method !== 'updb') return null
  const identity = records.get('identity', identityId)
  if (identity === undefined || isDisabled(identity, judgedNowMs(deps))) return null
  return authPolicyOf(records, identity)?.primary.updb.allowed === true ? identity.id : null
}
