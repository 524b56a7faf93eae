import { keyUsageBit, readKeyUsage, readKeyPurposes } from '../asn1/extensions.ts'
import { purposeOids } from '../asn1/object-identifiers.ts'
import {
  type Certificate,
  CertificateError,
  includesCertificate,
  issuingPath,
} from '../certificate.ts'
import { verifyClientChain } from './client-chain.ts'

/**
 * A controller presents the same certificate as client and as server. TLS checks each use
 * separately, so a controller whose certificate allows only one would work in one direction only.
 * @throws {CertificateError} `wrong-usage`.
 */
export function checkControllerUsage({ contents: { extensions } }: Certificate): void {
  const purposes = readKeyPurposes(extensions)
  const missing =
    purposes === null
      ? []
      : (['serverAuth', 'clientAuth'] as const).filter(
          (name) => !purposes.includes(purposeOids[name]),
        )
  if (missing.length > 0) {
    throw new CertificateError(
      'wrong-usage',
      `its extended key usage lacks ${missing.join(' and ')}, and a controller is server and client of its peers`,
    )
  }
  if (readKeyUsage(extensions)?.has(keyUsageBit.digitalSignature) !== false) return
  throw new CertificateError(
    'wrong-usage',
    'its key usage lacks digitalSignature, which TLS 1.3 needs',
  )
}

/**
 * OpenSSL verifies up to a root and does not accept an intermediate as anchor: with only an
 * intermediate in the bundle, every peer would refuse every other.
 * @throws {CertificateError} `untrusted`.
 */
export function checkEndsAtRoot(
  chain: readonly [Certificate, ...Certificate[]],
  anchors: readonly Certificate[],
  nowMs: number,
): void {
  const top = issuingPath(chain, anchors, nowMs).at(-1) ?? chain[0]
  if (isSelfSigned(top)) return
  throw new CertificateError(
    'untrusted',
    `${JSON.stringify(top.commonName ?? '')} at the end of its chain is not self-signed, and peers verify up to a root`,
  )
}

/**
 * Verifies a path like certificates of identities and routers, which is stricter than `checkChain`:
 * it also checks name constraints, critical extensions and kinds of keys.
 * @throws {CertificateError} `untrusted`.
 */
export function checkClientPath(
  [leaf, ...others]: readonly [Certificate, ...Certificate[]],
  anchors: readonly Certificate[],
  nowMs: number,
): void {
  // An intermediate among the anchors would end the path before the root's constraints are checked.
  const between = anchors.filter((one) => !isSelfSigned(one) && !includesCertificate(others, one))
  const judged = verifyClientChain({
    chain: [leaf, ...others, ...between],
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
