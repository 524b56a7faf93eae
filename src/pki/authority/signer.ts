import { type CertifiedKey, signingAlgorithmOf } from './authority.ts'
import {
  type Certificate,
  CertificateError,
  checkChain,
  checkKeyMatches,
  issuingPath,
  parseCertificates,
  parsePrivateKey,
} from '../certificate.ts'
import { keyUsageBit, keyUsesOf } from '../asn1/extensions.ts'
import { pemOf, readCertificates } from '../verify/identity-files.ts'
import { readSecretFile } from '../key-file.ts'

/**
 * An authority that is to sign leaves for a cluster, whoever made it: it may, its key is its own,
 * and every member that trusts `anchors` will accept what it signs.
 * @param options.signer its certificate first, then the authorities above it, without the root.
 * @throws {CertificateError} one sentence.
 */
export function checkSigner(options: {
  readonly signer: CertifiedKey
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
  signingAlgorithmOf(parsePrivateKey(options.signer.privateKeyPem))
  checkKeyMatches(own, options.signer.privateKeyPem)
  checkChain(chain, options.anchors, options.nowMs)
  checkPathLength(issuingPath(chain, options.anchors, options.nowMs))
}

/** Without the extension every use is allowed (RFC 5280, 4.2.1.3). */
function maySignCertificates({ contents }: Certificate): boolean {
  return keyUsesOf(contents.extensions)?.has(keyUsageBit.keyCertSign) !== false
}

/**
 * `checkChain` counts from a leaf; here the first one is an authority already, so each has one more
 * below it.
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
 * The authority that an operator supplies.
 * @param anchors the CA certificates of the cluster to be.
 * @throws {CertificateError | SecretFileError} one sentence, naming the file.
 */
export function readSigner(
  paths: { readonly cert: string; readonly key: string },
  anchors: readonly Certificate[],
  nowMs: number,
): CertifiedKey {
  const certificatePem = pemOf(readCertificates(paths.cert))
  const privateKeyPem = readSecretFile(paths.key).text
  const signer = { certificatePem, privateKeyPem }
  try {
    checkSigner({ signer, anchors, nowMs })
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error
    throw new CertificateError(error.fault, `${paths.cert}: ${error.message}`, error)
  }
  return signer
}
