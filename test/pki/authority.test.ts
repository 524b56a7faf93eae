import { connect, createServer, type TLSSocket } from 'node:tls'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { beforeAll, describe, expect, test } from 'vitest'

import { requirePresent } from '../../src/lib/assert.ts'
import {
  type CertificateWithKey,
  createIssuingAuthority,
  createRootAuthority,
  issueControllerCertificate,
  issueLeaf,
  type LeafOptions,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import {
  CertificateError,
  checkCertificateChain,
  checkKeyMatches,
  checkValidityTime,
  leafControllerId,
  leafSpiffeId,
  parseCertificate,
  parseCertificates,
} from '../../src/pki/certificate.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const now = Date.now()
const validity = validityStartingAt(now, DAY_MS)

let root: CertificateWithKey
let issuer: CertificateWithKey
let leaf: CertificateWithKey

beforeAll(async () => {
  root = await createRootAuthority({ commonName: 'test root', validity })
  issuer = await createIssuingAuthority({ commonName: 'test issuer', root, validity })
  leaf = await issueControllerCertificate({
    issuer,
    trustDomain: 'test.example',
    id: 'ctrl1',
    hosts: ['localhost', '127.0.0.1', '::1'],
    validity,
  })
})

function leafWith(changes: Partial<LeafOptions>): Promise<CertificateWithKey> {
  return issueLeaf({
    issuer,
    commonName: 'ctrl1',
    uris: ['spiffe://test.example/controller/ctrl1'],
    hosts: [],
    validity,
    usages: ['server', 'client'],
    ...changes,
  })
}

/** The fault that the check reports, or 'none'. */
function faultOf(check: () => unknown): string {
  try {
    check()
    return 'none'
  } catch (error) {
    if (error instanceof CertificateError) return error.fault
    throw error
  }
}

const controllerFault = async (changes: Partial<LeafOptions>): Promise<string> => {
  const [certificate] = parseCertificates((await leafWith(changes)).certificatePem)
  return faultOf(() => leafControllerId(certificate, 'test.example'))
}

describe('The certificate that is issued to a controller', () => {
  test('contains its SPIFFE id, its id as common name, and its hosts', () => {
    const [own, ...chain] = parseCertificates(leaf.certificatePem)
    expect(own.uris).toEqual(['spiffe://test.example/controller/ctrl1'])
    expect(own.commonName).toBe('ctrl1')
    expect(own.dnsNames).toEqual(['localhost'])
    expect(own.ipAddresses).toEqual(['127.0.0.1', '::1'])
    expect(own.native.checkIP('::1')).toBe('::1')
    expect(own.isAuthority).toBe(false)
    expect(leafControllerId(own, 'test.example')).toBe('ctrl1')
    expect(own.publicKeySha256).toHaveLength(32)
    expect(chain.map((certificate) => certificate.commonName)).toEqual(['test issuer'])
  })

  test('is verified by a peer that has only the root certificate', () => {
    const anchors = parseCertificates(root.certificatePem)
    expect(() =>
      checkCertificateChain(parseCertificates(leaf.certificatePem), anchors, now),
    ).not.toThrow()
  })

  test('contains only the key for which it was issued', async () => {
    const [own] = parseCertificates(leaf.certificatePem)
    const other = await leafWith({})
    expect(() => checkKeyMatches(own, leaf.privateKeyPem)).not.toThrow()
    expect(faultOf(() => checkKeyMatches(own, other.privateKeyPem))).toBe('key-mismatch')
    expect(faultOf(() => checkKeyMatches(own, 'no key'))).toBe('unreadable')
  })

  test('works for mutual TLS 1.3 as client and as server', async () => {
    const tls = { cert: leaf.certificatePem, key: leaf.privateKeyPem, ca: root.certificatePem }
    const server = createServer({ ...tls, requestCert: true, minVersion: 'TLSv1.3' })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const accepted = once(server, 'secureConnection')
    const client = connect({ ...tls, host: '127.0.0.1', port, servername: 'localhost' })
    await once(client, 'secureConnect')
    const [socket] = (await accepted) as [TLSSocket]
    expect(client.authorized).toBe(true)
    expect(socket.authorized).toBe(true)
    const peer = parseCertificate(requirePresent(socket.getPeerX509Certificate(), 'peer').raw)
    expect(leafControllerId(peer, 'test.example')).toBe('ctrl1')
    client.destroy()
    socket.destroy()
    server.close()
  })
})

describe('A leaf certificate is refused as a controller certificate', () => {
  test('if it has two URI names, even if both are the SPIFFE ID of the controller', async () => {
    const uri = 'spiffe://test.example/controller/ctrl1'
    expect(await controllerFault({ uris: [uri, 'spiffe://test.example/controller/ctrl2'] })).toBe(
      'wrong-identity',
    )
    expect(await controllerFault({ uris: [uri, uri] })).toBe('wrong-identity')
    expect(await controllerFault({ uris: [uri, 'https://test.example/'] })).toBe('wrong-identity')
    expect(await controllerFault({ uris: [uri] })).toBe('none')
  })

  test('if it has no URI name, even if its common name and DNS name are those of the controller', async () => {
    expect(await controllerFault({ uris: [], hosts: ['ctrl1'] })).toBe('wrong-identity')
  })

  test.each([
    'spiffe://other.example/controller/ctrl1',
    'spiffe://test.example/identity/ctrl1',
    'spiffe://test.example/router/ctrl1',
    'spiffe://test.example/controller',
    'spiffe://test.example/controller/',
    'spiffe://test.example/controller/ctrl1/',
    'spiffe://test.example/controller/a/ctrl1',
    'spiffe://test.example/identity/../controller/ctrl1',
    'spiffe://test.example/controller/ctrl%31',
    'spiffe://test.example:443/controller/ctrl1',
    'spiffe://user@test.example/controller/ctrl1',
    'SPIFFE://test.example/controller/ctrl1',
    'https://test.example/controller/ctrl1',
  ])('if it has the URI name %s', async (uri) => {
    expect(await controllerFault({ uris: [uri] })).toBe('wrong-identity')
  })

  test('if it has the common name of another controller', async () => {
    expect(await controllerFault({ commonName: 'ctrl2' })).toBe('wrong-identity')
  })

  test('if it is a CA certificate', () => {
    const [authority] = parseCertificates(issuer.certificatePem)
    expect(faultOf(() => leafSpiffeId(authority))).toBe('wrong-identity')
  })
})

describe('The verification of a controller certificate:', () => {
  test('an expired certificate is reported differently from one that is not yet valid', async () => {
    const expired = await leafWith({
      validity: { notBeforeMs: now - 2 * DAY_MS, notAfterMs: now - DAY_MS },
    })
    const early = await leafWith({
      validity: { notBeforeMs: now + DAY_MS, notAfterMs: now + 2 * DAY_MS },
    })
    const [first] = parseCertificates(expired.certificatePem)
    const [second] = parseCertificates(early.certificatePem)
    expect(faultOf(() => checkValidityTime(first, now))).toBe('expired')
    expect(faultOf(() => checkValidityTime(second, now))).toBe('not-yet-valid')
    expect(faultOf(() => checkValidityTime(second, now + 1.5 * DAY_MS))).toBe('none')
    const anchors = parseCertificates(root.certificatePem)
    const chain = parseCertificates(expired.certificatePem)
    expect(faultOf(() => checkCertificateChain(chain, anchors, now))).toBe('expired')
  })

  test('a chain to another root CA with the same name is not trusted', async () => {
    const otherRoot = await createRootAuthority({ commonName: 'test root', validity })
    const anchors = parseCertificates(otherRoot.certificatePem)
    const chain = parseCertificates(leaf.certificatePem)
    expect(faultOf(() => checkCertificateChain(chain, anchors, now))).toBe('untrusted')
  })

  test('a certificate that a leaf has issued is refused', async () => {
    const forged = await issueLeaf({
      issuer: leaf,
      commonName: 'ctrl2',
      uris: ['spiffe://test.example/controller/ctrl2'],
      hosts: [],
      validity,
      usages: ['client'],
    })
    const anchors = parseCertificates(root.certificatePem)
    expect(
      faultOf(() => checkCertificateChain(parseCertificates(forged.certificatePem), anchors, now)),
    ).toBe('untrusted')
  })

  test('a CA that an issuing CA has issued is refused', async () => {
    const deeper = await createIssuingAuthority({ commonName: 'deeper', root: issuer, validity })
    const certificate = deeper.certificatePem + issuer.certificatePem
    const forged = await issueLeaf({
      issuer: { certificatePem: certificate, privateKeyPem: deeper.privateKeyPem },
      commonName: 'ctrl2',
      uris: ['spiffe://test.example/controller/ctrl2'],
      hosts: [],
      validity,
      usages: ['client'],
    })
    const anchors = parseCertificates(root.certificatePem)
    expect(
      faultOf(() => checkCertificateChain(parseCertificates(forged.certificatePem), anchors, now)),
    ).toBe('untrusted')
  })
})

describe('The parser of certificate chains:', () => {
  test.each([
    ['nothing', ''],
    ['text', 'hello'],
    [
      'a PEM block of invalid data',
      '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
    ],
    ['a truncated block', '-----BEGIN CERTIFICATE-----\nMIIB'],
  ])('unreadable input is refused (%s)', (_title, pem) => {
    expect(faultOf(() => parseCertificates(pem))).toBe('unreadable')
  })

  test('a chain above the maximum length is refused', () => {
    const pem = root.certificatePem.repeat(17)
    expect(faultOf(() => parseCertificates(pem))).toBe('unreadable')
    expect(parseCertificates(pem, { certificatesMax: 17 })).toHaveLength(17)
  })

  test('a certificate with a flipped bit in every seventh byte, one at a time, is refused', () => {
    const anchors = parseCertificates(root.certificatePem)
    const [own, ...chain] = parseCertificates(leaf.certificatePem)
    const faults = new Set<string>()
    for (let at = 0; at < own.der.length; at += 7) {
      const damaged = Uint8Array.from(own.der)
      damaged[at] = (damaged[at] ?? 0) ^ 0x01
      faults.add(
        faultOf(() => checkCertificateChain([parseCertificate(damaged), ...chain], anchors, now)),
      )
    }
    expect(faults).not.toContain('none')
    expect(faults).toContain('untrusted')
  })
})
