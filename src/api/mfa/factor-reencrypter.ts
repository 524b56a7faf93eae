import { create, toBinary } from '@bufbuild/protobuf'
import { CommandKind, MfaResealSchema } from '../../../proto/gen/command_pb.ts'
import type { Mfa } from '../../entities/kinds/mfa.ts'
import { Problem } from '../../lib/problems.ts'
import { SYSTEM_ACTOR } from '../../ports/actor.ts'
import type { FactorEncryption } from '../../auth/factors/factor-encryption.ts'
import type { Proposer } from '../../ports/proposer.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { TokenKeys } from '../../ports/token-keys.ts'
import type { PeriodicScheduler } from '../../lib/periodic-scheduler.ts'
import type { ApiLimits } from '../limits.ts'
import type { ServiceLogger } from '../../ports/logger.ts'

interface FactorResealerDeps {
  readonly proposer: Proposer
  readonly cluster: ClusterView
  readonly state: StateView
  readonly keys: TokenKeys
  readonly scheduler: PeriodicScheduler
  readonly limits: ApiLimits
  readonly logger: ServiceLogger
}

/**
 * After a rotation of the factor key, the leader encrypts factors of older key versions again, with
 * the new version. The cluster keeps an old version until no factor uses it, and it can keep only a
 * few versions.
 */
export class FactorReencrypter {
  readonly #deps: FactorResealerDeps
  readonly #vault: FactorEncryption
  #stop: () => void = () => undefined
  #isAtWork = false

  constructor(deps: FactorResealerDeps, vault: FactorEncryption) {
    this.#deps = deps
    this.#vault = vault
  }

  start(): void {
    const { scheduler, limits } = this.#deps
    this.#stop = scheduler.every(limits.sweepMs, () => void this.sweep())
  }

  stop(): void {
    this.#stop()
  }

  /** Encrypts at most `sweepBatchMax` factors again; the next call continues. Never rejects. */
  async sweep(): Promise<void> {
    const { cluster, logger } = this.#deps
    if (this.#isAtWork || cluster.leaderId() !== cluster.selfId) return
    this.#isAtWork = true
    try {
      for (const mfa of this.#outdated()) await this.#reseal(mfa)
    } catch (error) {
      // There may be no leader for a while; the next call tries again.
      if (error instanceof Problem) return
      logger.error({ err: error }, 'cannot re-encrypt second factors with the new key')
    } finally {
      this.#isAtWork = false
    }
  }

  #outdated(): readonly Mfa[] {
    const { state, keys, limits } = this.#deps
    const earlier = keys.factorKeys().filter(({ overlapEndsAtMs }) => overlapEndsAtMs !== null)
    return earlier
      .flatMap(({ version }) => state.findAll('mfa', 'keyVersion', String(version)))
      .slice(0, limits.sweepBatchMax)
  }

  async #reseal(mfa: Mfa): Promise<void> {
    const factor = await this.#vault.reseal(mfa)
    if (factor === null) return
    const { identityId, secretId } = mfa
    const message = create(MfaResealSchema, { identityId, secretId, factor })
    await this.#deps.proposer.propose({
      kind: CommandKind.MFA_RESEAL,
      payload: toBinary(MfaResealSchema, message),
      actor: SYSTEM_ACTOR,
    })
  }
}
