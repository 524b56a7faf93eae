import type { Mfa } from '../../entities/kinds/mfa.ts'
import { Problem } from '../../lib/problems.ts'
import { newShortId } from '../../lib/random.ts'
import {
  type FactorSecrets,
  generateFactor,
  newRecoveryCodes,
  decryptFactorSecrets,
  encryptFactorSecrets,
} from '../../pki/secrets/factor-secrets.ts'
import { recoveryCodesMax } from '../../fsm/identities/mfa.ts'
import type { TokenKey, TokenKeys } from '../../ports/token-keys.ts'
import type { StateView } from '../../ports/state-view.ts'

interface FactorVaultDeps {
  readonly keys: TokenKeys
  readonly state: StateView
}
type Named = Pick<Mfa, 'identityId' | 'secretId' | 'codesId'>

/** The fields of a command that contain an encrypted second factor. */
interface SealedFactor {
  readonly sealed: string
  readonly keyVersion: number
  readonly codesId: string
}

/** Encrypts and decrypts the secrets of second factors with the key that the controllers share. */
export class FactorEncryption {
  readonly #deps: FactorVaultDeps

  constructor(deps: FactorVaultDeps) {
    this.#deps = deps
  }

  /**
   * Creates a new secret with new recovery codes.
   * @throws {Problem} CLUSTER_NO_LEADER while this controller does not have the current factor key.
   */
  async makeNew(identityId: string): Promise<{ secretId: string; factor: SealedFactor }> {
    const secretId = newShortId()
    return {
      secretId,
      factor: await this.#seal(generateFactor(recoveryCodesMax), identityId, secretId),
    }
  }

  /**
   * Keeps the secret and creates new recovery codes.
   * @throws {Problem} in the same cases as `makeNew`.
   */
  async renewCodes(
    { secret }: FactorSecrets,
    { identityId, secretId }: Named,
  ): Promise<SealedFactor> {
    const recoveryCodes = newRecoveryCodes(recoveryCodesMax)
    return await this.#seal({ secret, recoveryCodes }, identityId, secretId)
  }

  /**
   * Encrypts the factor again, with the current key; null if the factor is already encrypted with
   * this key.
   * @throws {Problem} in the same cases as `makeNew` and `open`.
   */
  async reseal(mfa: Mfa): Promise<SealedFactor | null> {
    const key = await this.#inForce()
    if (mfa.keyVersion === key.version) return null
    const { identityId, secretId, codesId } = mfa
    return this.#sealBy(key, await this.open(mfa), { identityId, secretId, codesId })
  }

  /**
   * @throws {Problem} CLUSTER_NO_LEADER if this controller does not have the key yet, or cannot
   * decrypt the factor with it.
   */
  async open(mfa: Mfa): Promise<FactorSecrets> {
    const { keyVersion, sealed } = mfa
    const key = await this.#keyOf(keyVersion)
    const factor =
      key === undefined ? null : decryptFactorSecrets(key.secret, sealed, this.#contextOf(mfa))
    if (factor === null) throw noKey()
    return factor
  }

  async #seal(factor: FactorSecrets, identityId: string, secretId: string): Promise<SealedFactor> {
    const named = { identityId, secretId, codesId: newShortId() }
    return this.#sealBy(await this.#inForce(), factor, named)
  }

  #sealBy({ version, secret }: TokenKey, factor: FactorSecrets, named: Named): SealedFactor {
    const sealed = encryptFactorSecrets(secret, factor, this.#contextOf(named))
    return { sealed, keyVersion: version, codesId: named.codesId }
  }

  #contextOf({ identityId, secretId, codesId }: Named) {
    return { clusterId: this.#deps.state.clusterId, identityId, secretId, codesId }
  }

  /**
   * Finds the key of a version. If the version is unknown, loads the keys of the applied state
   * once, because this controller may just have applied a rotation.
   */
  async #keyOf(version: number): Promise<TokenKey | undefined> {
    const { keys } = this.#deps
    const find = () => keys.factorKeys().find((key) => key.version === version)
    if (find() === undefined) await keys.refresh()
    return find()
  }

  async #inForce(): Promise<TokenKey> {
    await this.#deps.keys.refresh()
    const key = this.#deps.keys.factorKeys().at(-1)
    if (key?.overlapEndsAtMs !== null) throw noKey()
    return key
  }
}

function noKey(): Problem {
  return new Problem('CLUSTER_NO_LEADER', {
    detail: 'this controller has no key of second factors yet; retry once it has caught up',
  })
}
