import type { ProblemCode } from '../../lib/problems.ts'
import { Problem } from '../../lib/problems.ts'
import { CertificateError, parseCertificate } from '../../pki/certificate.ts'
import type { Certificate } from '../../pki/certificate.ts'
import { pemBlocks } from '../../pki/pem.ts'

/** Exactly one certificate and nothing else. @throws {Problem} with the code given. */
export function onlyCertificate(pem: string, code: ProblemCode): Certificate {
  const blocks = pemBlocks(pem, 2)
  const [block] = blocks
  if (block?.label !== 'CERTIFICATE' || blocks.length > 1) throw new Problem(code)
  return readDer(block.der, code)
}

/** @throws {Problem} with the code given, when the bytes are no certificate. */
export function readDer(der: Uint8Array, code: ProblemCode): Certificate {
  try {
    return parseCertificate(der)
  } catch (error) {
    if (error instanceof CertificateError) throw new Problem(code, { cause: error })
    throw error
  }
}
