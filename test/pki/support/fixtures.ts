import { constants, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

import {
  type AlternativeNames,
  encodeAlternativeNames,
  generalNameTag,
  noAlternativeNames,
} from '../../../src/pki/asn1/alternative-names.ts'
import {
  encodeCertificate,
  encodeTbsCertificate,
} from '../../../src/pki/asn1/certificate-template.ts'
import {
  contextTag,
  derTag,
  type DerTree,
  readOnlyDerValue,
  encodeTagged,
  encodeUnsignedInteger,
} from '../../../src/pki/asn1/der.ts'
import { distinguishedNameFromCommonName } from '../../../src/pki/asn1/distinguished-name.ts'
import { encodeExtension } from '../../../src/pki/asn1/extensions.ts'
import {
  attributeOids,
  extensionOids,
  purposeOids,
} from '../../../src/pki/asn1/object-identifiers.ts'
import { signingAlgorithm } from '../../../src/pki/asn1/signature.ts'
import { type Certificate, parseCertificate } from '../../../src/pki/certificate.ts'
import { encodePemBlock } from '../../../src/pki/pem.ts'

// Creates certificates and requests with arbitrary content, and signs them directly with OpenSSL
// functions.

export const DAY_MS = 24 * 60 * 60 * 1000

export interface KeyPair {
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
}

export const newEcKey = (namedCurve = 'P-256'): KeyPair => generateKeyPairSync('ec', { namedCurve })
export const newRsaKey = (modulusLength = 2048): KeyPair =>
  generateKeyPairSync('rsa', { modulusLength })
export const newEdKey = (): KeyPair => generateKeyPairSync('ed25519')

export const spkiOf = ({ publicKey }: KeyPair): Buffer =>
  publicKey.export({ type: 'spki', format: 'der' })

/** A signature algorithm with its signing function. */
export interface Signing {
  readonly identifier: Buffer
  readonly sign: (bytes: Buffer, key: KeyObject) => Buffer
}

const sequence = (...values: readonly DerTree[]): Buffer => encodeTagged(derTag.sequence, ...values)

export function usual(key: KeyObject): Signing {
  if (key.asymmetricKeyType === 'ed25519') {
    const identifier = sequence('2b6570')
    return { identifier, sign: (bytes) => sign(null, bytes, key) }
  }
  const algorithm = signingAlgorithm(key)
  if (algorithm === null) throw new Error('no key of an authority')
  const { hash, identifier } = algorithm
  return { identifier, sign: (bytes) => sign(hash, bytes, key) }
}

/**
 * The algorithm of an EC or Ed25519 key with NULL as parameters, as mbed TLS 2 writes it for EC
 * keys.
 */
export function withNullParameters(keys: KeyPair): Signing {
  const { identifier, sign } = usual(keys.privateKey)
  const { contents } = readOnlyDerValue(identifier, derTag.sequence)
  return { identifier: sequence(contents, encodeTagged(derTag.null)), sign }
}

export const sha1WithRsa: Signing = {
  identifier: sequence('2a864886f70d010105', encodeTagged(derTag.null)),
  sign: (bytes, key) => sign('sha1', bytes, key),
}

/** @param hashOid hex; null omits it, which means SHA-1. */
export function rsaPss(hash: string, hashOid: string | null, saltLength = 32): Signing {
  const parts =
    hashOid === null
      ? []
      : [
          encodeTagged(contextTag(0), sequence(hashOid)),
          encodeTagged(contextTag(1), sequence('2a864886f70d010108', sequence(hashOid))),
          encodeTagged(contextTag(2), encodeUnsignedInteger(Buffer.from([saltLength]))),
        ]
  return {
    identifier: sequence('2a864886f70d01010a', sequence(...parts)),
    sign: (bytes, key) =>
      sign(hash, bytes, { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength }),
  }
}

export interface Made {
  readonly certificate: Certificate
  readonly keys: KeyPair
}

export interface CertificateOptions {
  readonly name: string | Buffer
  /** Issuer; absent: self-signed. */
  readonly issuer?: Made
  readonly keys?: KeyPair
  readonly nowMs?: number
  readonly notBeforeMs?: number
  readonly notAfterMs?: number
  readonly extensions?: readonly DerTree[]
  readonly signing?: Signing
  /** Issuer name to write; absent: the issuer's own name. */
  readonly issuerName?: Buffer
}

export const testNowMs = Date.UTC(2030, 0, 15)
let serial = 0

export function makeCertificate(options: CertificateOptions): Made {
  const { name, issuer, nowMs = testNowMs } = options
  const keys = options.keys ?? newEcKey()
  const signer = issuer?.keys ?? keys
  const signing = options.signing ?? usual(signer.privateKey)
  const subject = typeof name === 'string' ? distinguishedNameFromCommonName(name).der : name
  serial += 1
  const tbs = encodeTbsCertificate({
    serial: Buffer.from([1, serial >> 8, serial & 0xff]),
    signatureAlgorithm: signing.identifier,
    issuer: options.issuerName ?? issuer?.certificate.contents.subject.der ?? subject,
    notBeforeMs: options.notBeforeMs ?? nowMs - DAY_MS,
    notAfterMs: options.notAfterMs ?? nowMs + DAY_MS,
    subject,
    spki: spkiOf(keys),
    extensions: options.extensions ?? [],
  })
  const der = encodeCertificate(tbs, signing.identifier, signing.sign(tbs, signer.privateKey))
  return { certificate: parseCertificate(der), keys }
}

export function basicConstraints(isAuthority: boolean, pathLength?: number): DerTree {
  const parts: DerTree[] = isAuthority ? [encodeTagged(derTag.boolean, Buffer.from([0xff]))] : []
  if (pathLength !== undefined) parts.push(encodeUnsignedInteger(Buffer.from([pathLength])))
  return encodeExtension(extensionOids.basicConstraints, true, sequence(...parts))
}

/** @param bits first byte of the bit string. */
export function keyUsage(bits: number): DerTree {
  return encodeExtension(
    extensionOids.keyUsage,
    true,
    encodeTagged(derTag.bitString, Buffer.from([0, bits])),
  )
}

export function purposes(...names: readonly (keyof typeof purposeOids)[]): DerTree {
  const list = names.map((name) => purposeOids[name])
  return encodeExtension(extensionOids.extendedKeyUsage, false, sequence(...list))
}

export function alternativeNames(names: Partial<AlternativeNames>): DerTree {
  return encodeExtension(
    extensionOids.subjectAlternativeName,
    false,
    encodeAlternativeNames({ ...noAlternativeNames, ...names }),
  )
}

/**
 * Each entry is a type of name and the base of a subtree: a text, the bytes of an address and mask,
 * or a common name.
 */
export type SubtreeList = readonly (readonly [keyof typeof generalNameTag, string | Buffer])[]

export function nameConstraints(permitted: SubtreeList, excluded: SubtreeList = []): DerTree {
  const list = (number: number, subtrees: SubtreeList): Buffer[] => {
    if (subtrees.length === 0) return []
    const each = subtrees.map(([type, base]) =>
      sequence(
        encodeTagged(generalNameTag[type], typeof base === 'string' ? Buffer.from(base) : base),
      ),
    )
    return [encodeTagged(contextTag(number), ...each)]
  }
  const value = sequence(...list(0, permitted), ...list(1, excluded))
  return encodeExtension(extensionOids.nameConstraints, true, value)
}

/** A certificate authority with typical content. */
export function makeAuthority(
  name: string,
  options: Omit<CertificateOptions, 'name'> & { readonly pathLength?: number } = {},
): Made {
  const { pathLength, extensions = [], ...rest } = options
  return makeCertificate({
    name,
    ...rest,
    extensions: [basicConstraints(true, pathLength), keyUsage(0x06), ...extensions],
  })
}

export function makeClient(
  name: string | Buffer,
  issuer: Made,
  options: Omit<CertificateOptions, 'name' | 'issuer'> = {},
): Made {
  const { extensions = [], ...rest } = options
  return makeCertificate({
    name,
    issuer,
    ...rest,
    extensions: [purposes('clientAuth'), ...extensions],
  })
}

export interface RequestOptions {
  readonly keys?: KeyPair
  readonly subject?: Buffer
  readonly extensions?: readonly DerTree[]
  readonly signing?: Signing
  /** Complete attributes that replace the extensions. */
  readonly attributes?: readonly Buffer[]
  readonly spki?: Buffer
}

export function requestDer(options: RequestOptions = {}): Buffer {
  const keys = options.keys ?? newEcKey()
  const signing = options.signing ?? usual(keys.privateKey)
  const { extensions = [] } = options
  const attributes = options.attributes ?? [extensionRequest(extensions)]
  const info = sequence(
    encodeUnsignedInteger(Buffer.from([0])),
    options.subject ?? distinguishedNameFromCommonName('somebody').der,
    options.spki ?? spkiOf(keys),
    encodeTagged(contextTag(0), ...attributes),
  )
  const signature = signing.sign(info, keys.privateKey)
  const bits = encodeTagged(derTag.bitString, Buffer.from([0]), signature)
  return sequence(info, signing.identifier, bits)
}

export function extensionRequest(extensions: readonly DerTree[]): Buffer {
  return sequence(attributeOids.extensionRequest, encodeTagged(derTag.set, sequence(...extensions)))
}

export function requestPem(options: RequestOptions = {}): string {
  return encodePemBlock('CERTIFICATE REQUEST', requestDer(options))
}
