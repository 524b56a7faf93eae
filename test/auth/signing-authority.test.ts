import { expect, test } from 'vitest'
import { StateReader } from '../../src/fsm/state-reader.ts'
import { issuingCaId } from '../../src/auth/certificates/issuing-ca-id.ts'
import type { StateView } from '../../src/ports/state-view.ts'
import {
  type CertificateWithKey,
  createRootAuthority,
  issueControllerCertificate,
  LEAF_LIFETIME_MS,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { parseCertificate } from '../../src/pki/certificate.ts'
import { ClusterState } from '../../src/fsm/access/cluster-state.ts'

const validity = validityStartingAt(Date.now(), 2 * LEAF_LIFETIME_MS)

function authority(commonName: string): Promise<CertificateWithKey> {
  return createRootAuthority({ commonName, validity })
}

async function leafOf(issuer: CertificateWithKey): Promise<string> {
  const { certificatePem } = await issueControllerCertificate({
    issuer,
    trustDomain: 'test.internal',
    id: 'holder',
    hosts: ['localhost'],
    validity: validityStartingAt(Date.now(), LEAF_LIFETIME_MS),
  })
  return parseCertificate(certificatePem).pem
}

function registered(
  certificates: Readonly<Record<string, string>>,
): Pick<StateView, 'count' | 'list'> {
  const state = new ClusterState()
  for (const [id, certPem] of Object.entries(certificates)) {
    state.put('ca', { id, name: id, certPem, createdAt: 0, updatedAt: 0, revision: 1 })
  }
  return new StateReader(state, { nowMs: () => 0, monotonicMs: () => 0 })
}

test('the issuing CA of a certificate authenticator is the registered CA whose key signed the certificate, and no CA if the network issued it', async () => {
  const [ours, theirs, namesake] = [
    await authority('ours'),
    await authority('theirs'),
    // An authority with the same subject and another key.
    await authority('theirs'),
  ]
  const state = registered({
    a: ours.certificatePem,
    b: 'no certificate',
    c: namesake.certificatePem,
    d: theirs.certificatePem,
  })
  const certPem = await leafOf(theirs)
  const find = (isIssuedByNetwork: boolean, pem: string | null): string | null =>
    issuingCaId(state, { certPem: pem, isIssuedByNetwork })
  expect(find(false, certPem)).toBe('d')
  expect(find(true, certPem)).toBeNull()
  expect(find(false, await leafOf(await authority('nobody')))).toBeNull()
  expect(find(false, null)).toBeNull()
  expect(find(false, 'no certificate')).toBeNull()
  expect(issuingCaId(registered({}), { certPem, isIssuedByNetwork: false })).toBeNull()
})
