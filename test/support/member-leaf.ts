import {
  type CertificateWithKey,
  createRootAuthority,
  issueControllerCertificate,
  LEAF_LIFETIME_MS,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { parseCertificate } from '../../src/pki/certificate.ts'
import { LeafJwtSigner, type MemberLeaf } from '../../src/pki/jwt-signer.ts'

const nowMs = Date.now()
const root = createRootAuthority({
  commonName: 'test root',
  validity: validityStartingAt(nowMs, 2 * LEAF_LIFETIME_MS),
})

/** A controller's leaf certificate and key, without the issuers of the certificate. */
export async function memberLeaf(id: string): Promise<CertificateWithKey & MemberLeaf> {
  const { certificatePem: chainPem, privateKeyPem } = await issueControllerCertificate({
    issuer: await root,
    trustDomain: 'test.internal',
    id,
    hosts: ['localhost'],
    validity: validityStartingAt(nowMs, LEAF_LIFETIME_MS),
  })
  const { pem, publicKeySha256 } = parseCertificate(chainPem)
  return { certificatePem: pem, privateKeyPem, publicKeySha256 }
}

/** The leaf certificate of a removed controller. */
export interface FormerLeaf extends MemberLeaf {
  readonly removedAtMs: number
  /** Whether the configuration records the key of this certificate as removed. */
  readonly isRecorded: boolean
}

/** A signer for the controller with this certificate; `members` are all members of its cluster. */
export function signerOf(
  own: CertificateWithKey,
  members: readonly MemberLeaf[],
  now: () => number = Date.now,
  former: readonly FormerLeaf[] = [],
): LeafJwtSigner {
  return new LeafJwtSigner({
    privateKeyPem: () => own.privateKeyPem,
    leafPem: () => own.certificatePem,
    members: () => members,
    pinned: () => members,
    former: () => former,
    removed: () => former.filter(({ isRecorded }) => isRecorded),
    clock: { nowMs: now, monotonicMs: () => 0 },
  })
}
