import { hash, X509Certificate } from 'node:crypto'

/**
 * Numbers in OpenZiti's data model: two purposes of a key, and the format of a certificate in DER.
 */
const SIGNS_TOKENS = 0
const SIGNS_CERTIFICATES_OF_CLIENTS = 1
const CERTIFICATE_DER = 0

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

export interface PublicKeyValue {
  readonly data: Uint8Array
  /** SHA-1 of `data` in hex, the key ID in token headers. */
  readonly kid: string
  readonly usages: number[]
  readonly format: number
}

/** Certificates that routers use to verify clients and their tokens. */
export interface TrustedCertificates {
  /**
   * Certificate of each controller, PEM; the controller signs tokens with the certificate's key.
   */
  readonly controllers: readonly string[]
  /** Trust anchors of the network; each PEM string may contain several certificates. */
  readonly anchors: readonly string[]
}

/**
 * The public keys of the controllers' leaf certificates and of the anchors, each once; skips
 * certificates that cannot be parsed.
 */
export function trustedPublicKeys({ controllers, anchors }: TrustedCertificates): PublicKeyValue[] {
  const found = new Map<string, PublicKeyValue>()
  const add = (pem: string, usages: number[]): void => {
    const key = keyOf(pem, usages)
    if (key !== null && !found.has(key.kid)) found.set(key.kid, key)
  }
  for (const pem of controllers) add(firstOf(pem), [SIGNS_TOKENS, SIGNS_CERTIFICATES_OF_CLIENTS])
  for (const pem of anchors.flatMap((text) => text.match(CERTIFICATE) ?? [])) {
    add(pem, [SIGNS_CERTIFICATES_OF_CLIENTS])
  }
  return [...found.values()]
}

/** Key of a CA that an operator added, from the first certificate of the PEM. */
export function authorityPublicKey(certPem: string): PublicKeyValue | null {
  return keyOf(firstOf(certPem), [SIGNS_CERTIFICATES_OF_CLIENTS])
}

function firstOf(pem: string): string {
  return pem.match(CERTIFICATE)?.[0] ?? ''
}

function keyOf(pem: string, usages: number[]): PublicKeyValue | null {
  try {
    const data = new Uint8Array(new X509Certificate(pem).raw)
    return { data, kid: hash('sha1', data), usages, format: CERTIFICATE_DER }
  } catch {
    return null
  }
}
