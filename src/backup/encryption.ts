import { createCipheriv, createDecipheriv, createPublicKey, randomBytes } from 'node:crypto'

import { CertificateError } from '../pki/certificate.ts'
import { parsePublicKey, spkiSha256 } from '../pki/public-key.ts'
import { unwrapSecret, wrapSecret, WrappedSecretError } from '../pki/secrets/wrapped-secret.ts'
import { BackupFault, damagedBackupFault } from './backup-fault.ts'
import { backupLimits } from './limits.ts'
import type { BackupEncryption, BackupManifest } from './manifest.ts'

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Recipient of an encrypted backup; only the recipient's private key decrypts the backup. */
export interface BackupRecipient {
  /** SubjectPublicKeyInfo of the recipient's public key in DER. */
  readonly publicKeySpki: Uint8Array
}

/** A controller of the cluster; its key must not be that of a recipient. */
interface ControllerCertificate {
  readonly id: string
  /** '' if it is not known. */
  readonly certificatePem: string
}

/**
 * @param pem a public key or a certificate.
 * @param controllers controllers whose keys are refused: after the loss of the host of such a
 * controller, nothing could decrypt the backup.
 * @throws {CertificateError} when `pem` is neither, or when its key is not allowed or is refused.
 */
export function parseRecipient(
  pem: string,
  controllers: readonly ControllerCertificate[] = [],
): BackupRecipient {
  if (pem.length > backupLimits.recipientCharactersMax) {
    throw new CertificateError('unreadable', 'the file of the recipient is too large')
  }
  // Rejects a private key: `createPublicKey` would silently accept it, and the host that makes the
  // backups would then store the key that decrypts them.
  if (pem.includes('PRIVATE KEY')) {
    throw new CertificateError(
      'unreadable',
      'the recipient is a private key; name the public one, and keep this one away from the controllers',
    )
  }
  let der: Buffer
  try {
    der = createPublicKey(pem).export({ type: 'spki', format: 'der' })
  } catch (error) {
    throw new CertificateError('unreadable', 'not a public key in PEM', error)
  }
  const publicKeySpki = Uint8Array.from(der)
  parsePublicKey(publicKeySpki)
  refuseControllerKey(publicKeySpki, controllers)
  return { publicKeySpki }
}

function refuseControllerKey(
  publicKeySpki: Uint8Array,
  controllers: readonly ControllerCertificate[],
): void {
  const owner = controllers.find(({ certificatePem }) => {
    const own = exportSpki(certificatePem)
    return own !== null && Buffer.compare(own, publicKeySpki) === 0
  })
  if (owner === undefined) return
  throw new CertificateError(
    'wrong-usage',
    `the recipient has the key of controller ${owner.id}, so only the host of ${owner.id} could decrypt the backup; name the public key of a pair that was created for backups, and keep its private key away from the controllers`,
  )
}

/** Public key in DER of a key or certificate; null if the text contains none. */
function exportSpki(pem: string): Uint8Array | null {
  try {
    return createPublicKey(pem).export({ type: 'spki', format: 'der' })
  } catch {
    return null
  }
}

/** Generates the content key of one backup and wraps it for the recipient. */
export async function createWrappedContentKey(
  { publicKeySpki }: BackupRecipient,
  of: Pick<BackupManifest, 'clusterId' | 'controllerId'>,
): Promise<{ readonly key: Uint8Array; readonly encryption: BackupEncryption }> {
  const key = Uint8Array.from(randomBytes(KEY_BYTES))
  const wrappedKey = await wrapSecret(key, publicKeySpki, contextOf(of))
  const recipientSha256 = Buffer.from(spkiSha256(publicKeySpki)).toString('hex')
  return { key, encryption: { wrappedKey, recipientSha256 } }
}

/**
 * Unwraps the content key.
 * @throws {BackupFault} KEY_NEEDED, WRONG_KEY.
 * @returns null when the backup is not encrypted.
 */
export async function unwrapContentKey(
  manifest: BackupManifest,
  privateKeyPem: string | null,
): Promise<Uint8Array | null> {
  const { encryption } = manifest
  if (encryption === null) return null
  const whose = `the key whose public half has SHA-256 ${encryption.recipientSha256}`
  if (privateKeyPem === null) {
    throw new BackupFault('KEY_NEEDED', `the backup is encrypted; give --key with ${whose}`)
  }
  try {
    return await unwrapSecret(encryption.wrappedKey, privateKeyPem, contextOf(manifest))
  } catch (error) {
    if (!(error instanceof WrappedSecretError || error instanceof CertificateError)) throw error
    throw new BackupFault('WRONG_KEY', `the key does not open the backup; give ${whose}`, error)
  }
}

function contextOf({
  clusterId,
  controllerId,
}: Pick<BackupManifest, 'clusterId' | 'controllerId'>) {
  return { clusterId, name: 'backup', version: 1, nodeId: controllerId }
}

/**
 * Encrypts or decrypts the frames of one backup. Each frame is bound to its number and to the
 * manifest.
 */
export class BackupFrameCipher {
  readonly #key: Uint8Array
  readonly #manifestSha256: Uint8Array
  #number = 0

  constructor(key: Uint8Array, manifestSha256: Uint8Array) {
    this.#key = key
    this.#manifestSha256 = manifestSha256
  }

  seal(plain: Uint8Array): Uint8Array {
    const cipher = createCipheriv(CIPHER, this.#key, this.#nonce())
    cipher.setAAD(this.#manifestSha256)
    return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()])
  }

  /**
   * Decrypts a frame.
   * @throws {BackupFault} DAMAGED when the frame is too short, was changed, or was encrypted with
   * another key or for another position.
   */
  open(body: Uint8Array): Uint8Array {
    const nonce = this.#nonce()
    if (body.length <= TAG_BYTES) throw damagedBackupFault('a frame of the backup is too short')
    const cipher = createDecipheriv(CIPHER, this.#key, nonce)
    cipher.setAAD(this.#manifestSha256)
    cipher.setAuthTag(body.subarray(-TAG_BYTES))
    const plain = cipher.update(body.subarray(0, -TAG_BYTES))
    try {
      cipher.final()
    } catch (error) {
      throw damagedBackupFault('the backup was changed after it was encrypted', error)
    }
    return plain
  }

  /**
   * The nonce is the frame number. Each backup has its own key, so no nonce is used twice with a
   * key.
   */
  #nonce(): Buffer {
    const nonce = Buffer.alloc(NONCE_BYTES)
    nonce.writeUInt32LE(this.#number)
    this.#number += 1
    return nonce
  }
}
