import {
  type CertificateWithKey,
  createIssuingAuthority,
  createRootAuthority,
  issueLeaf,
  ISSUING_LIFETIME_MS,
  LEAF_LIFETIME_MS,
  ROOT_LIFETIME_MS,
  type ValidityPeriod,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import type { NetworkAuthorities } from '../../src/auth/certificates/network-authorities.ts'

/** The authorities of a network: a trust anchor, and an intermediate authority that signs. */
export interface TestAuthorities extends NetworkAuthorities {
  readonly root: CertificateWithKey
  readonly issuing: CertificateWithKey
}

/** A self-signed CA. */
export async function newCa(commonName: string, nowMs: number): Promise<CertificateWithKey> {
  return await createRootAuthority({
    commonName,
    validity: validityStartingAt(nowMs, ROOT_LIFETIME_MS),
  })
}

/** Authorities with the lifetimes of those that `cluster init` creates at that time. */
export async function networkAuthorities(nowMs: number): Promise<TestAuthorities> {
  const root = await newCa('network root', nowMs)
  const issuing = await createIssuingAuthority({
    commonName: 'network issuing',
    root,
    validity: validityStartingAt(nowMs, ISSUING_LIFETIME_MS),
  })
  return {
    root,
    issuing,
    anchorsPem: () => root.certificatePem,
    intermediatesPem: () => issuing.certificatePem,
  }
}

/** A client's certificate alone, without its issuers. */
export async function clientCertificate(
  issuer: CertificateWithKey,
  commonName: string,
  validity: ValidityPeriod | number,
): Promise<string> {
  const { certificatePem } = await issueLeaf({
    issuer,
    commonName,
    uris: [],
    hosts: [],
    usages: ['client'],
    validity:
      typeof validity === 'number' ? validityStartingAt(validity, LEAF_LIFETIME_MS) : validity,
  })
  return parseCertificates(certificatePem)[0].pem
}
