/**
 * The one door to @peculiar/x509, which loads only after the metadata functions it needs. Types
 * aside, it is imported by those functions that issue or ask for a certificate: a controller that
 * starts does neither, and loading it takes a tenth of a second and six megabytes.
 */
import 'reflect-metadata'

export {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PublicKey,
  Pkcs10CertificateRequest,
  Pkcs10CertificateRequestGenerator,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509'
export type { Extension, JsonGeneralNames, JsonName, Name } from '@peculiar/x509'
