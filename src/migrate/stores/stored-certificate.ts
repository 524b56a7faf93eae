import { hash } from 'node:crypto'

import { readCertificate } from '../../pki/asn1/certificate-contents.ts'
import { DerError, derTag, readOnlyDerValue } from '../../pki/asn1/der.ts'
import { isNameWithin, readDistinguishedName } from '../../pki/asn1/distinguished-name.ts'
import { readAuthorityKeyId, readSubjectKeyId } from '../../pki/asn1/extensions.ts'
import { isAllowedKey, inspectKey } from '../../pki/asn1/key-info.ts'
import { isSignedBy, readSignatureAlgorithm } from '../../pki/asn1/signature.ts'
import {
  type Certificate,
  CHAIN_CERTIFICATES_MAX,
  parseCertificate,
  parseCertificates,
} from '../../pki/certificate.ts'
import { pemBlocks } from '../../pki/pem.ts'
import type { Conversion } from './conversion.ts'
import type { StoredRecord } from './stored-record.ts'

/** The parts of a certificate in the database that a migration uses. */
export type StoredCertificate = Pick<Certificate, 'der' | 'contents' | 'sha1' | 'publicKeySha256'>

/** A stored PEM string; certificates of authorities may follow the certificate. */
export interface CertificateText<C extends StoredCertificate = Certificate> {
  readonly pem: string
  readonly certificate: C
}

/**
 * Reads a certificate, if possible without Node's `X509Certificate`: only a full garbage collection
 * frees its memory outside of the heap, and a large network has 100,000 of them, each 8 KB.
 * @param sha1 SHA-1 that OpenZiti stored with the certificate.
 * @returns null, with a finding, if there is no readable certificate.
 */
export function readCertificateOfSha1(
  record: StoredRecord,
  name: string,
  pem: string,
  sha1: string,
): StoredCertificate | null {
  return recordedCertificate(pem, sha1) ?? parseStoredCertificate(record, name, pem)
}

/**
 * null if the bytes are not those of the stored SHA-1, which proves that OpenZiti could read them,
 * or if the key has another encoding than the one by which this program compares keys.
 */
function recordedCertificate(pem: string, stored: string): StoredCertificate | null {
  const [block] = pemBlocks(pem, CHAIN_CERTIFICATES_MAX)
  if (block?.label !== 'CERTIFICATE') return null
  const { der } = block
  const sha1 = hash('sha1', der)
  if (sha1 !== stored.toLowerCase()) return null
  try {
    const contents = readCertificate(der)
    if (!isAllowedKey(inspectKey(contents.spki))) return null
    return {
      der,
      contents,
      sha1,
      publicKeySha256: Uint8Array.from(hash('sha256', contents.spki, 'buffer')),
    }
  } catch (error) {
    if (error instanceof DerError) return null
    throw error
  }
}

/** null, with a finding, if the string contains no certificate. */
export function readCertificateText(
  record: StoredRecord,
  name: string,
  pem: string,
): CertificateText | null {
  const certificate = parseStoredCertificate(record, name, pem)
  return certificate === null ? null : { pem, certificate }
}

/**
 * The certificate that was issued to the record's owner and not used yet.
 * @param sha1Name field with the certificate's SHA-1.
 */
export function readNextCertificate(
  record: StoredRecord,
  sha1Name: string,
): CertificateText<StoredCertificate> | null {
  const name = 'unverifiedCertPem'
  const pem = record.text(name) ?? ''
  if (pem === '') return null
  const certificate = readCertificateOfSha1(record, name, pem, record.text(sha1Name) ?? '')
  return certificate === null ? null : { pem, certificate }
}

/** The first certificate in a PEM string; null, with a finding, if there is none. */
export function parseStoredCertificate(
  record: StoredRecord,
  name: string,
  pem: string,
): Certificate | null {
  try {
    return parseCertificates(pem)[0]
  } catch {
    record.note('lost', name, 'it is no readable certificate')
    return null
  }
}

/** Id of the third-party CA that signed the certificate; '' if none of them did. */
export function issuingAuthorityId(
  leaf: StoredCertificate,
  { authorities }: Pick<Conversion, 'authorities'>,
): string {
  for (const [id, authority] of authorities) {
    if (isNamedAsIssuer(leaf, authority) && hasSigned(leaf, authority)) return id
  }
  return ''
}

function hasSigned({ contents, der }: StoredCertificate, { native }: Certificate): boolean {
  const algorithm = readableOrNull(() => readSignatureAlgorithm(contents.signatureAlgorithm))
  // The certificate belongs to its CA even if a log-in with it is refused because of its signature.
  if (algorithm === null || typeof algorithm === 'string') {
    return parseCertificate(der).native.verify(native.publicKey)
  }
  return isSignedBy(native.publicKey, algorithm, contents.tbs, contents.signature)
}

/**
 * Counts a certificate of the network, and reports it if none of the network's authorities issued
 * it. Only names and key ids are compared, which is enough to detect files of different networks;
 * the controller verifies signatures.
 */
export function noteIssuer(
  record: StoredRecord,
  certificate: Pick<StoredCertificate, 'contents'>,
  { networkAuthorities, report }: Conversion,
): void {
  const { certificates } = report
  if (networkAuthorities.some((authority) => isNamedAsIssuer(certificate, authority))) {
    certificates.issued += 1
    return
  }
  certificates.foreign += 1
  const reason =
    'no authority in the configurations issued it; add the CA certificate of its issuer to identity.ca of the controllers, or enroll it again'
  record.note('decide', 'certPem', reason)
}

/** Whether a certificate names this authority, and this key of it, as its issuer. */
function isNamedAsIssuer(
  { contents }: Pick<StoredCertificate, 'contents'>,
  authority: Pick<StoredCertificate, 'contents'>,
): boolean {
  const { subject, extensions } = authority.contents
  const isNamed =
    contents.issuer.equals(subject.der) ||
    readableOrNull(() => {
      const issuer = readDistinguishedName(readOnlyDerValue(contents.issuer, derTag.sequence))
      return isNameWithin(issuer, subject) && isNameWithin(subject, issuer)
    }) === true
  if (!isNamed) return false
  const wanted = readableOrNull(() => readAuthorityKeyId(contents.extensions))
  const own = readableOrNull(() => readSubjectKeyId(extensions))
  return wanted === null || own === null || wanted.equals(own)
}

/** null if the bytes are invalid. */
function readableOrNull<T>(read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof DerError) return null
    throw error
  }
}
