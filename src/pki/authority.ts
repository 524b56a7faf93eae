import { KeyObject, randomBytes, webcrypto } from 'node:crypto'
import { isIP } from 'node:net'

import { assert } from '../lib/assert.ts'
import { isControllerId, isTrustDomain } from '../lib/names.ts'
import { parseCertificates, parsePrivateKey } from './certificate.ts'
import { parsePublicKey } from './public-key.ts'
import { controllerSpiffeId } from './spiffe.ts'
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from './x509.ts'
import type { Extension, JsonGeneralNames } from './x509.ts'

const DAY_MS = 24 * 60 * 60 * 1000
export const ROOT_LIFETIME_MS = 10 * 365 * DAY_MS
export const ISSUING_LIFETIME_MS = 5 * 365 * DAY_MS
export const LEAF_LIFETIME_MS = 365 * DAY_MS
/** Validity begins this much earlier, as the clocks of peers may be behind ours. */
export const BACKDATE_MS = 5 * 60 * 1000

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

/** A certificate with its private key. Both are PEM texts; the key is PKCS #8, unencrypted, and for 0600 files only. */
export interface CertifiedKey {
  /** Own certificate first, then the intermediates; never the root, so holders of just the root can verify. */
  readonly certificatePem: string
  readonly privateKeyPem: string
}

/** UTC ms. */
export interface Validity {
  readonly notBeforeMs: number
  readonly notAfterMs: number
}

export function validityFrom(nowMs: number, lifetimeMs: number): Validity {
  return { notBeforeMs: nowMs - BACKDATE_MS, notAfterMs: nowMs + lifetimeMs }
}

/** Self-signed, EC P-256: the anchor of a cluster. */
export async function createRootAuthority(options: {
  readonly commonName: string
  readonly validity: Validity
}): Promise<CertifiedKey> {
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

/** Signs leaves and nothing else (path length 0). */
export async function createIssuingAuthority(options: {
  readonly commonName: string
  readonly root: CertifiedKey
  readonly validity: Validity
}): Promise<CertifiedKey> {
  const keys = await generateKeys()
  const certificatePem = await sign({
    issuer: options.root,
    commonName: options.commonName,
    publicKey: keys.publicKey,
    validity: options.validity,
    extensions: await authorityExtensions(keys.publicKey, 0),
  })
  return { certificatePem, privateKeyPem: exportPrivateKey(keys.privateKey) }
}

export interface LeafOptions {
  readonly issuer: CertifiedKey
  readonly commonName: string
  readonly uris: readonly string[]
  /** DNS names and IP addresses, told apart by their form. */
  readonly hosts: readonly string[]
  readonly validity: Validity
  readonly usages: readonly ('server' | 'client')[]
}

/** Makes a key pair and a leaf for it. What the names mean is the caller's to judge. */
export async function issueLeaf(options: LeafOptions): Promise<CertifiedKey> {
  const keys = await generateKeys()
  return {
    certificatePem: await signLeaf(options, keys.publicKey),
    privateKeyPem: exportPrivateKey(keys.privateKey),
  }
}

/** @returns the chain: leaf first, then the intermediates. */
async function signLeaf(options: LeafOptions, publicKey: webcrypto.CryptoKey): Promise<string> {
  const names: JsonGeneralNames = [
    ...options.uris.map((value) => ({ type: 'url' as const, value })),
    ...options.hosts.map((value) =>
      isIP(value) === 0 ? { type: 'dns' as const, value } : { type: 'ip' as const, value },
    ),
  ]
  const extensions: Extension[] = [
    new BasicConstraintsExtension(false, undefined, true),
    new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
    new ExtendedKeyUsageExtension(
      options.usages.map((usage) =>
        usage === 'server' ? ExtendedKeyUsage.serverAuth : ExtendedKeyUsage.clientAuth,
      ),
    ),
    await SubjectKeyIdentifierExtension.create(publicKey),
  ]
  if (names.length > 0) extensions.push(new SubjectAlternativeNameExtension(names))
  const own = await sign({ ...options, publicKey, extensions })
  return own + intermediatesOf(options.issuer)
}

interface ControllerLeafOptions {
  readonly issuer: CertifiedKey
  readonly trustDomain: string
  readonly id: string
  /** Every host under which peers or clients reach it. */
  readonly hosts: readonly string[]
  readonly validity: Validity
}

/** A controller's leaf: server and client use, one SPIFFE id, common name = id. */
export async function issueControllerCertificate(
  options: ControllerLeafOptions,
): Promise<CertifiedKey> {
  return await issueLeaf(controllerLeaf(options))
}

/**
 * The same for a key that stays where it is.
 * @param options.publicKeySpki DER; the caller has had its owner prove that it holds the private key.
 * @returns the chain in PEM: leaf first, then the intermediates.
 * @throws {CertificateError} when the key is of no allowed type.
 */
export async function issueControllerCertificateFor(
  options: ControllerLeafOptions & { readonly publicKeySpki: Uint8Array },
): Promise<string> {
  const key = parsePublicKey(options.publicKeySpki)
  return await signLeaf(controllerLeaf(options), publicCryptoKeyOf(key))
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
  publicKey: webcrypto.CryptoKey,
  pathLength: number,
): Promise<Extension[]> {
  return [
    new BasicConstraintsExtension(true, pathLength, true),
    new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
    await SubjectKeyIdentifierExtension.create(publicKey),
  ]
}

async function sign(options: {
  readonly issuer: CertifiedKey
  readonly commonName: string
  readonly publicKey: webcrypto.CryptoKey
  readonly validity: Validity
  readonly extensions: readonly Extension[]
}): Promise<string> {
  const [issuer] = parseCertificates(options.issuer.certificatePem)
  const signer = new X509Certificate(Uint8Array.from(issuer.der))
  const certificate = await X509CertificateGenerator.create({
    serialNumber: newSerialNumber(),
    subject: [{ CN: [options.commonName] }],
    // The issuer's own name object, so that both read byte for byte the same.
    issuer: signer.subjectName,
    notBefore: new Date(options.validity.notBeforeMs),
    notAfter: new Date(options.validity.notAfterMs),
    publicKey: options.publicKey,
    signingKey: signingKeyOf(options.issuer),
    signingAlgorithm: ALGORITHM,
    extensions: [
      ...options.extensions,
      await AuthorityKeyIdentifierExtension.create(signer.publicKey),
    ],
  })
  return pemOf(certificate)
}

/** The chain below the root: the issuer's own certificate unless it is self-signed, and what it carries along. */
function intermediatesOf(issuer: CertifiedKey): string {
  return parseCertificates(issuer.certificatePem)
    .filter((certificate) => !certificate.native.checkIssued(certificate.native))
    .map((certificate) => certificate.pem)
    .join('')
}

function signingKeyOf(issuer: CertifiedKey): webcrypto.CryptoKey {
  const key = parsePrivateKey(issuer.privateKeyPem)
  return key.toCryptoKey({ name: ALGORITHM.name, namedCurve: ALGORITHM.namedCurve }, false, [
    'sign',
  ])
}

/** In the form that the generator of certificates takes; it only puts the key into the certificate. */
function publicCryptoKeyOf(key: KeyObject): webcrypto.CryptoKey {
  const { crv } = key.export({ format: 'jwk' })
  const algorithm =
    crv === undefined
      ? { name: 'RSASSA-PKCS1-v1_5', hash: ALGORITHM.hash }
      : { name: ALGORITHM.name, namedCurve: crv }
  return key.toCryptoKey(algorithm, true, ['verify'])
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

/** 127 random bits, positive and not zero in its first byte (RFC 5280, 4.1.2.2). */
function newSerialNumber(): string {
  const bytes = randomBytes(16)
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40
  return bytes.toString('hex')
}
