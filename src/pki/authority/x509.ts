/**
 * The only file that imports @peculiar/x509, because reflect-metadata must be loaded before it.
 * Except for types, this file is imported only inside functions that issue or request a
 * certificate: loading it takes 0.1 s and 6 MB, and a starting controller does not need it.
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
