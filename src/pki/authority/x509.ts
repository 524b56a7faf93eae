/**
 * The only import of @peculiar/x509, which needs reflect-metadata loaded first. Apart from types,
 * only functions that issue or request a certificate import this file, lazily: a starting
 * controller does neither, and loading takes 0.1 s and 6 MB.
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
