import { fieldProblem, Problem, type ProblemCode } from '../../lib/problems.ts'
import { isAllowedKey, inspectKey, ALLOWED_KEYS_TEXT } from '../../pki/asn1/key-info.ts'
import { type Certificate, CertificateError, parseCertificate } from '../../pki/certificate.ts'
import { readPemBlocks } from '../../pki/pem.ts'

/**
 * Parses a text that must contain exactly one certificate and nothing else.
 * @throws {Problem} with the given code.
 */
export function parseSingleCertificate(pem: string, code: ProblemCode): Certificate {
  const blocks = readPemBlocks(pem, 2)
  const [block] = blocks
  if (block?.label !== 'CERTIFICATE' || blocks.length > 1) throw new Problem(code)
  return parseDerCertificate(block.der, code)
}

/**
 * Refuses a certificate with a weak key; the error names the request's field `field`. No chain with
 * this certificate would ever be accepted.
 * @throws {Problem}
 */
export function checkKeyStrength({ contents }: Certificate, field: string): void {
  const key = inspectKey(contents.spki)
  if (isAllowedKey(key)) return
  const found = key.kind === 'rsa' ? `; this one is RSA of ${key.bits} bits` : ''
  throw fieldProblem(field, `${field} must have a key of ${ALLOWED_KEYS_TEXT}${found}`)
}

/** @throws {Problem} with the given code, when the bytes are not a certificate. */
export function parseDerCertificate(der: Uint8Array, code: ProblemCode): Certificate {
  try {
    return parseCertificate(der)
  } catch (error) {
    if (error instanceof CertificateError) throw new Problem(code, { cause: error })
    throw error
  }
}
