import { createPublicKey, generateKeyPairSync, type webcrypto } from 'node:crypto'
import { isIP } from 'node:net'

import { CertificateError, parsePrivateKey } from '../certificate.ts'
import { CERTIFICATE_REQUEST_CHARACTERS_MAX } from '../pem.ts'
import { parsePublicKey, spkiSha256 } from '../public-key.ts'
import { controllerSpiffeId } from '../spiffe.ts'
import type { JsonGeneralNames, Pkcs10CertificateRequest } from './x509.ts'

const HASHES: Readonly<Record<string, string>> = {
  'P-256': 'SHA-256',
  'P-384': 'SHA-384',
}

export type KeyKind = 'ec' | 'rsa'
const RSA_BITS = 3072

/**
 * Generates an EC P-256 key, or an RSA key of 3,072 bits. The result is unencrypted PKCS #8; write
 * it only to files of mode 0600.
 */
export function generatePrivateKeyPem(kind: KeyKind = 'ec'): string {
  const { privateKey } =
    kind === 'ec'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('rsa', { modulusLength: RSA_BITS })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

/**
 * Creates a PKCS #10 request (RFC 2986) in PEM; its signature proves possession of the key. The
 * only name in the request is the common name.
 */
export async function createCertificateRequest(options: {
  readonly privateKeyPem: string
  /** Id of the controller or identity. */
  readonly id: string
}): Promise<string> {
  const { Pkcs10CertificateRequestGenerator } = await import('./x509.ts')
  const keys = importKeyPair(options.privateKeyPem)
  const request = await Pkcs10CertificateRequestGenerator.create({
    name: [{ CN: [options.id] }],
    keys,
    signingAlgorithm: keys.algorithm,
  })
  return `${request.toString('pem').trim()}\n`
}

/**
 * Creates a controller's certificate request (PKCS #10, PEM) for an external authority. The request
 * contains all names and extensions that the certificate needs, so the authority only has to copy
 * them and sign.
 */
export async function createControllerRequest(options: {
  readonly privateKeyPem: string
  readonly id: string
  readonly trustDomain: string
  /** DNS names and IP addresses. */
  readonly hosts: readonly string[]
}): Promise<string> {
  const x509 = await import('./x509.ts')
  const { ExtendedKeyUsage, KeyUsageFlags } = x509
  const { id, trustDomain, hosts } = options
  const keys = importKeyPair(options.privateKeyPem)
  const names: JsonGeneralNames = [
    { type: 'url', value: controllerSpiffeId(trustDomain, id) },
    ...hosts.map((value) =>
      isIP(value) === 0 ? { type: 'dns' as const, value } : { type: 'ip' as const, value },
    ),
  ]
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: [{ CN: [id] }],
    keys,
    signingAlgorithm: keys.algorithm,
    extensions: [
      new x509.SubjectAlternativeNameExtension(names),
      new x509.KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([
        ExtendedKeyUsage.serverAuth,
        ExtendedKeyUsage.clientAuth,
      ]),
    ],
  })
  return `${request.toString('pem').trim()}\n`
}

/**
 * Key pair of a PEM private key, as a Web Crypto key pair, which @peculiar/x509 needs.
 * @throws {CertificateError}
 */
export function importKeyPair(privateKeyPem: string): webcrypto.CryptoKeyPair & {
  readonly algorithm: webcrypto.EcdsaParams | webcrypto.Algorithm
} {
  const privateKey = parsePrivateKey(privateKeyPem)
  const publicKey = createPublicKey(privateKey)
  parsePublicKey(publicKey.export({ type: 'spki', format: 'der' }))
  const { crv } = publicKey.export({ format: 'jwk' })
  const isRsa = crv === undefined
  const named = isRsa
    ? { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
    : { name: 'ECDSA', namedCurve: crv }
  return {
    privateKey: privateKey.toCryptoKey(named, false, ['sign']),
    publicKey: publicKey.toCryptoKey(named, true, ['verify']),
    algorithm: isRsa ? named : { name: 'ECDSA', hash: HASHES[crv] ?? 'SHA-256' },
  }
}

export interface CertificateRequest {
  /** null when the subject has no common name or more than one. */
  readonly commonName: string | null
  /** DER of the SubjectPublicKeyInfo. */
  readonly publicKeySpki: Uint8Array
  /** SHA-256 of the SubjectPublicKeyInfo, 32 bytes. */
  readonly publicKeySha256: Uint8Array
}

const PEM_BLOCK =
  /^\s*-----BEGIN (NEW )?CERTIFICATE REQUEST-----[A-Za-z0-9+/=\s]+-----END (NEW )?CERTIFICATE REQUEST-----\s*$/

/**
 * Reads an untrusted request: limits its size, verifies its signature and checks the kind of its
 * key. Requested extensions are ignored, because the issuing authority determines the content of a
 * certificate.
 * @throws {CertificateError} `unreadable`; `untrusted` when the signature was not made with the key
 * in the request.
 */
export async function parseCertificateRequest(pem: string): Promise<CertificateRequest> {
  if (pem.length > CERTIFICATE_REQUEST_CHARACTERS_MAX || !PEM_BLOCK.test(pem)) {
    throw new CertificateError('unreadable', 'not one certificate request in PEM')
  }
  const x509 = await import('./x509.ts')
  let request: Pkcs10CertificateRequest
  let publicKeySpki: Uint8Array
  let commonNames: readonly string[]
  try {
    request = new x509.Pkcs10CertificateRequest(pem.trim())
    publicKeySpki = new Uint8Array(request.publicKey.rawData)
    commonNames = request.subjectName.getField('CN')
  } catch (error) {
    throw new CertificateError('unreadable', 'not a readable certificate request', error)
  }
  parsePublicKey(publicKeySpki)
  const isSigned = await request.verify().catch(() => false)
  if (!isSigned) {
    throw new CertificateError('untrusted', 'the request is not signed by the key that is in it')
  }
  return {
    commonName: commonNames.length === 1 ? (commonNames[0] ?? null) : null,
    publicKeySpki,
    publicKeySha256: spkiSha256(publicKeySpki),
  }
}
