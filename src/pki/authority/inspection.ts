import { type Certificate, includesCertificate } from '../certificate.ts'
import {
  certificateHealth,
  type CertificateKind,
  certificateLifetime,
  type ExpiryLevel,
} from './renewal.ts'

/** Certificate details that an operator sees. Times are UTC ms. */
export interface InspectedCertificate {
  readonly what: CertificateKind
  readonly subject: string
  readonly issuer: string
  /** SPIFFE ids and other URIs, DNS names, and IP addresses in the certificate. */
  readonly names: readonly string[]
  readonly notBeforeMs: number
  readonly notAfterMs: number
  readonly daysLeft: number
  readonly level: ExpiryLevel
  readonly isNotYetValid: boolean
  /**
   * Whether the certificate chains to one of the given CA certificates; null if none were given.
   */
  readonly isTrusted: boolean | null
  readonly sha256: string
}

/**
 * Inspects the leaf in a file first, then the authorities that issued it, then the remaining
 * certificates.
 * @param anchors if empty, trust is not evaluated.
 */
export function inspectChain(
  chain: readonly [Certificate, ...Certificate[]],
  anchors: readonly Certificate[],
  nowMs: number,
): InspectedCertificate[] {
  const health = certificateHealth({ chain, anchors, nowMs })
  const path = [health.leaf, ...health.authorities].map(({ certificate }) => certificate)
  const isTrusted = anchors.length === 0 ? null : health.isTrusted
  const others = chain.filter((certificate) => !includesCertificate(path, certificate))
  return [
    ...path.map((certificate) => inspectCertificate(certificate, nowMs, isTrusted)),
    ...others.map((certificate) =>
      inspectCertificate(certificate, nowMs, trustOf(certificate, anchors, nowMs)),
    ),
  ]
}

function trustOf(one: Certificate, anchors: readonly Certificate[], nowMs: number): boolean | null {
  if (anchors.length === 0) return null
  return certificateHealth({ chain: [one], anchors, nowMs }).isTrusted
}

/**
 * Details and warnings about one certificate for an operator.
 * @param isTrusted whether the certificate chains to a given CA; null if no CA was given.
 */
export function inspectCertificate(
  certificate: Certificate,
  nowMs: number,
  isTrusted: boolean | null,
): InspectedCertificate {
  const { kind, daysLeft, level, isNotYetValid } = certificateLifetime(certificate, nowMs)
  const { native, uris, dnsNames, ipAddresses, notBeforeMs, notAfterMs, sha256 } = certificate
  return {
    what: kind,
    subject: oneLine(native.subject),
    issuer: oneLine(native.issuer),
    names: [...uris, ...dnsNames, ...ipAddresses],
    notBeforeMs,
    notAfterMs,
    daysLeft,
    level,
    isNotYetValid,
    isTrusted,
    sha256,
  }
}

/**
 * Formats a name on one line, because Node prints each part on a separate line. For an empty name,
 * Node returns undefined.
 */
function oneLine(name: string | undefined): string {
  return (name ?? '').replaceAll('\n', ', ')
}
