import { expect, test } from 'vitest'

import {
  verifyCaller,
  verifyPeer,
  type PeerVerificationFacts,
} from '../../src/cluster/mesh/handshake.ts'
import { issueLeaf, validityStartingAt } from '../../src/pki/authority/authority.ts'
import { parseCertificate } from '../../src/pki/certificate.ts'
import { newCa } from '../support/authorities.ts'

// The attack: in an operator's own PKI, the authority of the controllers also signs other
// certificates. Somebody has such a certificate, for servers and clients, with the name of a
// controller as common name, and connects to a controller's mesh with it.

const authority = await newCa('of the operator', Date.now())
const trust: PeerVerificationFacts = {
  selfId: 'ctrl1',
  clusterId: 'a cluster',
  generation: 1,
  trustDomain: 'net.example',
  members: new Map(),
}

async function shownBy(uris: readonly string[]): Promise<Uint8Array> {
  const { certificatePem } = await issueLeaf({
    issuer: authority,
    commonName: 'ctrl2',
    hosts: ['ctrl2.example'],
    uris,
    usages: ['server', 'client'],
    validity: validityStartingAt(Date.now(), 60_000),
  })
  return parseCertificate(certificatePem).der
}

test('a controller certificate is accepted only by its SPIFFE ID, not by its common name', async () => {
  const caller = verifyCaller(await shownBy(['spiffe://net.example/controller/ctrl2']), trust)
  expect(caller).toMatchObject({ ok: true, caller: { id: 'ctrl2' } })
  for (const uris of [
    [],
    ['https://ctrl2.example'],
    ['spiffe://net.example/router/ctrl2'],
    ['spiffe://other.example/controller/ctrl2'],
    ['spiffe://net.example/controller/ctrl2', 'spiffe://net.example/controller/ctrl3'],
  ]) {
    const leafDer = await shownBy(uris)
    expect(verifyCaller(leafDer, trust), uris.join()).toMatchObject({ reason: 'wrong-identity' })
    const claim = { leafDer, hello: undefined, expectedId: 'ctrl2' }
    expect(verifyPeer(claim, trust), uris.join()).toMatchObject({ reason: 'wrong-identity' })
  }
})
