import { hash, type KeyObject, randomBytes, sign } from 'node:crypto'

import {
  type AlternativeNames,
  encodeAlternativeNames,
  noAlternativeNames,
} from '../asn1/alternative-names.ts'
import { encodeCertificate, encodeTbsCertificate } from '../asn1/certificate-template.ts'
import {
  contextTag,
  derTag,
  type DerTree,
  type Oid,
  readOnlyDerValue,
  readInnerDerValues,
  readBitStringBytes,
} from '../asn1/der.ts'
import {
  distinguishedNameFromCommonName,
  type DistinguishedName,
  formatDistinguishedName,
} from '../asn1/distinguished-name.ts'
import { encodeExtension, readSubjectKeyId } from '../asn1/extensions.ts'
import { extensionOids, purposeOids } from '../asn1/object-identifiers.ts'
import {
  type HashAlgorithm,
  isSignedBy,
  readSignatureAlgorithm,
  signingAlgorithm,
} from '../asn1/signature.ts'
import {
  type Certificate,
  CertificateError,
  parseCertificates,
  parsePrivateKey,
} from '../certificate.ts'
import type { EnrollmentRequest } from './enrollment-request.ts'
import { encodePemBlock } from '../pem.ts'
import { selectRouterNames, normalizedHosts, type RouterNaming } from './router-names.ts'
import { identitySpiffeId, parseSpiffeId, routerSpiffeId, sessionSpiffeId } from '../spiffe.ts'
import { isoTime } from '../../lib/text/format-time.ts'

/**
 * Certificates become valid this long before they are issued, because clocks of verifiers may be
 * behind.
 */
const ENROLLED_BACKDATE_MS = 60 * 1000

/** An issuing authority, parsed once for many certificates. */
export interface CertificateSigner {
  readonly certificate: Certificate
  readonly key: KeyObject
  readonly hash: HashAlgorithm
  readonly signatureAlgorithm: Buffer
  /**
   * Content of the authority key identifier extension in the leaves that the authority issues.
   */
  readonly authorityKeyIdentifier: DerTree
  /** The authority's certificate and its intermediates, without the root. */
  readonly intermediatesPem: string
}

/** An issued certificate as it is stored and returned. */
export interface EnrolledCertificate {
  readonly leafPem: string
  /** Leaf certificate and intermediates in PEM, leaf first, without the root. */
  readonly chainPem: string
  /** SHA-1 of the leaf certificate in DER, lowercase hex. */
  readonly fingerprint: string
  /** SHA-256 of the SubjectPublicKeyInfo, lowercase hex. */
  readonly publicKeyPrint: string
  /** Subject as an RFC 4514 string. */
  readonly subject: string
  /** Host names and addresses in the certificate, each normalized. */
  readonly hosts: readonly string[]
  /** Start of the validity period, UTC ms. */
  readonly notBeforeMs: number
  readonly notAfterMs: number
}

/** Input that the issuing functions of all certificate kinds need. */
export interface EnrolledCertificateInput {
  readonly issuer: CertificateSigner
  readonly trustDomain: string
  readonly request: EnrollmentRequest
  readonly nowMs: number
  /** Lifetime from the current time; shorter if the issuer's certificate expires earlier. */
  readonly lifetimeMs: number
}

/**
 * @param authority the authority's own certificate first, then the certificates above it.
 * @throws {CertificateError} `unreadable`, `key-mismatch`.
 */
export function parseCertificateSigner(authority: {
  readonly certificatePem: string
  readonly privateKeyPem: string
}): CertificateSigner {
  const chain = parseCertificates(authority.certificatePem)
  const [certificate] = chain
  const key = parsePrivateKey(authority.privateKeyPem)
  const algorithm = signingAlgorithm(key)
  if (algorithm === null) {
    throw new CertificateError(
      'unreadable',
      'the key of an authority must be RSA or EC on P-256, P-384 or P-521',
    )
  }
  if (!certificate.native.checkPrivateKey(key)) {
    throw new CertificateError('key-mismatch', 'the private key does not belong to the authority')
  }
  return {
    certificate,
    key,
    hash: algorithm.hash,
    signatureAlgorithm: algorithm.identifier,
    authorityKeyIdentifier: encodeExtension(extensionOids.authorityKeyIdentifier, false, [
      derTag.sequence,
      [contextTag(0, false), keyIdentifierOf(certificate)],
    ]),
    intermediatesPem: chain
      .filter(({ contents }) => !contents.issuer.equals(contents.subject.der))
      .map(({ pem }) => pem)
      .join(''),
  }
}

/**
 * Copies the key identifier from the authority's certificate if it has one, because an external
 * authority may compute it differently.
 */
function keyIdentifierOf({ contents }: Certificate): Uint8Array {
  return readSubjectKeyId(contents.extensions) ?? subjectKeyIdentifier(contents.spki)
}

/** Computes a subject key identifier (RFC 5280, 4.2.1.2, method 1). */
function subjectKeyIdentifier(spki: Uint8Array): Buffer {
  const [, key] = readInnerDerValues(readOnlyDerValue(spki, derTag.sequence), 2)
  return hash('sha1', key === undefined ? spki : readBitStringBytes(key), 'buffer')
}

/**
 * Issues an identity's certificate with the subject of its request. The certificate contains the
 * identity's SPIFFE id instead of the requested names.
 * @throws {CertificateError} `wrong-identity`, `expired`.
 */
export function certifyIdentity(
  enrollment: EnrolledCertificateInput,
  identityId: string,
): EnrolledCertificate {
  return certify(enrollment, {
    subject: enrollment.request.subject,
    names: { ...noAlternativeNames, uris: [identityUri(enrollment, identityId)] },
    purpose: purposeOids.clientAuth,
  })
}

/**
 * Issues the next certificate of an identity. The next certificate keeps the DNS names, IP
 * addresses and email addresses of the current certificate only if this issuer signed the current
 * certificate; names signed by other issuers are not trusted.
 * @throws {CertificateError} `wrong-identity`, `expired`.
 */
export function extendIdentityCertificate(
  enrollment: EnrolledCertificateInput,
  identityId: string,
  current: Certificate,
): EnrolledCertificate {
  const { dnsNames, ipAddresses, emails } = isIssuedBy(current, enrollment.issuer)
    ? current.names
    : noAlternativeNames
  const uris = [identityUri(enrollment, identityId)]
  return certify(enrollment, {
    subject: enrollment.request.subject,
    names: { ...noAlternativeNames, dnsNames, ipAddresses, emails, uris },
    purpose: purposeOids.clientAuth,
  })
}

function isIssuedBy({ contents }: Certificate, { certificate }: CertificateSigner): boolean {
  if (!contents.issuer.equals(certificate.contents.subject.der)) return false
  const algorithm = readSignatureAlgorithm(contents.signatureAlgorithm)
  if (typeof algorithm === 'string') return false
  return isSignedBy(certificate.native.publicKey, algorithm, contents.tbs, contents.signature)
}

/**
 * Issues a certificate for one API session; it takes only the key from the request.
 * @throws {CertificateError} `wrong-identity`, `expired`.
 */
export function certifySession(
  enrollment: EnrolledCertificateInput,
  ids: {
    readonly identityId: string
    readonly apiSessionId: string
    readonly certificateId: string
  },
): EnrolledCertificate {
  const uri = checkedSpiffeId(sessionSpiffeId(enrollment.trustDomain, ids), 6)
  return certify(enrollment, {
    subject: distinguishedNameFromCommonName(ids.identityId),
    names: { ...noAlternativeNames, uris: [uri] },
    purpose: purposeOids.clientAuth,
  })
}

/**
 * Issues a router's client certificate. Its common name is the router's id, which the request must
 * contain; requested alternative names are ignored. The certificate contains no hosts, because only
 * server certificates need hosts.
 * @throws {CertificateError} `wrong-identity`, `expired`.
 */
export function certifyRouterClient(
  enrollment: EnrolledCertificateInput,
  routerId: string,
): EnrolledCertificate {
  const { request } = enrollment
  if (request.commonName !== routerId) {
    throw new CertificateError(
      'wrong-identity',
      `the common name of the client request must be the id of the router, ${JSON.stringify(routerId)}`,
    )
  }
  return certify(enrollment, {
    subject: request.subject,
    names: { ...noAlternativeNames, uris: [routerUri(enrollment, routerId)] },
    purpose: purposeOids.clientAuth,
  })
}

/**
 * Issues a router's server certificate. The certificate's common name is the router's id; the
 * common name in the request is ignored. The certificate contains the requested hosts that `naming`
 * allows.
 * @throws {CertificateError} `wrong-identity`, `expired`.
 */
export function certifyRouterServer(
  enrollment: EnrolledCertificateInput,
  routerId: string,
  naming: RouterNaming,
): EnrolledCertificate {
  const { request } = enrollment
  const own = routerUri(enrollment, routerId)
  return certify(enrollment, {
    // @guard router-certificate-names--common-name
    subject:
      request.commonName === routerId ? request.subject : distinguishedNameFromCommonName(routerId),
    names: selectRouterNames(request.names, naming, own),
    purpose: purposeOids.serverAuth,
  })
}

function routerUri({ trustDomain }: EnrolledCertificateInput, routerId: string): string {
  return checkedSpiffeId(routerSpiffeId(trustDomain, routerId), 2)
}

function identityUri({ trustDomain }: EnrolledCertificateInput, identityId: string): string {
  return checkedSpiffeId(identitySpiffeId(trustDomain, identityId), 2)
}

/**
 * Checks that a SPIFFE id is valid and has the expected number of path segments.
 * @param segments expected number of path segments: an id that contains a slash would give more
 * segments, and the SPIFFE id would name something else.
 */
function checkedSpiffeId(uri: string, segments: number): string {
  const found = parseSpiffeId(uri)?.path.split('/').length
  if (found === segments + 1) return uri
  throw new CertificateError(
    'wrong-identity',
    `${JSON.stringify(uri.slice(0, 256))} is no SPIFFE id: an id in it has characters that none can have`,
  )
}

interface Profile {
  readonly subject: DistinguishedName
  readonly names: AlternativeNames
  readonly purpose: Oid
}

/**
 * KeyUsage extension with digitalSignature, keyEncipherment and dataEncipherment, for every kind of
 * key, because OpenZiti clients expect these.
 */
const KEY_USAGE = encodeExtension(extensionOids.keyUsage, true, [
  derTag.bitString,
  Uint8Array.of(4, 0b1011_0000),
])
function certify(enrollment: EnrolledCertificateInput, profile: Profile): EnrolledCertificate {
  const { issuer, request } = enrollment
  const { notBeforeMs, notAfterMs } = validityOf(enrollment)
  const tbs = encodeTbsCertificate({
    serial: newSerial(),
    signatureAlgorithm: issuer.signatureAlgorithm,
    issuer: issuer.certificate.contents.subject.der,
    notBeforeMs,
    notAfterMs,
    subject: profile.subject.der,
    spki: request.publicKeySpki,
    extensions: extensionsOf(enrollment, profile),
  })
  const signature = sign(issuer.hash, tbs, issuer.key)
  const der = encodeCertificate(tbs, issuer.signatureAlgorithm, signature)
  const leafPem = encodePemBlock('CERTIFICATE', der)
  return {
    leafPem,
    chainPem: leafPem + issuer.intermediatesPem,
    fingerprint: hash('sha1', der, 'hex'),
    publicKeyPrint: hash('sha256', request.publicKeySpki, 'hex'),
    subject: formatDistinguishedName(profile.subject),
    hosts: normalizedHosts(profile.names),
    notBeforeMs,
    notAfterMs,
  }
}

function extensionsOf({ issuer, request }: EnrolledCertificateInput, profile: Profile): DerTree[] {
  const { names, subject, purpose } = profile
  const count = Object.values(names).reduce((sum, { length }) => sum + length, 0)
  const alternative = encodeExtension(
    extensionOids.subjectAlternativeName,
    // The extension must be critical if the subject is empty (RFC 5280, 4.2.1.6).
    subject.relativeNames.length === 0,
    encodeAlternativeNames(names),
  )
  return [
    KEY_USAGE,
    encodeExtension(extensionOids.extendedKeyUsage, false, [derTag.sequence, purpose]),
    encodeExtension(extensionOids.subjectKeyIdentifier, false, [
      derTag.octetString,
      subjectKeyIdentifier(request.publicKeySpki),
    ]),
    issuer.authorityKeyIdentifier,
    ...(count === 0 ? [] : [alternative]),
  ]
}

/**
 * The validity period in whole seconds, the precision of certificates.
 * @throws {CertificateError} `expired`
 */
function validityOf({ issuer, nowMs, lifetimeMs }: EnrolledCertificateInput): {
  readonly notBeforeMs: number
  readonly notAfterMs: number
} {
  const second = (ms: number): number => Math.floor(ms / 1000) * 1000
  const { notAfterMs: endMs } = issuer.certificate
  if (endMs <= nowMs) {
    throw new CertificateError('expired', `the issuing authority expired at ${isoTime(endMs)}`)
  }
  return {
    notBeforeMs: second(nowMs - ENROLLED_BACKDATE_MS),
    notAfterMs: Math.min(second(nowMs + lifetimeMs), endMs),
  }
}

const SERIAL_BYTES = 20
const SERIALS_DRAWN = 256
let serials = Buffer.alloc(0)

/**
 * A serial number of 159 random bits (RFC 5280, 4.1.2.2: at most 20 bytes, positive). Random bytes
 * are read for many serial numbers together, because each read is a system call.
 */
function newSerial(): Uint8Array {
  if (serials.length === 0) serials = randomBytes(SERIALS_DRAWN * SERIAL_BYTES)
  const serial = Uint8Array.from(serials.subarray(0, SERIAL_BYTES))
  serials = serials.subarray(SERIAL_BYTES)
  serial[0] = (serial[0] ?? 0) & 0x7f
  return serial
}
