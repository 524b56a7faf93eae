import type { Ca } from '../../entities/kinds/ca.ts'
import {
  BUNDLE_CERTIFICATES_MAX,
  type Certificate,
  CertificateError,
  checkCertificateChain,
  parseCertificate,
  parseCertificates,
} from '../../pki/certificate.ts'
import type { IssuedCertificate } from '../../ports/certificate-issuer.ts'
import type { NetworkAuthorities } from './network-authorities.ts'
import type { StateView } from '../../ports/state-view.ts'

/**
 * The issuer of a client certificate: the network itself, or the registered third-party CA with
 * this id.
 */
type Issuer = { readonly by: 'network' } | { readonly by: 'ca'; readonly caId: string }

interface ParsedAuthorities {
  readonly anchors: string
  readonly below: string
  readonly certificates: readonly Certificate[]
}

/**
 * Parsed authorities, cached by source: they change a few times a year, and every log-in by
 * certificate needs them.
 */
const ofNetwork = new WeakMap<NetworkAuthorities, ParsedAuthorities>()

/** All CA certificates of the network: the anchors, then the authorities below them. */
export function networkAuthorities({
  authorities,
}: {
  readonly authorities: NetworkAuthorities
}): readonly Certificate[] {
  const [anchors, below] = [authorities.anchorsPem(), authorities.intermediatesPem()]
  const known = ofNetwork.get(authorities)
  if (known?.anchors === anchors && known.below === below) return known.certificates
  const certificatesMax = BUNDLE_CERTIFICATES_MAX
  const certificates = [
    ...parseCertificates(anchors, { certificatesMax }),
    ...(below === '' ? [] : parseCertificates(below, { certificatesMax })),
  ].filter(({ isAuthority }) => isAuthority)
  ofNetwork.set(authorities, { anchors, below, certificates })
  return certificates
}

/** Parsed certificates of CA records, cached as long as the record is unchanged. */
const parsed = new WeakMap<Ca, Certificate>()

/** The parsed certificate of a CA; parsed once per record. */
export function parseCaCertificate(ca: Ca): Certificate {
  const certificate = parsed.get(ca) ?? parseCertificate(ca.certPem)
  parsed.set(ca, certificate)
  return certificate
}

/**
 * Finds the CA that issued a certificate; null if neither the network nor a verified third-party CA
 * did. The CA must have been valid when the certificate's validity began.
 */
export function findIssuingCa(
  parts: { readonly authorities: NetworkAuthorities; readonly state: Pick<StateView, 'findAll'> },
  certificate: Certificate,
): Issuer | null {
  if (leadsTo(certificate, networkAuthorities(parts))) return { by: 'network' }
  for (const ca of parts.state.findAll('ca', 'isVerified', 'true')) {
    if (leadsTo(certificate, [parseCaCertificate(ca)])) return { by: 'ca', caId: ca.id }
  }
  return null
}

function leadsTo(certificate: Certificate, anchors: readonly Certificate[]): boolean {
  try {
    checkCertificateChain([certificate], anchors, certificate.notBeforeMs)
    return true
  } catch (error) {
    if (error instanceof CertificateError) return false
    throw error
  }
}

type CommandCertificate = Readonly<
  Record<'pem' | 'fingerprint' | 'publicKeyPrint' | 'caId', string>
>

/**
 * Returns the fields with which a command describes a certificate that this network issued; the CA
 * id is ''.
 */
export function toNetworkCommandCertificate({
  chainPem,
  fingerprint,
  publicKeyPrint,
}: IssuedCertificate): CommandCertificate {
  return { pem: chainPem, fingerprint, publicKeyPrint, caId: '' }
}

/**
 * Returns the fields with which a command describes a certificate that a third-party CA issued and
 * a client presented.
 */
export function toThirdPartyCommandCertificate(
  leaf: Certificate,
  caId: string,
): CommandCertificate {
  const publicKeyPrint = Buffer.from(leaf.publicKeySha256).toString('hex')
  return { pem: leaf.pem, fingerprint: leaf.sha1, publicKeyPrint, caId }
}
