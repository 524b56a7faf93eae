import { keyUsageBit, readKeyUsage } from '../asn1/extensions.ts'
import {
  type Certificate,
  CertificateError,
  includesCertificate,
  findIssuingPath,
} from '../certificate.ts'
import { verifyClientChain } from './client-chain.ts'
import { missingPurposes } from './key-purposes.ts'

/**
 * Checks that a controller's certificate allows digital signatures, and both client and server use:
 * a controller presents the same certificate for both. TLS checks each use separately, so with a
 * certificate for only one use, connections would work in only one direction.
 * @throws {CertificateError} `wrong-usage`.
 */
export function checkControllerUsage(certificate: Certificate): void {
  const missing = missingPurposes(certificate, ['serverAuth', 'clientAuth'])
  if (missing.length > 0) {
    throw new CertificateError(
      'wrong-usage',
      `its extended key usage lacks ${missing.join(' and ')}, and a controller is server and client of its peers`,
    )
  }
  if (readKeyUsage(certificate.contents.extensions)?.has(keyUsageBit.digitalSignature) !== false)
    return
  throw new CertificateError(
    'wrong-usage',
    'its key usage lacks digitalSignature, which TLS 1.3 needs',
  )
}

/**
 * Checks that the leaf chains to a self-signed root. OpenSSL accepts only a root as anchor: if the
 * CA file contained only an intermediate, all peers would reject each other.
 * @throws {CertificateError} `untrusted`.
 */
export function checkEndsAtRoot(
  chain: readonly [Certificate, ...Certificate[]],
  anchors: readonly Certificate[],
  nowMs: number,
): void {
  const top = findIssuingPath(chain, anchors, nowMs).at(-1) ?? chain[0]
  if (isSelfSigned(top)) return
  throw new CertificateError(
    'untrusted',
    `${JSON.stringify(top.commonName ?? '')} at the end of its chain is not self-signed, and peers verify up to a root`,
  )
}

/**
 * The chain, followed by those of the certificates that issued a certificate of the chain, judging
 * by their names. A CA file may contain more other intermediates than a chain may have.
 */
function withIssuersFrom(
  certificates: readonly Certificate[],
  chain: readonly [Certificate, ...Certificate[]],
): readonly [Certificate, ...Certificate[]] {
  const found: [Certificate, ...Certificate[]] = [...chain]
  // The loop also visits the certificates that it appends.
  for (const { contents } of found) {
    found.push(
      ...certificates.filter(
        (one) =>
          contents.issuer.equals(one.contents.subject.der) && !includesCertificate(found, one),
      ),
    )
  }
  return found
}

/**
 * Verifies the certificate path of a controller with the rules for identities and routers, which
 * are stricter than `checkCertificateChain`: they also cover name constraints, critical extensions
 * and kinds of keys.
 * @throws {CertificateError} `untrusted`.
 */
export function checkClientPath(
  [leaf, ...others]: readonly [Certificate, ...Certificate[]],
  anchors: readonly Certificate[],
  nowMs: number,
): void {
  // Does not use intermediates as anchors: the path would end at an intermediate, and the root's
  // constraints would not be checked.
  const intermediates = anchors.filter((one) => !isSelfSigned(one))
  const judged = verifyClientChain({
    chain: withIssuersFrom(intermediates, [leaf, ...others]),
    anchors: anchors.filter(isSelfSigned),
    nowMs,
    requiresClientAuth: true,
    leafTime: 'enforced',
  })
  if (!judged.ok) throw new CertificateError('untrusted', judged.reason)
}

function isSelfSigned({ native }: Certificate): boolean {
  return native.checkIssued(native)
}
