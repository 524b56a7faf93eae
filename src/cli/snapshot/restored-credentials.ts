import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

import type { BackupManifest } from '../../backup/manifest.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import {
  type CertificateWithKey,
  issueControllerCertificate,
  LEAF_LIFETIME_MS,
} from '../../pki/authority/authority.ts'
import {
  BUNDLE_CERTIFICATES_MAX,
  CertificateError,
  checkCertificateChain,
  parseCertificates,
} from '../../pki/certificate.ts'
import { readIdentitySet } from '../../pki/verify/identity-files.ts'
import { SecretFileError, writePublicFile, writeSecretFile } from '../../pki/secret-file.ts'
import { limitValidity } from '../../pki/authority/renewal.ts'
import { checkSigningAuthority } from '../../pki/authority/signing-authority.ts'
import { advertisedHosts } from '../../config/controller/advertised-hosts.ts'
import type { PlannedConfig } from '../bootstrap/config-from-flags.ts'
import { CREATION_MARKER_NAME } from '../bootstrap/create-cluster.ts'
import { makeFolder } from '../terminal/make-folder.ts'
import { errorMessage } from '../../lib/error-code.ts'

const MARK = 'restored\n'

/** Certificate and key of the first controller of a restored cluster. */
export interface RestoredCredentials {
  /** True if the files existed and stay unchanged. */
  readonly isKept: boolean
  /** @throws {CommandFailure} when the authority in the backup can no longer sign. */
  leaf(issuing: CertificateWithKey): Promise<CertificateWithKey>
  /** Writes the files; does nothing if `isKept`. */
  write(leaf: CertificateWithKey): void
}

/**
 * Uses the old controller's files if all of them exist, because clients verify unused enrollment
 * tokens with the old controller's key. Otherwise creates new files, and overwrites only those of
 * an interrupted restore.
 * @throws {CommandFailure} exit 1, before anything is written, if the existing files do not match
 * the backup or may not be overwritten.
 */
export function prepareRestoredCredentials(
  planned: PlannedConfig,
  manifest: BackupManifest,
  nowMs: number,
): RestoredCredentials {
  const { cert, key, ca } = planned.config.identity
  const found = [cert, key, ca].filter((path) => existsSync(path))
  const kept = found.length === 3 ? readKept(planned.config, manifest, nowMs) : null
  if (kept !== null) {
    return { isKept: true, leaf: () => Promise.resolve(kept), write: () => undefined }
  }
  if (!isHalfRestored(planned.folder) && found[0] !== undefined) throw inTheWay(found[0])
  return {
    isKept: false,
    leaf: (issuing) => issue(planned.config, manifest, issuing, nowMs),
    write: (leaf) => write(planned, manifest, leaf),
  }
}

/**
 * Path of a marker file. While it exists and there is no data folder, the restore that wrote it was
 * interrupted, and a repeated restore may overwrite the files next to the marker.
 */
export function restoreMarkerPath({ folder }: PlannedConfig): string {
  return join(folder, CREATION_MARKER_NAME)
}

function isHalfRestored(folder: string): boolean {
  const path = join(folder, CREATION_MARKER_NAME)
  return existsSync(path) && readFileSync(path, 'utf8') === MARK
}

function inTheWay(path: string, cause?: CertificateError | SecretFileError): CommandFailure {
  const why = cause === undefined ? 'already exists' : `cannot be used (${errorMessage(cause)})`
  return new CommandFailure(
    EXIT_FAILED,
    `${path} ${why}; restore certificate, key and CA of the old controller, or move this file away`,
    cause,
  )
}

function readKept(
  { id, trustDomain, identity }: ControllerConfig,
  manifest: BackupManifest,
  nowMs: number,
): CertificateWithKey {
  try {
    const set = readIdentitySet(identity, { id, trustDomain, publicKeySha256: null }, nowMs)
    checkCertificateChain([...set.chain], anchorsOf(manifest), nowMs)
    return { certificatePem: set.certificatePem, privateKeyPem: set.privateKeyPem }
  } catch (error) {
    if (!(error instanceof CertificateError || error instanceof SecretFileError)) throw error
    throw inTheWay(identity.cert, error)
  }
}

function anchorsOf({ caPem }: BackupManifest): ReturnType<typeof parseCertificates> {
  return parseCertificates(caPem, { certificatesMax: BUNDLE_CERTIFICATES_MAX })
}

async function issue(
  config: ControllerConfig,
  manifest: BackupManifest,
  issuing: CertificateWithKey,
  nowMs: number,
): Promise<CertificateWithKey> {
  try {
    checkSigningAuthority({ signer: issuing, anchors: anchorsOf(manifest), nowMs })
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error
    throw new CommandFailure(
      EXIT_FAILED,
      `the issuing authority in the backup can no longer sign (${error.message}); restore certificate and key of the old controller, start it, and run 'flotilla pki renew-issuing' with the root key`,
      error,
    )
  }
  const [issuer] = parseCertificates(issuing.certificatePem)
  return await issueControllerCertificate({
    issuer: issuing,
    trustDomain: config.trustDomain,
    id: config.id,
    hosts: advertisedHosts(config),
    validity: limitValidity(issuer, nowMs, LEAF_LIFETIME_MS),
  })
}

function write(planned: PlannedConfig, { caPem }: BackupManifest, leaf: CertificateWithKey): void {
  const { identity } = planned.config
  makeFolder(planned.folder, 0o700)
  writePublicFile(restoreMarkerPath(planned), MARK)
  for (const path of [identity.cert, identity.key, identity.ca]) makeFolder(dirname(path))
  writePublicFile(identity.ca, caPem)
  writeSecretFile(identity.key, leaf.privateKeyPem)
  writePublicFile(identity.cert, leaf.certificatePem)
}
