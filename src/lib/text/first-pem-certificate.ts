const FIRST_CERTIFICATE = /-----BEGIN CERTIFICATE-----([^-]*)-----END CERTIFICATE-----/

/** DER bytes of the first certificate in a PEM string; null if there is no certificate. */
export function firstPemCertificate(pem: string | null): Uint8Array | null {
  const [, base64] = FIRST_CERTIFICATE.exec(pem ?? '') ?? []
  return base64 === undefined ? null : Buffer.from(base64, 'base64')
}
