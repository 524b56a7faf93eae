import { KeyObject, randomBytes, webcrypto } from 'node:crypto'
import { isIP } from 'node:net'

import { assert } from '../../lib/assert.ts'
import { isControllerId, isTrustDomain } from '../../lib/text/names.ts'
import { CertificateError, parseCertificates, parsePrivateKey } from '../certificate.ts'
import { parsePublicKey } from '../public-key.ts'
import { controllerSpiffeId } from '../spiffe.ts'
import type {
  AuthorityKeyIdentifierExtension,
  Extension,
  JsonGeneralNames,
  JsonName,
  Name,
  PublicKey,
  X509Certificate,
} from './x509.ts'

const DAY_MS = 24 * 60 * 60 * 1000
export const ROOT_LIFETIME_MS = 10 * 365 * DAY_MS
export const ISSUING_LIFETIME_MS = 5 * 365 * DAY_MS
export const LEAF_LIFETIME_MS = 365 * DAY_MS
/**
 * Certificates become valid this long before they are issued, because clocks of peers may be
 * behind.
 */
export const BACKDATE_MS = 5 * 60 * 1000

/**
 * Algorithm of the keys that this file generates. Keys that operators supply may be of other kinds;
 * see `keySigningAlgorithm`.
 */
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

/**
 * A certificate with its private key, as PEM strings. The key is not encrypted; write it only to
 * files of mode 0600.
 */
export interface CertificateWithKey {
  /**
   * Own certificate first, then the intermediates, so that a peer that has only the root can verify
   * the chain. The root is not included, except as the own certificate of a root.
   */
  readonly certificatePem: string
  readonly privateKeyPem: string
}

/** Validity period of a certificate, UTC ms. */
export interface ValidityPeriod {
  readonly notBeforeMs: number
  readonly notAfterMs: number
}

/** A validity period that begins a little before now, for verifiers whose clocks are behind. */
export function validityStartingAt(nowMs: number, lifetimeMs: number): ValidityPeriod {
  return { notBeforeMs: nowMs - BACKDATE_MS, notAfterMs: nowMs + lifetimeMs }
}

/** Creates a self-signed root certificate with an EC P-256 key: the trust anchor of a cluster. */
export async function createRootAuthority(options: {
  readonly commonName: string
  readonly validity: ValidityPeriod
}): Promise<CertificateWithKey> {
  const { X509CertificateGenerator } = await import('./x509.ts')
  const keys = await generateKeys()
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: newSerialNumber(),
    name: [{ CN: [options.commonName] }],
    notBefore: new Date(options.validity.notBeforeMs),
    notAfter: new Date(options.validity.notAfterMs),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: await authorityExtensions(keys.publicKey, 1),
  })
  return { certificatePem: pemOf(certificate), privateKeyPem: exportPrivateKey(keys.privateKey) }
}

/** Creates an issuing authority that can sign only leaves (path length 0). */
export async function createIssuingAuthority(options: {
  readonly commonName: string
  readonly root: CertificateWithKey
  readonly validity: ValidityPeriod
}): Promise<CertificateWithKey> {
  const keys = await generateKeys()
  const certificatePem = await sign({
    issuer: options.root,
    subject: [{ CN: [options.commonName] }],
    publicKey: keys.publicKey,
    validity: options.validity,
    extensions: await authorityExtensions(keys.publicKey, 0),
  })
  return { certificatePem, privateKeyPem: exportPrivateKey(keys.privateKey) }
}

/**
 * Renews the certificate of an issuing authority under the same name, so that leaves issued earlier
 * still name it as their issuer. The root signs it; the caller limits its validity to that of the
 * root.
 * @param options.publicKeySpki the key to keep, DER; null: generate a new key pair.
 * @returns its chain as PEM; `privateKeyPem` is null when the key was kept.
 */
export async function renewIssuingAuthority(options: {
  readonly root: CertificateWithKey
  /** Chain of the current certificate, PEM. */
  readonly presentPem: string
  readonly publicKeySpki: Uint8Array | null
  readonly validity: ValidityPeriod
}): Promise<{ readonly certificatePem: string; readonly privateKeyPem: string | null }> {
  const { X509Certificate } = await import('./x509.ts')
  const { publicKeySpki } = options
  const keys = publicKeySpki === null ? await generateKeys() : null
  const publicKey = keys?.publicKey ?? (await authorityKey(publicKeySpki))
  const [present] = parseCertificates(options.presentPem)
  const certificatePem = await sign({
    issuer: options.root,
    subject: new X509Certificate(Uint8Array.from(present.der)).subjectName,
    publicKey,
    validity: options.validity,
    extensions: await authorityExtensions(publicKey, 0),
  })
  return {
    certificatePem: certificatePem + intermediatesOf(options.root),
    privateKeyPem: keys === null ? null : exportPrivateKey(keys.privateKey),
  }
}

/** Contents of a leaf certificate. */
export interface LeafOptions {
  readonly issuer: CertificateWithKey
  readonly commonName: string
  readonly uris: readonly string[]
  /** DNS names and IP addresses, distinguished by their form. */
  readonly hosts: readonly string[]
  readonly validity: ValidityPeriod
  readonly usages: readonly ('server' | 'client')[]
}

/** Generates a key pair and issues a leaf for it. The caller must have validated the names. */
export async function issueLeaf(options: LeafOptions): Promise<CertificateWithKey> {
  const keys = await generateKeys()
  return {
    certificatePem: await signLeaf(options, keys.publicKey),
    privateKeyPem: exportPrivateKey(keys.privateKey),
  }
}

/**
 * Issues a leaf for a key whose private part stays with its owner.
 * @param publicKeySpki DER; the caller must have verified that the owner holds the private key.
 * @returns the chain in PEM: leaf first, then the intermediates.
 * @throws {CertificateError} when the kind of key is not allowed.
 */
export async function issueLeafForKey(
  options: LeafOptions,
  publicKeySpki: Uint8Array,
): Promise<string> {
  // Encodes the key again, so that all certificates with this key contain the same bytes: member
  // records pin the hash of these bytes.
  const { PublicKey } = await import('./x509.ts')
  const spki = parsePublicKey(publicKeySpki).export({ type: 'spki', format: 'der' })
  return await signLeaf(options, new PublicKey(Uint8Array.from(spki)))
}

async function signLeaf(
  options: LeafOptions,
  publicKey: webcrypto.CryptoKey | PublicKey,
): Promise<string> {
  const x509 = await import('./x509.ts')
  const { ExtendedKeyUsage, KeyUsageFlags } = x509
  const names: JsonGeneralNames = [
    ...options.uris.map((value) => ({ type: 'url' as const, value })),
    ...options.hosts.map((value) =>
      isIP(value) === 0 ? { type: 'dns' as const, value } : { type: 'ip' as const, value },
    ),
  ]
  const extensions: Extension[] = [
    new x509.BasicConstraintsExtension(false, undefined, true),
    new x509.KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
    new x509.ExtendedKeyUsageExtension(
      options.usages.map((usage) =>
        usage === 'server' ? ExtendedKeyUsage.serverAuth : ExtendedKeyUsage.clientAuth,
      ),
    ),
    await x509.SubjectKeyIdentifierExtension.create(publicKey),
  ]
  if (names.length > 0) extensions.push(new x509.SubjectAlternativeNameExtension(names))
  const subject = [{ CN: [options.commonName] }]
  return (
    (await sign({ ...options, subject, publicKey, extensions })) + intermediatesOf(options.issuer)
  )
}

interface ControllerLeafOptions {
  readonly issuer: CertificateWithKey
  readonly trustDomain: string
  readonly id: string
  /** Every host name and address at which peers or clients reach the controller. */
  readonly hosts: readonly string[]
  readonly validity: ValidityPeriod
}

/** A controller's leaf: server and client use, one SPIFFE id, common name = id. */
export async function issueControllerCertificate(
  options: ControllerLeafOptions,
): Promise<CertificateWithKey> {
  return await issueLeaf(controllerLeaf(options))
}

/**
 * Like `issueControllerCertificate`, for a key whose private part stays with its owner.
 * @param options.publicKeySpki DER; the caller must have verified that the owner holds the private
 * key.
 * @returns the chain in PEM: leaf first, then the intermediates.
 * @throws {CertificateError} when the kind of key is not allowed.
 */
export async function issueControllerCertificateForKey(
  options: ControllerLeafOptions & { readonly publicKeySpki: Uint8Array },
): Promise<string> {
  return await issueLeafForKey(controllerLeaf(options), options.publicKeySpki)
}

function controllerLeaf(options: ControllerLeafOptions): LeafOptions {
  assert(isTrustDomain(options.trustDomain), 'the trust domain is a valid one')
  assert(isControllerId(options.id), 'the controller id is a valid one')
  return {
    issuer: options.issuer,
    commonName: options.id,
    uris: [controllerSpiffeId(options.trustDomain, options.id)],
    hosts: options.hosts,
    validity: options.validity,
    usages: ['server', 'client'],
  }
}

async function authorityExtensions(
  publicKey: webcrypto.CryptoKey | PublicKey,
  pathLength: number,
): Promise<Extension[]> {
  const x509 = await import('./x509.ts')
  const { KeyUsageFlags } = x509
  return [
    new x509.BasicConstraintsExtension(true, pathLength, true),
    new x509.KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
    await x509.SubjectKeyIdentifierExtension.create(publicKey),
  ]
}

async function sign(options: {
  readonly issuer: CertificateWithKey
  readonly subject: JsonName | Name
  readonly publicKey: webcrypto.CryptoKey | PublicKey
  readonly validity: ValidityPeriod
  readonly extensions: readonly Extension[]
}): Promise<string> {
  const { X509Certificate, X509CertificateGenerator } = await import('./x509.ts')
  const [issuer] = parseCertificates(options.issuer.certificatePem)
  const signer = new X509Certificate(Uint8Array.from(issuer.der))
  const key = parsePrivateKey(options.issuer.privateKeyPem)
  const algorithm = keySigningAlgorithm(key)
  const certificate = await X509CertificateGenerator.create({
    serialNumber: newSerialNumber(),
    subject: options.subject,
    // Reuses the issuer's parsed name, so that the issuer name in the leaf and the issuer's subject
    // name are equal byte for byte.
    issuer: signer.subjectName,
    notBefore: new Date(options.validity.notBeforeMs),
    notAfter: new Date(options.validity.notAfterMs),
    publicKey: options.publicKey,
    signingKey: key.toCryptoKey(algorithm, false, ['sign']),
    signingAlgorithm: algorithm,
    extensions: [...options.extensions, await authorityKeyOf(signer)],
  })
  return pemOf(certificate)
}

/**
 * Copies the issuer's key identifier if its certificate has one, because an external authority may
 * compute key identifiers differently.
 */
async function authorityKeyOf(signer: X509Certificate): Promise<AuthorityKeyIdentifierExtension> {
  const x509 = await import('./x509.ts')
  const own = signer.getExtension(x509.SubjectKeyIdentifierExtension)
  if (own !== null) return new x509.AuthorityKeyIdentifierExtension(own.keyId)
  return await x509.AuthorityKeyIdentifierExtension.create(signer.publicKey)
}

/**
 * Algorithm for signing with a key: generated keys are EC P-256; operators' keys may also be P-384,
 * P-521 or RSA.
 * @throws {CertificateError} `unreadable` for any other kind.
 */
export function keySigningAlgorithm(key: KeyObject): {
  readonly name: string
  readonly hash: string
  readonly namedCurve?: string
} {
  const { asymmetricKeyType, asymmetricKeyDetails } = key
  if (asymmetricKeyType === 'rsa') return { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
  const curve = asymmetricKeyType === 'ec' ? asymmetricKeyDetails?.namedCurve : undefined
  switch (curve) {
    case 'prime256v1':
      return { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
    case 'secp384r1':
      return { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' }
    case 'secp521r1':
      return { name: 'ECDSA', namedCurve: 'P-521', hash: 'SHA-512' }
    default:
      throw new CertificateError(
        'unreadable',
        'the key of an authority must be RSA or EC on P-256, P-384 or P-521',
      )
  }
}

async function authorityKey(spki: Uint8Array | null): Promise<PublicKey> {
  assert(spki !== null, 'a key that is kept is given')
  const { PublicKey } = await import('./x509.ts')
  return new PublicKey(Uint8Array.from(spki))
}

/**
 * The certificates between a leaf and the root: the issuer's certificate unless it is self-signed,
 * and its intermediates.
 */
function intermediatesOf(issuer: CertificateWithKey): string {
  return parseCertificates(issuer.certificatePem)
    .filter((certificate) => !certificate.native.checkIssued(certificate.native))
    .map((certificate) => certificate.pem)
    .join('')
}

async function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return await webcrypto.subtle.generateKey(
    { name: ALGORITHM.name, namedCurve: ALGORITHM.namedCurve },
    true,
    ['sign', 'verify'],
  )
}

function exportPrivateKey(key: webcrypto.CryptoKey): string {
  return KeyObject.from(key).export({ type: 'pkcs8', format: 'pem' }).toString()
}

function pemOf(certificate: X509Certificate): string {
  return `${certificate.toString('pem').trim()}\n`
}

/**
 * A serial number of 126 random bits; it is positive, and its first byte is not zero (RFC 5280,
 * 4.1.2.2).
 */
function newSerialNumber(): string {
  const bytes = randomBytes(16)
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40
  return bytes.toString('hex')
}
