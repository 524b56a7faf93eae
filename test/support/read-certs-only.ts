// This package loads only after the metadata functions that it needs.
import 'reflect-metadata'
import { X509Certificates } from '@peculiar/x509'

/**
 * The certificates in a degenerate PKCS #7 in base64, as PEM. A library other than our writer reads
 * them.
 */
export function readCertsOnly(base64: string): string {
  const found = [...new X509Certificates(Buffer.from(base64, 'base64'))]
  return found.map((certificate) => certificate.toString('pem')).join('\n')
}
