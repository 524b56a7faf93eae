import { existsSync, readFileSync } from 'node:fs'

import type { ControllerConfig } from '../config/options.ts'
import type { CertifiedKey } from '../pki/authority.ts'
import {
  CertificateError,
  checkChain,
  checkKeyMatches,
  leafControllerId,
  parseCertificates,
} from '../pki/certificate.ts'
import type { Certificate } from '../pki/certificate.ts'
import { pemOf, readCertificates } from '../pki/identity-files.ts'
import { readSecretFile, SecretFileError } from '../pki/key-file.ts'
import { readSigner } from '../pki/signer.ts'
import { CommandFailure, EXIT_FAILED, sentenceOf } from './failure.ts'
import type { SuppliedPki } from './form.ts'

/**
 * The authorities that an operator brings to `cluster init` (`identity.signer`, with `identity.ca`), and the first
 * controller's own certificate when that is there too.
 * @param isHalfFormed what stands at identity.cert and identity.key was made by an earlier attempt.
 * @returns null when none is configured: `init` then makes them. @throws {CommandFailure}
 */
export function readSuppliedPki(
  { identity, id, trustDomain }: ControllerConfig,
  isHalfFormed: boolean,
  nowMs: number,
): SuppliedPki | null {
  const { cert, key } = identity.signer
  if (cert === null || key === null) return null
  try {
    const anchors = readCertificates(identity.ca)
    const issuing = readSigner({ cert, key }, anchors, nowMs)
    const hasLeaf = !isHalfFormed && existsSync(identity.cert) && existsSync(identity.key)
    const leaf = hasLeaf ? readLeaf(identity, anchors, nowMs) : null
    if (
      leaf !== null &&
      leafControllerId(parseCertificates(leaf.certificatePem)[0], trustDomain) !== id
    ) {
      throw new CertificateError('wrong-identity', `${identity.cert} is for another controller`)
    }
    return { issuing, caPem: pemOf(anchors), leaf }
  } catch (error) {
    if (!(error instanceof CertificateError) && !(error instanceof SecretFileError)) throw error
    throw new CommandFailure(EXIT_FAILED, sentenceOf(error), error)
  }
}

function readLeaf(
  { cert, key }: ControllerConfig['identity'],
  anchors: readonly Certificate[],
  nowMs: number,
): CertifiedKey {
  const chain = parseCertificates(readFileSync(cert, 'utf8'))
  const privateKeyPem = readSecretFile(key).text
  checkKeyMatches(chain[0], privateKeyPem)
  checkChain(chain, anchors, nowMs)
  return { certificatePem: pemOf(chain), privateKeyPem }
}
