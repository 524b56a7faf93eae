import { type CertificateWithKey, keySigningAlgorithm } from './authority.ts'
import {
  type Certificate,
  CertificateError,
  checkCertificateChain,
  checkKeyMatches,
  findIssuingPath,
  parseCertificates,
  parsePrivateKey,
} from '../certificate.ts'
import { keyUsageBit, readKeyUsage } from '../asn1/extensions.ts'
import { certificatesPem, readCertificates } from '../verify/identity-files.ts'
import { readSecretFile } from '../secret-file.ts'

/**
 * Checks an authority that will sign leaves for a cluster, generated or external: the authority may
 * sign, its key matches its certificate, and every member that trusts `anchors` will accept its
 * leaves.
 * @param options.signer the authority's certificate first, then the authorities above it, without
 * the root.
 * @throws {CertificateError} with a message of one sentence.
 */
export function checkSigningAuthority(options: {
  readonly signer: CertificateWithKey
  readonly anchors: readonly Certificate[]
  readonly nowMs: number
}): void {
  const chain = parseCertificates(options.signer.certificatePem)
  const [own] = chain
  if (!own.isAuthority || !maySignCertificates(own)) {
    throw new CertificateError(
      'wrong-identity',
      'not a CA certificate that may sign others (basic constraints CA, key usage keyCertSign)',
    )
  }
  keySigningAlgorithm(parsePrivateKey(options.signer.privateKeyPem))
  checkKeyMatches(own, options.signer.privateKeyPem)
  checkCertificateChain(chain, options.anchors, options.nowMs)
  checkPathLength(findIssuingPath(chain, options.anchors, options.nowMs))
}

/**
 * Whether the authority may sign certificates. Without the KeyUsage extension, every use is allowed
 * (RFC 5280, 4.2.1.3).
 */
function maySignCertificates({ contents }: Certificate): boolean {
  return readKeyUsage(contents.extensions)?.has(keyUsageBit.keyCertSign) !== false
}

/**
 * Checks the path lengths again, because `checkCertificateChain` counts them from a leaf. Here the
 * first certificate is an authority, so there is one more authority below each authority above it.
 */
function checkPathLength([, ...above]: readonly Certificate[]): void {
  for (const [at, authority] of above.entries()) {
    if (authority.pathLengthMax === null || authority.pathLengthMax > at) continue
    throw new CertificateError(
      'untrusted',
      `${JSON.stringify(authority.commonName ?? '')} above it allows fewer authorities below itself (path length ${authority.pathLengthMax})`,
    )
  }
}

/**
 * Reads and checks an authority supplied by an operator.
 * @param anchors the CA certificates of the future cluster.
 * @throws {CertificateError | SecretFileError} with one sentence that names the file.
 */
export function readSigningAuthority(
  paths: { readonly cert: string; readonly key: string },
  anchors: readonly Certificate[],
  nowMs: number,
): CertificateWithKey {
  const certificatePem = certificatesPem(readCertificates(paths.cert))
  const privateKeyPem = readSecretFile(paths.key).text
  const signer = { certificatePem, privateKeyPem }
  try {
    checkSigningAuthority({ signer, anchors, nowMs })
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error
    throw new CertificateError(error.fault, `${paths.cert}: ${error.message}`, error)
  }
  return signer
}
