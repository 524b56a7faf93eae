import { createPublicKey, type KeyObject } from 'node:crypto'

import {
  type AlternativeNames,
  noAlternativeNames,
  readAlternativeNames,
} from '../asn1/alternative-names.ts'
import {
  contextTag,
  DerError,
  DerReader,
  derTag,
  type DerValue,
  readDerOid,
  readOnlyDerValue,
  readInnerDerValues,
  readBitStringBytes,
} from '../asn1/der.ts'
import {
  type DistinguishedName,
  readDistinguishedName,
  attributeTexts,
} from '../asn1/distinguished-name.ts'
import {
  readBasicConstraints,
  type Extensions,
  keyUsageBit,
  readKeyUsage,
  readExtensions,
} from '../asn1/extensions.ts'
import { isAllowedKey, inspectKey, ALLOWED_KEYS_TEXT } from '../asn1/key-info.ts'
import { attributeOids, extensionOids } from '../asn1/object-identifiers.ts'
import { isSignedBy, readSignatureAlgorithm } from '../asn1/signature.ts'
import { CertificateError } from '../certificate.ts'
import { CERTIFICATE_REQUEST_CHARACTERS_MAX, encodePemBlock } from '../pem.ts'

/**
 * Maximum bytes of a request's subject in DER. `REQUEST_NAMES_MAX` limits the requested alternative
 * names.
 */
const REQUEST_SUBJECT_BYTES_MAX = 4 * 1024
const REQUEST_NAMES_MAX = 64
const ATTRIBUTES_MAX = 16

/**
 * An identity's or router's certificate request (PKCS #10, RFC 2986) that passed the checks common
 * to all requests.
 */
export interface EnrollmentRequest {
  readonly subject: DistinguishedName
  /** null when the subject has no common name or more than one. */
  readonly commonName: string | null
  /** Requested names; the issuing authority decides which of these names the certificate gets. */
  readonly names: AlternativeNames
  /** SubjectPublicKeyInfo in DER. A request that encodes the key in another form is rejected. */
  readonly publicKeySpki: Buffer
}

const PEM_BLOCK =
  /^\s*-----BEGIN ((?:NEW )?CERTIFICATE REQUEST)-----([A-Za-z0-9+/=\s]+)-----END \1-----\s*$/
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

/**
 * Reads an untrusted request. The request must be exactly one PEM block of limited size, contain a
 * key of an allowed kind (more kinds than for controllers), and be signed with that key.
 * @throws {CertificateError} `unreadable`; `untrusted` when the request is not signed with the key
 * in it; `wrong-identity` when it requests a CA certificate. The message is one sentence that may
 * be sent to the requester.
 */
export function readEnrollmentRequest(pem: string): EnrollmentRequest {
  const der = requestDer(pem)
  try {
    return readRequest(der)
  } catch (error) {
    if (!(error instanceof DerError)) throw error
    throw new CertificateError('unreadable', 'not a readable certificate request', error)
  }
}

function requestDer(pem: string): Buffer {
  const isBounded = pem.length <= CERTIFICATE_REQUEST_CHARACTERS_MAX
  const base64 = (isBounded ? PEM_BLOCK.exec(pem)?.[2] : undefined)?.replace(/\s+/g, '') ?? ''
  if (!BASE64.test(base64) || base64.length % 4 !== 0) {
    throw new CertificateError('unreadable', 'not exactly one certificate request in PEM')
  }
  return Buffer.from(base64, 'base64')
}

function readRequest(der: Buffer): EnrollmentRequest {
  const outer = new DerReader(readOnlyDerValue(der, derTag.sequence).contents)
  const info = outer.take(derTag.sequence)
  const signatureAlgorithm = outer.take(derTag.sequence).whole
  const signature = readBitStringBytes(outer.take(derTag.bitString))
  outer.end()
  const reader = new DerReader(info.contents)
  reader.take(derTag.integer)
  const subject = readSubject(reader.take(derTag.sequence))
  const publicKeySpki = reader.take(derTag.sequence).whole
  const attributes = reader.optional(contextTag(0))
  reader.end()
  const names = requestedNames(attributes)
  checkSignature({ publicKeySpki, signatureAlgorithm, signature, signed: info.whole })
  const commonNames = attributeTexts(subject, attributeOids.commonName)
  const commonName = commonNames.length === 1 ? (commonNames[0] ?? null) : null
  return { subject, commonName, names, publicKeySpki }
}

function readSubject(value: DerValue): DistinguishedName {
  if (value.whole.length <= REQUEST_SUBJECT_BYTES_MAX) return readDistinguishedName(value)
  throw new CertificateError(
    'unreadable',
    `its subject has more than ${REQUEST_SUBJECT_BYTES_MAX} bytes`,
  )
}

function requestedNames(attributes: DerValue | null): AlternativeNames {
  const extensions = attributes === null ? null : requestedExtensions(attributes)
  if (extensions === null) return noAlternativeNames
  const isForAuthority =
    readBasicConstraints(extensions).isAuthority ||
    readKeyUsage(extensions)?.has(keyUsageBit.keyCertSign) === true
  if (isForAuthority) {
    throw new CertificateError(
      'wrong-identity',
      'it asks for a CA certificate (basic constraints CA, or key usage keyCertSign)',
    )
  }
  const alternative = extensions.get(extensionOids.subjectAlternativeName)
  if (alternative === undefined) return noAlternativeNames
  return readAlternativeNames(alternative.value, REQUEST_NAMES_MAX)
}

/**
 * @returns null when the request contains no extensions.
 * @throws {DerError} also when it contains the extension request twice.
 */
function requestedExtensions(attributes: DerValue): Extensions | null {
  let found: Extensions | null = null
  for (const attribute of readInnerDerValues(attributes, ATTRIBUTES_MAX)) {
    if (attribute.tag !== derTag.sequence) throw new DerError('an attribute is a sequence')
    const reader = new DerReader(attribute.contents)
    const type = readDerOid(reader.next())
    const values = reader.take(derTag.set)
    reader.end()
    if (type !== attributeOids.extensionRequest) continue
    if (found !== null) throw new DerError('two requests for extensions')
    found = readExtensions(readOnlyDerValue(values.contents, derTag.sequence))
  }
  return found
}

function checkSignature(parts: {
  readonly publicKeySpki: Buffer
  readonly signatureAlgorithm: Buffer
  readonly signature: Buffer
  readonly signed: Buffer
}): void {
  const key = requestKey(parts.publicKeySpki)
  const algorithm = readSignatureAlgorithm(parts.signatureAlgorithm)
  if (typeof algorithm === 'string') {
    throw new CertificateError('untrusted', `the request is signed ${algorithm}`)
  }
  if (isSignedBy(key, algorithm, parts.signed, parts.signature)) return
  throw new CertificateError('untrusted', 'the request is not signed by the key that is in it')
}

function requestKey(spki: Buffer): KeyObject {
  if (!isAllowedKey(inspectKey(spki))) {
    throw new CertificateError('unreadable', `its key is of no kind allowed: ${ALLOWED_KEYS_TEXT}`)
  }
  try {
    // Uses PEM, because for DER, Node first tries every other kind of key, and the resulting
    // exceptions take as long as parsing the key itself.
    return createPublicKey(encodePemBlock('PUBLIC KEY', spki))
  } catch (error) {
    throw new CertificateError('unreadable', 'its public key can not be read', error)
  }
}
