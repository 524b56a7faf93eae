import { hkdfSync } from 'node:crypto'

import { CompactEncrypt, compactDecrypt } from 'jose'

import { Problem } from '../../lib/problems.ts'
import { type Clock, quorumOrLocalNowMs } from '../../lib/clock.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { TokenKey, TokenKeys } from '../../ports/token-keys.ts'
import type { StartedLogInFlow, AuthenticatedLogIn, PendingDeviceFlow } from './flow-steps.ts'

/**
 * Contents of encrypted flow states, by purpose. Each purpose has its own key, so a text encrypted
 * for one purpose cannot be decrypted for another.
 */
export interface EncryptedFlowContents {
  readonly request: StartedLogInFlow
  readonly progress: AuthenticatedLogIn
  readonly code: AuthenticatedLogIn
  readonly device: PendingDeviceFlow
}
export type FlowEncryptionPurpose = keyof EncryptedFlowContents

/**
 * Limit for a text that is sent in a URL: OpenZiti's C SDK allows 8,196 bytes for a whole request
 * head.
 */
const SEALED_CHARACTERS_MAX = 6 * 1024

const KEY_BYTES = 32

interface SealedTextsDeps {
  readonly keys: Pick<TokenKeys, 'clusterKeys' | 'refresh'>
  readonly clock: Clock
  readonly cluster: Pick<ClusterView, 'quorumClockMs'>
}

/**
 * Encrypts the state of a log-in flow as a text that the client sends back (compact JWE, RFC 7516:
 * `dir`, A256GCM). The encryption key is derived from the cluster key, so any member can decrypt
 * the text, and flows in progress need no memory on controllers. `kid` is the version of the
 * cluster key.
 */
export class FlowStateEncryption {
  readonly #parts: SealedTextsDeps

  constructor(parts: SealedTextsDeps) {
    this.#parts = parts
  }

  /**
   * @throws {Problem} CLUSTER_NO_LEADER while this controller has no current cluster key;
   * COULD_NOT_VALIDATE if the result is too long for a URL.
   */
  async seal<P extends FlowEncryptionPurpose>(
    purpose: P,
    contents: EncryptedFlowContents[P],
    lifetimeMs: number,
  ): Promise<string> {
    const key = await this.#keyInForce()
    if (key === undefined) {
      throw new Problem('CLUSTER_NO_LEADER', {
        detail:
          'this controller has no key for logins yet, or the key is being replaced; retry in a few seconds',
      })
    }
    // @guard oidc/sealed-by-a-wrong-clock--sealed
    const text = JSON.stringify({
      contents,
      expiresAtMs: quorumOrLocalNowMs(this.#parts) + lifetimeMs,
    })
    const sealed = await new CompactEncrypt(Buffer.from(text, 'utf8'))
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid: `${key.version}` })
      .encrypt(keyOf(key.secret, purpose))
    if (sealed.length <= SEALED_CHARACTERS_MAX) return sealed
    const about = 'state, nonce, configTypes and what the client reports of itself'
    throw new Problem('COULD_NOT_VALIDATE', { detail: `${about} are too long together` })
  }

  /**
   * Decrypts a text that was encrypted with the current key. Older keys are not accepted, because a
   * removed controller may know them and could forge log-ins.
   * @returns null for an expired text, for a text that was not encrypted for this purpose with the
   * current key, and while there is no current key.
   */
  async open<P extends FlowEncryptionPurpose>(
    purpose: P,
    sealed: string,
  ): Promise<EncryptedFlowContents[P] | null> {
    if (sealed.length > SEALED_CHARACTERS_MAX) return null
    // @guard oidc/sealed-by-a-wrong-clock--opened
    const nowMs = quorumOrLocalNowMs(this.#parts)
    const key = await this.#keyInForce()
    if (key === undefined) return null
    try {
      const { plaintext } = await compactDecrypt(
        sealed,
        ({ kid }) => {
          // @guard oidc/sealed-by-a-former-member--version
          if (kid !== `${key.version}`) throw new Error('not the version in force')
          return keyOf(key.secret, purpose)
        },
        { keyManagementAlgorithms: ['dir'], contentEncryptionAlgorithms: ['A256GCM'] },
      )
      const { contents, expiresAtMs } = JSON.parse(Buffer.from(plaintext).toString('utf8')) as {
        readonly contents: EncryptedFlowContents[P]
        readonly expiresAtMs: number
      }
      // @guard oidc/code-flow--time
      return nowMs < expiresAtMs ? contents : null
    } catch {
      return null
    }
  }

  /**
   * The cluster key that encrypts new texts. Undefined if there is no key yet, or if a removed
   * controller knew the key and the leader has not yet rotated it.
   */
  async #keyInForce(): Promise<TokenKey | undefined> {
    const { keys } = this.#parts
    await keys.refresh()
    // @guard oidc/sealed-by-a-former-member--exposed
    return keys
      .clusterKeys()
      .find(({ overlapEndsAtMs, isExposed }) => overlapEndsAtMs === null && !isExposed)
  }
}

function keyOf(secret: Uint8Array, purpose: FlowEncryptionPurpose): Uint8Array {
  // @guard oidc/code-flow--seal
  return new Uint8Array(hkdfSync('sha256', secret, '', `flotilla oidc ${purpose}`, KEY_BYTES))
}
