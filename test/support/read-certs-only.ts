// It loads only after the metadata functions it needs.
import 'reflect-metadata'
import { X509Certificates } from '@peculiar/x509'

/**
 * The certificates of a degenerate PKCS #7 in base64, as another reader than our writer finds them:
 * PEM.
 */
export function readCertsOnly(base64: string): string {
  const found = [...new X509Certificates(Buffer.from(base64, 'base64'))]
  return found.map((certificate) => certificate.toString('pem')).join('\n')
}
