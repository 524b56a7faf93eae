import { BUNDLE_CERTIFICATES_MAX, CertificateError, parseCertificates } from '../pki/certificate.ts'
import { FEATURE_LEVEL } from '../ports/feature-level.ts'
import { BackupContainerReader } from './container.ts'
import { type BackupSecret, BackupContentReader } from './content.ts'
import { BackupFrameCipher, unwrapContentKey } from './encryption.ts'
import { BackupFault, damagedBackupFault } from './backup-fault.ts'
import type { BackupManifest, BackupSummary } from './manifest.ts'

/** Manifest and summary of a backup whose checksums are intact. */
export interface BackupReadResult {
  readonly manifest: BackupManifest
  readonly summary: BackupSummary
  /** SHA-256 of the whole file in hex. */
  readonly sha256: string
  /**
   * Hex SHA-256 of all bytes before the last 32 bytes, which contain this checksum. Releases before
   * 0.3.0 printed it as the SHA-256 of the backup.
   */
  readonly endChecksum: string
  /** null if the backup contains no secrets. */
  readonly secrets: readonly BackupSecret[] | null
}

interface ReadingDeps {
  /** The recipient's private key; null suffices for a backup that is not encrypted. */
  readonly privateKeyPem: string | null
  /**
   * Called before any byte of the state, so that the caller can reject the backup by throwing.
   */
  readonly onManifest?: (manifest: BackupManifest) => void
  /** Receives the bytes of the state in order. */
  readonly onState: (bytes: Uint8Array) => Promise<void>
}

/**
 * Reads a backup from start to end.
 * @throws {BackupFault} and errors of the callbacks.
 */
export async function readBackup(
  bytes: AsyncIterable<Uint8Array>,
  deps: ReadingDeps,
): Promise<BackupReadResult> {
  const container = new BackupContainerReader()
  const content = new BackupContentReader()
  let opened: { readonly cipher: BackupFrameCipher | null } | null = null
  for await (const chunk of bytes) {
    const bodies = container.push(chunk)
    const { manifest } = container
    if (manifest === null) continue
    opened ??= await open(container, manifest, deps)
    for (const body of bodies) {
      const state = content.push(opened.cipher === null ? body : opened.cipher.open(body))
      if (state.length > 0) await deps.onState(state)
    }
  }
  const summary = container.finish()
  const { manifest } = container
  if (manifest === null || manifest.hasSecrets !== (content.secrets !== null)) {
    throw damagedBackupFault('the secrets of the backup do not match its header')
  }
  const { sha256, endChecksum } = container
  return { manifest, summary, sha256, endChecksum, secrets: content.secrets }
}

/**
 * Checks what can be checked without a key even if the backup is encrypted: checksums, format,
 * feature level, and the CA certificates in the head.
 * @throws {BackupFault}
 */
export async function checkBackup(
  bytes: AsyncIterable<Uint8Array>,
): Promise<Omit<BackupReadResult, 'secrets'>> {
  const container = new BackupContainerReader()
  for await (const chunk of bytes) {
    container.push(chunk)
    if (container.manifest !== null) requireKnownLevel(container.manifest)
  }
  const summary = container.finish()
  const { manifest } = container
  if (manifest === null) throw damagedBackupFault('the head of the backup is missing')
  requireAuthorities(manifest)
  const { sha256, endChecksum } = container
  return { manifest, summary, sha256, endChecksum }
}

async function open(
  container: BackupContainerReader,
  manifest: BackupManifest,
  { privateKeyPem, onManifest }: ReadingDeps,
): Promise<{ readonly cipher: BackupFrameCipher | null }> {
  requireKnownLevel(manifest)
  // @guard backup-of-a-stranger--whole
  requireAuthorities(manifest)
  onManifest?.(manifest)
  const key = await unwrapContentKey(manifest, privateKeyPem)
  return { cipher: key === null ? null : new BackupFrameCipher(key, container.manifestSha256) }
}

/**
 * Checks the CA certificates: a restore writes them as the CA file of the new cluster, and no
 * member starts with an unreadable CA file.
 * @throws {BackupFault} DAMAGED.
 */
function requireAuthorities({ caPem }: BackupManifest): void {
  const what = 'the CA certificates in the head of the backup cannot be read'
  try {
    const found = parseCertificates(caPem, { certificatesMax: BUNDLE_CERTIFICATES_MAX })
    if (found.every(({ isAuthority }) => isAuthority)) return
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error
    throw damagedBackupFault(what, error)
  }
  throw damagedBackupFault(what)
}

/**
 * Checks the feature level: a backup with a higher feature level contains records that this release
 * cannot read.
 * @throws {BackupFault} NEWER_LEVEL.
 */
function requireKnownLevel({ featureLevel, version }: BackupManifest): void {
  if (featureLevel <= FEATURE_LEVEL) return
  throw new BackupFault(
    'NEWER_LEVEL',
    `the backup is of feature level ${featureLevel} and this program knows levels up to ${FEATURE_LEVEL}; use the release that wrote it (${version}) or a later one`,
  )
}
