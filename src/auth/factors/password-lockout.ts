import { create, toBinary } from '@bufbuild/protobuf'
import { CommandKind, PasswordAttemptSchema } from '../../../proto/gen/command_pb.ts'
import type { Authenticator } from '../../entities/kinds/authenticator.ts'
import {
  isLockedOut,
  identityLockoutRules,
  type LockoutRules,
} from '../../fsm/apply/authentication.ts'
import { Problem } from '../../lib/problems.ts'
import { createSystemActor } from '../../ports/actor.ts'
import { type Clock, proposalNowMs } from '../../lib/clock.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { Proposer } from '../../ports/proposer.ts'

interface PasswordLockoutDeps {
  readonly state: StateView
  readonly proposer: Proposer
  readonly clock: Clock
}
type Credential = Pick<Authenticator, 'id' | 'identityId'>

/**
 * Counts password attempts for auth policies with `maxAttempts`. The count is in the log, so it
 * applies across all controllers. Attempts under a policy without `maxAttempts` write no log entry.
 */
export class PasswordLockout {
  readonly #deps: PasswordLockoutDeps

  constructor(deps: PasswordLockoutDeps) {
    this.#deps = deps
  }

  /**
   * Reserves one attempt before its hash is computed.
   * @returns false while the password is locked, or if its identity no longer exists; the password
   * must then not be checked at all.
   */
  async reserve(credential: Credential, address: string): Promise<boolean> {
    const rules = this.#rulesOf(credential)
    if (rules === undefined) return false
    if (rules.maxAttempts <= 0) return true
    const { state } = this.#deps
    const known = state.get('passwordAttempts', credential.id)
    // An attempt at a locked password writes no entry; otherwise anyone who knows a user name could
    // fill the log.
    if (isLockedOut(known, rules, proposalNowMs(this.#deps))) return false
    return this.#propose(credential, address, false)
  }

  /** Resets the count of failed attempts after a correct password that does not open a session. */
  async prove(credential: Credential, address: string): Promise<void> {
    if (this.#deps.state.get('passwordAttempts', credential.id) === undefined) return
    await this.#propose(credential, address, true)
  }

  async #propose(credential: Credential, address: string, proven: boolean): Promise<boolean> {
    const message = create(PasswordAttemptSchema, { authenticatorId: credential.id, proven })
    const { outcome } = await this.#deps.proposer.propose({
      kind: CommandKind.PASSWORD_ATTEMPT,
      payload: toBinary(PasswordAttemptSchema, message),
      actor: createSystemActor({ address }),
    })
    if (outcome.ok) return true
    if (outcome.code === 'INVALID_AUTH') return false
    throw new Problem(outcome.code)
  }

  #rulesOf({ identityId }: Credential): LockoutRules | undefined {
    const { recordsNow: records, featureLevel } = this.#deps.state
    const identity = records.get('identity', identityId)
    return identity === undefined
      ? undefined
      : identityLockoutRules(records, identity, featureLevel)
  }
}
