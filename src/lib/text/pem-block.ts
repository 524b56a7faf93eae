const FIRST_CERTIFICATE = /-----BEGIN CERTIFICATE-----([^-]*)-----END CERTIFICATE-----/

/** Bytes of the first certificate of a PEM text; null if it has none. */
export function firstOfPem(pem: string | null): Uint8Array | null {
  const [, base64] = FIRST_CERTIFICATE.exec(pem ?? '') ?? []
  return base64 === undefined ? null : Buffer.from(base64, 'base64')
}
