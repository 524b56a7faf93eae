import { create, toBinary } from '@bufbuild/protobuf'
import { CommandKind, PasswordRehashSchema } from '../../../proto/gen/command_pb.ts'
import type { Authenticator } from '../../entities/kinds/authenticator.ts'
import { Problem } from '../../lib/problems.ts'
import { createSystemActor } from '../../ports/actor.ts'
import { commandFeatureLevel } from '../../ports/feature-level.ts'
import type { Proposer } from '../../ports/proposer.ts'
import type { StateView } from '../../ports/state-view.ts'
import {
  type PasswordHashCaller,
  isWeakPasswordHash,
  type PasswordVerifier,
} from './password-verifier.ts'

interface PasswordRehasherDeps {
  readonly state: StateView
  readonly proposer: Proposer
  readonly passwords: PasswordVerifier
}

/**
 * At log-in, replaces password hashes whose parameters are weaker than those of new hashes, as in
 * hashes that were migrated from OpenZiti.
 */
export class PasswordRehasher {
  readonly #deps: PasswordRehasherDeps
  /** Ids of the authenticators whose hashes are being replaced. */
  readonly #underWay = new Set<string>()

  constructor(deps: PasswordRehasherDeps) {
    this.#deps = deps
  }

  /**
   * Stores a stronger hash of a password that was just verified, once per password. A failure does
   * not affect the log-in: the next log-in tries again.
   * @returns the record with the stronger hash; the given record if its hash was not replaced.
   */
  async rehash(
    authenticator: Authenticator,
    password: string,
    by: PasswordHashCaller,
    address: string,
  ): Promise<Authenticator> {
    const { id, passwordHash } = authenticator
    const level = commandFeatureLevel(CommandKind.PASSWORD_REHASH)
    if (passwordHash === null || !isWeakPasswordHash(passwordHash)) return authenticator
    if (this.#deps.state.featureLevel < level || this.#underWay.has(id)) return authenticator
    this.#underWay.add(id)
    try {
      return await this.#replace(authenticator, password, by, address)
    } catch (error) {
      if (error instanceof Problem) return authenticator
      throw error
    } finally {
      this.#underWay.delete(id)
    }
  }

  async #replace(
    authenticator: Authenticator,
    password: string,
    by: PasswordHashCaller,
    address: string,
  ): Promise<Authenticator> {
    const { state, proposer, passwords } = this.#deps
    const { id, identityId, revision } = authenticator
    const passwordHash = await passwords.hash(by, password)
    const message = create(PasswordRehashSchema, { authenticatorId: id, passwordHash })
    await proposer.propose({
      kind: CommandKind.PASSWORD_REHASH,
      payload: toBinary(PasswordRehashSchema, message),
      actor: createSystemActor({ address, identityId }),
      // @guard old-password--rehash
      judgedOn: [{ entity: 'authenticator', id, revision }],
    })
    const stored = state.get('authenticator', id)
    return stored?.passwordHash === passwordHash ? stored : authenticator
  }
}
