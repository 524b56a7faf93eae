import { existsSync } from 'node:fs'

import type { ControllerConfig } from '../../config/controller/options.ts'
import type { CertificateWithKey } from '../../pki/authority/authority.ts'
import { BUNDLE_CERTIFICATES_MAX, CertificateError } from '../../pki/certificate.ts'
import {
  certificatesPem,
  readCertificates,
  readIdentitySet,
} from '../../pki/verify/identity-files.ts'
import { SecretFileError } from '../../pki/secret-file.ts'
import { readSigningAuthority } from '../../pki/authority/signing-authority.ts'
import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'

/** Certificate authorities that an operator supplies instead of generated ones. */
export interface SuppliedAuthorities {
  readonly issuing: CertificateWithKey
  readonly caPem: string
  /** Certificate and key of the controller; null when they must be generated. */
  readonly leaf: CertificateWithKey | null
}

/**
 * Reads the certificate and key files that the configuration names, and checks that they match each
 * other.
 * @param isHalfFormed true after an interrupted `cluster init`, which may have left a key without a
 * certificate.
 * @returns null when the configuration names no authority.
 * @throws {CommandFailure} exit 1 with one sentence.
 */
export function readSuppliedAuthorities(
  config: ControllerConfig,
  isHalfFormed: boolean,
  nowMs: number,
): SuppliedAuthorities | null {
  const { ca, signer } = config.identity
  const { cert, key } = signer
  if (cert === null || key === null) return null
  const anchors = about('identity.ca', `name the issuing CA certificates of ${cert}`, () =>
    readCertificates(ca, BUNDLE_CERTIFICATES_MAX),
  )
  const issuing = about(
    'identity.signer',
    'name an authority under identity.ca, with its key, or leave identity.signer out',
    () => readSigningAuthority({ cert, key }, anchors, nowMs),
  )
  return { issuing, caPem: certificatesPem(anchors), leaf: readLeaf(config, isHalfFormed, nowMs) }
}

function readLeaf(
  { id, trustDomain, identity }: ControllerConfig,
  isHalfFormed: boolean,
  nowMs: number,
): CertificateWithKey | null {
  const { cert, key, ca } = identity
  const [hasCert, hasKey] = [existsSync(cert), existsSync(key)]
  if (!hasCert && (!hasKey || isHalfFormed)) return null
  const remedy = `put a valid pair there, or move ${cert} and ${key} away to create new ones`
  return about('identity.cert and identity.key', remedy, () => {
    const owner = { id, trustDomain, publicKeySha256: null }
    const set = readIdentitySet({ cert, key, ca }, owner, nowMs)
    return { certificatePem: set.certificatePem, privateKeyPem: set.privateKeyPem }
  })
}

function about<T>(subject: string, remedy: string, step: () => T): T {
  try {
    return step()
  } catch (error) {
    if (!(error instanceof CertificateError || error instanceof SecretFileError)) throw error
    throw new CommandFailure(EXIT_FAILED, `${subject}: ${error.message}; ${remedy}`, error)
  }
}
