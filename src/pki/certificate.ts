import { createHash, createPrivateKey, hash, type KeyObject, X509Certificate } from 'node:crypto'

import {
  type AlternativeNames,
  formatIp,
  noAlternativeNames,
  readAlternativeNames,
} from './asn1/alternative-names.ts'
import { type CertificateContents, readCertificate } from './asn1/certificate-contents.ts'
import { attributeTexts } from './asn1/distinguished-name.ts'
import { readBasicConstraints } from './asn1/extensions.ts'
import { attributeOids, extensionOids } from './asn1/object-identifiers.ts'
import {
  controllerIdFromSpiffe,
  parseSpiffeId,
  routerIdFromSpiffe,
  type SpiffeId,
} from './spiffe.ts'
import { isoTime } from '../lib/text/format-time.ts'

/** Maximum bytes of a file with certificates in PEM, and maximum characters of such a text. */
export const PEM_BYTES_MAX = 1024 * 1024
/** Maximum certificates in one chain, including the leaf. */
export const CHAIN_CERTIFICATES_MAX = 16
/** Maximum certificates in one file of CA certificates. */
export const BUNDLE_CERTIFICATES_MAX = 256
const CERTIFICATE_BYTES_MAX = 64 * 1024
export const ALTERNATIVE_NAMES_MAX = 256

export type CertificateFault =
  | 'unreadable'
  | 'expired'
  | 'not-yet-valid'
  | 'key-mismatch'
  | 'wrong-identity'
  | 'wrong-usage'
  | 'untrusted'

/** The message is one sentence for an operator; code must use `fault` instead. */
export class CertificateError extends Error {
  override readonly name = 'CertificateError'
  readonly fault: CertificateFault

  constructor(fault: CertificateFault, message: string, cause?: unknown) {
    super(message, { cause })
    this.fault = fault
  }
}

/**
 * A parsed certificate. The names come from its DER extension, not from the text that Node prints.
 */
export interface Certificate {
  readonly der: Uint8Array
  readonly pem: string
  /** Common name of the subject; null when the subject has none or more than one. */
  readonly commonName: string | null
  /** All common names, in the order of the subject. */
  readonly commonNames: readonly string[]
  readonly uris: readonly string[]
  readonly emails: readonly string[]
  readonly dnsNames: readonly string[]
  readonly ipAddresses: readonly string[]
  /** All alternative names, including those in the lists above. */
  readonly names: AlternativeNames
  readonly contents: CertificateContents
  readonly isAuthority: boolean
  /** Maximum number of authorities between this certificate and a leaf; null: no limit. */
  readonly pathLengthMax: number | null
  readonly notBeforeMs: number
  readonly notAfterMs: number
  /** SHA-256 of the SubjectPublicKeyInfo in DER, 32 bytes; member records pin it. */
  readonly publicKeySha256: Uint8Array
  /** SHA-1 of the certificate in DER, lowercase hex without colons. */
  readonly sha1: string
  readonly sha256: string
  readonly native: X509Certificate
}

/** @throws {CertificateError} `unreadable`. */
export function parseCertificate(input: Uint8Array | string): Certificate {
  if (input.length > (typeof input === 'string' ? PEM_BYTES_MAX : CERTIFICATE_BYTES_MAX)) {
    throw new CertificateError('unreadable', 'the certificate is larger than this program reads')
  }
  try {
    const native = new X509Certificate(input)
    const der = Uint8Array.from(native.raw)
    if (der.length > CERTIFICATE_BYTES_MAX) throw new RangeError('too many bytes')
    return withLazyForms({
      der,
      ...parsedOf(der),
      isAuthority: native.ca,
      notBeforeMs: native.validFromDate.getTime(),
      notAfterMs: native.validToDate.getTime(),
      sha1: hash('sha1', der),
      sha256: hash('sha256', der),
      native,
      // Decodes the key immediately, because a certificate with an undecodable key counts as
      // unreadable.
      publicKey: native.publicKey,
    })
  } catch (error) {
    // Replaces the library's message, because its messages for damaged certificates differ between
    // releases.
    throw new CertificateError('unreadable', 'not a readable X.509 certificate', error)
  }
}

type Parsed = Pick<
  Certificate,
  | 'commonName'
  | 'commonNames'
  | 'uris'
  | 'emails'
  | 'dnsNames'
  | 'ipAddresses'
  | 'names'
  | 'contents'
  | 'pathLengthMax'
>

/** @throws {DerError} when an extension is invalid, repeated or too large. */
function parsedOf(der: Uint8Array): Parsed {
  const contents = readCertificate(der)
  const alternative = contents.extensions.get(extensionOids.subjectAlternativeName)
  const names =
    alternative === undefined
      ? noAlternativeNames
      : readAlternativeNames(alternative.value, ALTERNATIVE_NAMES_MAX)
  const commonNames = attributeTexts(contents.subject, attributeOids.commonName)
  return {
    commonName: commonNames.length === 1 ? (commonNames[0] ?? null) : null,
    commonNames,
    uris: names.uris,
    emails: names.emails,
    dnsNames: names.dnsNames,
    ipAddresses: names.ipAddresses.map(formatIp),
    names,
    contents,
    pathLengthMax: readBasicConstraints(contents.extensions).pathLengthMax,
  }
}

/**
 * Computes some fields only at their first use, because few callers need them and they take much of
 * the parsing time. Clients present a certificate with every connection.
 */
function withLazyForms({
  publicKey,
  ...parsed
}: Omit<Certificate, 'pem' | 'publicKeySha256'> & {
  readonly publicKey: KeyObject
}): Certificate {
  let pem: string | undefined
  let publicKeySha256: Uint8Array | undefined
  return {
    ...parsed,
    get pem() {
      return (pem ??= parsed.native.toString())
    },
    get publicKeySha256() {
      return (publicKeySha256 ??= spkiSha256(publicKey))
    },
  }
}

/**
 * Like {@link parseCertificate}, for the certificate of a client. Clients present their certificate
 * with every connection, so the most recently used certificates are cached: equal bytes give the
 * same object while it is cached.
 * @throws {CertificateError} `unreadable`.
 */
export function parsePresentedLeaf(der: Uint8Array): Certificate {
  return presentedLeaves.parse(der)
}

/**
 * Like {@link parsePresentedLeaf}, for a CA certificate that a peer presents together with its own.
 * Many peers present the same CA certificate.
 * @throws {CertificateError} `unreadable`.
 */
export function parsePresentedAuthority(der: Uint8Array): Certificate {
  return presentedAuthorities.parse(der)
}

const PRESENTED_BYTES_MAX = 4096

/**
 * Parsed certificates by the SHA-256 of their bytes; evicts the least recently used ones. The
 * entries never become invalid, because a parsed certificate does not imply trust.
 */
class PresentedCertificates {
  readonly #known = new Map<string, Certificate>()
  readonly #countMax: number

  constructor(countMax: number) {
    this.#countMax = countMax
  }

  parse(der: Uint8Array): Certificate {
    if (der.length > PRESENTED_BYTES_MAX) return parseCertificate(der)
    const digest = hash('sha256', der)
    const certificate = this.#known.get(digest) ?? parseCertificate(der)
    // Moves the entry to the end, where the most recently used entries are.
    this.#known.delete(digest)
    this.#known.set(digest, certificate)
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= this.#countMax) break
      this.#known.delete(oldest)
    }
    return certificate
  }
}

const presentedAuthorities = new PresentedCertificates(64)
/** Client certificates; each needs about 10 KB. */
const presentedLeaves = new PresentedCertificates(512)

function spkiSha256(key: KeyObject): Uint8Array {
  const spki = key.export({ type: 'spki', format: 'der' })
  return Uint8Array.from(createHash('sha256').update(spki).digest())
}

const PEM_BLOCK = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]*-----END CERTIFICATE-----/g

/**
 * The certificates of a PEM string in order; other blocks and text between blocks are skipped.
 * @throws {CertificateError} `unreadable` when there is no certificate, too many, or an invalid
 * one.
 */
export function parseCertificates(
  pem: string,
  options: { readonly certificatesMax?: number } = {},
): [Certificate, ...Certificate[]] {
  const certificatesMax = options.certificatesMax ?? CHAIN_CERTIFICATES_MAX
  if (pem.length > PEM_BYTES_MAX) {
    throw new CertificateError('unreadable', `more than ${PEM_BYTES_MAX} bytes of PEM text`)
  }
  const blocks = pem.match(PEM_BLOCK) ?? []
  if (blocks.length > certificatesMax) {
    throw new CertificateError('unreadable', `more than ${certificatesMax} certificates`)
  }
  const [first, ...rest] = blocks.map((block) => parseCertificate(block))
  if (first === undefined) {
    throw new CertificateError('unreadable', 'no PEM certificate found')
  }
  return [first, ...rest]
}

/** Whether issuer and subject of the certificate are equal, as in a root. */
export function isSelfIssued({ native }: Certificate): boolean {
  return native.issuer === native.subject
}

/**
 * The SPIFFE id of a leaf (X.509-SVID section 2: exactly one URI name, and not a CA certificate).
 * @throws {CertificateError} `wrong-identity`.
 */
export function leafSpiffeId(leaf: Certificate): SpiffeId {
  if (leaf.isAuthority) {
    throw new CertificateError('wrong-identity', 'it is a CA certificate, not a leaf')
  }
  const [uri, ...others] = leaf.uris
  if (uri === undefined || others.length > 0) {
    const found = leaf.uris.length === 0 ? 'none' : String(leaf.uris.length)
    throw new CertificateError(
      'wrong-identity',
      `it must name exactly one SPIFFE id as URI alternative name, and has ${found}`,
    )
  }
  const id = parseSpiffeId(uri)
  if (id === null) {
    throw new CertificateError('wrong-identity', `${JSON.stringify(uri)} is no valid SPIFFE id`)
  }
  return id
}

/**
 * The id of the controller that a leaf identifies. If the subject has exactly one common name, it
 * must equal the id.
 * @throws {CertificateError} `wrong-identity`.
 */
export function leafControllerId(leaf: Certificate, trustDomain: string): string {
  const spiffeId = leafSpiffeId(leaf)
  const id = controllerIdFromSpiffe(spiffeId, trustDomain)
  if (id === null) {
    throw new CertificateError(
      'wrong-identity',
      `spiffe://${spiffeId.trustDomain}${spiffeId.path} is not a controller of spiffe://${trustDomain}`,
    )
  }
  if (leaf.commonName !== null && leaf.commonName !== id) {
    throw new CertificateError(
      'wrong-identity',
      `its common name ${JSON.stringify(leaf.commonName)} is not the controller ${id} of its SPIFFE id`,
    )
  }
  return id
}

/**
 * The id of the router that a leaf identifies: from its SPIFFE id, which the authority determines;
 * without a SPIFFE id, from the common name, as in certificates that an OpenZiti controller issued.
 * Null when the leaf contains neither, or a SPIFFE id that is not that of a router.
 */
export function leafRouterId(leaf: Certificate): string | null {
  const named = leaf.uris.filter((uri) => /^spiffe:/i.test(uri))
  // @guard link-of-another-router--spiffe
  if (named.length === 0) return leaf.commonName
  const id = named.length === 1 ? parseSpiffeId(named[0] ?? '') : null
  return id === null ? null : routerIdFromSpiffe(id)
}

/**
 * Checks that a server, whose name the client has verified, is a controller. It is an error if the
 * SPIFFE id names another kind of node. A certificate without a SPIFFE id is accepted, because an
 * operator may use another authority for the console.
 * @returns a clause that completes "it …"; null if there is no error.
 */
export function controllerCertificateError({ uris }: Certificate): string | null {
  const named = uris.filter((uri) => /^spiffe:/i.test(uri))
  if (named.length === 0) return null
  const id = named.length === 1 ? parseSpiffeId(named[0] ?? '') : null
  if (id !== null && controllerIdFromSpiffe(id, id.trustDomain) !== null) return null
  return `presented a certificate of ${JSON.stringify(named.join(' ').slice(0, 256))}, which is not a controller; nothing was sent`
}

/** @throws {CertificateError} `expired` or `not-yet-valid`. */
export function checkValidityTime(certificate: Certificate, nowMs: number): void {
  if (nowMs > certificate.notAfterMs) {
    throw new CertificateError('expired', `it expired at ${isoTime(certificate.notAfterMs)}`)
  }
  if (nowMs < certificate.notBeforeMs) {
    throw new CertificateError(
      'not-yet-valid',
      `it is not valid before ${isoTime(certificate.notBeforeMs)}, and this host's clock says ${isoTime(nowMs)}`,
    )
  }
}

/**
 * @throws {CertificateError} `unreadable` for an invalid key, `key-mismatch` for the key of another
 * certificate.
 */
export function checkKeyMatches(leaf: Certificate, privateKeyPem: string): void {
  if (!leaf.native.checkPrivateKey(parsePrivateKey(privateKeyPem))) {
    throw new CertificateError('key-mismatch', 'the private key does not belong to the certificate')
  }
}

/** @throws {CertificateError} `unreadable`; the message never contains a part of the key. */
export function parsePrivateKey(pem: string): KeyObject {
  try {
    return createPrivateKey({ key: pem, format: 'pem' })
  } catch {
    throw new CertificateError('unreadable', 'it holds no unencrypted PEM private key')
  }
}

/**
 * Verifies that the leaf chains to one of the anchors, checking names, signatures, CA flags and
 * validity times.
 * @param chain leaf first; intermediates in any order.
 * @throws {CertificateError} `untrusted`, `expired`, `not-yet-valid`.
 */
export function checkCertificateChain(
  chain: readonly [Certificate, ...Certificate[]],
  anchors: readonly Certificate[],
  nowMs: number,
): void {
  for (const certificate of findIssuingPath(chain, anchors, nowMs)) {
    checkValidityTime(certificate, nowMs)
    if (includesCertificate(anchors, certificate)) return
  }
  throw new CertificateError(
    'untrusted',
    `its chain does not lead to any of the ${anchors.length} CA certificates given`,
  )
}

/**
 * The path from the leaf to its issuer, to the issuer's issuer and so on, as far as the given
 * certificates allow; times are not checked. If several issuers have the same name and key, for
 * example after a renewal, the path prefers currently valid certificates, then trust anchors, then
 * certificates that expire last.
 */
export function findIssuingPath(
  chain: readonly [Certificate, ...Certificate[]],
  anchors: readonly Certificate[],
  nowMs: number,
): [Certificate, ...Certificate[]] {
  const authorities = [...anchors, ...chain.slice(1)].sort(
    (a, b) =>
      Number(isTimely(b, nowMs)) - Number(isTimely(a, nowMs)) ||
      Number(includesCertificate(anchors, b)) - Number(includesCertificate(anchors, a)) ||
      b.notAfterMs - a.notAfterMs,
  )
  const path: [Certificate, ...Certificate[]] = [chain[0]]
  let current: Certificate = chain[0]
  // Each step adds a certificate that is not in the path yet, so the loop ends even if authorities
  // have cross-signed each other.
  for (let depth = 0; depth < authorities.length; depth += 1) {
    const issuer = authorities.find(
      (authority) => !includesCertificate(path, authority) && hasIssued(authority, current, depth),
    )
    if (issuer === undefined) break
    path.push(issuer)
    current = issuer
  }
  return path
}

/** Whether the list contains the same certificate, byte for byte. */
export function includesCertificate(
  certificates: readonly Certificate[],
  one: Certificate,
): boolean {
  return certificates.some(({ sha256 }) => sha256 === one.sha256)
}

function isTimely({ notBeforeMs, notAfterMs }: Certificate, nowMs: number): boolean {
  return nowMs >= notBeforeMs && nowMs <= notAfterMs
}

/** @param depth number of authorities between `authority` and the leaf (RFC 5280, 4.2.1.9). */
function hasIssued(authority: Certificate, certificate: Certificate, depth: number): boolean {
  if (!authority.isAuthority || authority.sha256 === certificate.sha256) return false
  if (authority.pathLengthMax !== null && depth > authority.pathLengthMax) return false
  return (
    certificate.native.checkIssued(authority.native) &&
    certificate.native.verify(authority.native.publicKey)
  )
}
