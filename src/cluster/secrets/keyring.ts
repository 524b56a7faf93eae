import {
  isRandomKey,
  type SecretVersion,
  type SharedSecretName,
  sharedSecretNames,
} from '../../lib/shared-secrets.ts'
import type { CertificateWithKey } from '../../pki/authority/authority.ts'
import { CLUSTER_KEY_BYTES } from '../../pki/secrets/cluster-key.ts'
import { unwrapSecret } from '../../pki/secrets/wrapped-secret.ts'
import type { ChangeFeed } from '../../ports/change-feed.ts'
import type { RecordOf, StateView } from '../../ports/state-view.ts'
import type { TokenKey, TokenKeys } from '../../ports/token-keys.ts'
import type { NodeId } from '../../raft/types.ts'
import type { Logger } from '../logger.ts'

interface KeyringDeps {
  readonly state: Pick<StateView, 'get' | 'clusterId'>
  readonly selfId: NodeId
  /** Returns this controller's private key; called for each decryption. */
  readonly privateKeyPem: () => string
  readonly log: Logger
}

/** A version of a shared secret that this controller has decrypted. */
interface HeldSecret {
  readonly name: SharedSecretName
  readonly version: number
  readonly secret: Uint8Array
  readonly certificatePem: string
  /** Log time at which controllers stop accepting this version; null for the current version. */
  readonly overlapEndsAtMs: number | null
  /** Whether a removed controller could decrypt this version. */
  readonly isExposed: boolean
}

/**
 * Decrypts the shared secrets of the replicated state with the key of this controller. Plaintext
 * exists only in memory.
 */
export class Keyring implements TokenKeys {
  /** Functions to call after the set of decrypted secrets has changed. */
  readonly #listeners: (() => void)[] = []
  readonly #deps: KeyringDeps
  /** Decrypted secrets by their ciphertext, so that an unchanged one is decrypted once. */
  #opened = new Map<string, Uint8Array | null>()
  #held: readonly HeldSecret[] = []
  #clusterKeys: readonly TokenKey[] = []
  #factorKeys: readonly TokenKey[] = []
  /** The records from which `#held` was made. */
  #seen: readonly unknown[] = []
  #work: Promise<void> | null = null
  #unfollow: () => void = () => undefined

  constructor(deps: KeyringDeps) {
    this.#deps = deps
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }

  /**
   * Follows the state: when another controller has rotated a secret, this controller decrypts the
   * new version as soon as it has applied the rotation.
   */
  start(feed: ChangeFeed): void {
    const onChange = (): void => void this.refresh()
    this.#unfollow = feed.follow(['sharedSecret'], { onEntry: onChange, onReplaced: onChange })
  }

  stop(): void {
    this.#unfollow()
  }

  clusterKeys(): readonly TokenKey[] {
    return this.#clusterKeys
  }

  factorKeys(): readonly TokenKey[] {
    return this.#factorKeys
  }

  /**
   * The authority that signs leaves. null until the state has it, or when this controller cannot
   * decrypt it.
   */
  issuing(): (CertificateWithKey & { readonly version: number }) | null {
    const found = this.#held.find(
      ({ name, overlapEndsAtMs }) => name === 'issuingAuthority' && overlapEndsAtMs === null,
    )
    if (found === undefined) return null
    const { version, certificatePem, secret } = found
    return { version, certificatePem, privateKeyPem: Buffer.from(secret).toString('utf8') }
  }

  /** All decrypted versions of all secrets. */
  held(): readonly HeldSecret[] {
    return this.#held
  }

  /**
   * Decrypts the secrets in the state. Never rejects: logs and skips a version that cannot be
   * decrypted. Concurrent calls share the work.
   */
  async refresh(): Promise<void> {
    // The loop repeats while the state has changed, because the work in progress may have read the
    // state before its latest change.
    while (!this.#isSeen()) {
      this.#work ??= this.#reopen().finally(() => {
        this.#work = null
      })
      await this.#work
    }
  }

  /**
   * The records themselves are compared, not their revisions: after the state was replaced, a
   * different record may have the same revision.
   */
  #sources(): readonly unknown[] {
    return [this.#deps.state.clusterId, ...sharedSecretNames.map((name) => this.#record(name))]
  }

  #isSeen(): boolean {
    const now = this.#sources()
    return now.length === this.#seen.length && now.every((source, at) => source === this.#seen[at])
  }

  #record(name: SharedSecretName): RecordOf<'sharedSecret'> | undefined {
    return this.#deps.state.get('sharedSecret', name)
  }

  async #reopen(): Promise<void> {
    const sources = this.#sources()
    const opened = new Map<string, Uint8Array | null>()
    const held: HeldSecret[] = []
    for (const name of sharedSecretNames) {
      for (const version of this.#record(name)?.versions ?? []) {
        const jwe = version.wrapped[this.#deps.selfId]
        if (jwe === undefined) continue
        const known = this.#opened.get(jwe)
        const secret = known === undefined ? await this.#open(name, version, jwe) : known
        opened.set(jwe, secret)
        if (secret !== null) held.push(heldOf(name, version, secret))
      }
    }
    this.#opened = opened
    this.#held = held
    this.#clusterKeys = held.filter(({ name }) => name === 'clusterKey')
    this.#factorKeys = held.filter(({ name }) => name === 'factorKey')
    this.#seen = sources
    for (const listener of this.#listeners) listener()
  }

  async #open(
    name: SharedSecretName,
    { version }: SecretVersion,
    jwe: string,
  ): Promise<Uint8Array | null> {
    const { state, selfId, privateKeyPem, log } = this.#deps
    try {
      const context = { clusterId: state.clusterId, name, version, nodeId: selfId }
      const secret = await unwrapSecret(jwe, privateKeyPem(), context)
      if (!isRandomKey(name) || secret.length === CLUSTER_KEY_BYTES) return secret
      log.error({ secret: name, version }, 'ignoring a shared secret of the wrong length')
    } catch (error) {
      // The state of a member that joined again with a new key contains secrets encrypted for its
      // former key until the member has caught up.
      log.warn(
        { secret: name, version, err: error },
        'cannot decrypt a shared secret with the key of this controller; harmless while it catches up after it has joined again',
      )
    }
    return null
  }
}

function heldOf(
  name: SharedSecretName,
  { version, certificatePem, overlapEndsAt, exposure }: SecretVersion,
  secret: Uint8Array,
): HeldSecret {
  return {
    name,
    version,
    secret,
    certificatePem,
    overlapEndsAtMs: overlapEndsAt,
    isExposed: exposure !== 'none',
  }
}
