import { X509Certificate } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'

import { distinguishedNameFromCommonName } from '../../src/pki/asn1/distinguished-name.ts'
import { readKeyUsage, readKeyPurposes } from '../../src/pki/asn1/extensions.ts'
import { extensionOids, purposeOids } from '../../src/pki/asn1/object-identifiers.ts'
import {
  type CertificateWithKey,
  createIssuingAuthority,
  createRootAuthority,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { type Certificate, parseCertificate, parseCertificates } from '../../src/pki/certificate.ts'
import {
  type CertificateSigner,
  certifyIdentity,
  certifyRouterClient,
  certifyRouterServer,
  certifySession,
  type EnrolledCertificateInput,
  extendIdentityCertificate,
  parseCertificateSigner,
} from '../../src/pki/authority/enrolled-certificate.ts'
import type { RouterNaming } from '../../src/pki/authority/router-names.ts'
import { readEnrollmentRequest } from '../../src/pki/authority/enrollment-request.ts'
import { X509Certificate as OtherReader } from '../../src/pki/authority/x509.ts'
import {
  alternativeNames,
  DAY_MS,
  makeAuthority,
  makeClient,
  newRsaKey,
  type RequestOptions,
  requestPem,
  testNowMs,
} from './support/fixtures.ts'

const nowMs = testNowMs
const yearMs = 365 * DAY_MS
const validity = validityStartingAt(nowMs, 10 * yearMs)
let root: CertificateWithKey
let issuing: CertificateWithKey
let issuer: CertificateSigner

beforeAll(async () => {
  root = await createRootAuthority({ commonName: 'network root', validity })
  issuing = await createIssuingAuthority({ commonName: 'network issuing', root, validity })
  issuer = parseCertificateSigner(issuing)
})

function enrollment(
  options: RequestOptions = {},
  changes: Partial<EnrolledCertificateInput> = {},
): EnrolledCertificateInput {
  const request = readEnrollmentRequest(requestPem(options))
  return { issuer, trustDomain: 'test.internal', request, nowMs, lifetimeMs: yearMs, ...changes }
}

const asked = alternativeNames({
  dnsNames: ['a.example', '*.b.example'],
  emails: ['a@b.example'],
  uris: ['urn:x:y', 'spiffe://test.internal/router/r1'],
  ipAddresses: [Buffer.from([10, 0, 0, 1]), Buffer.from('fe800000000000000000000000000001', 'hex')],
})

describe('A certificate of an identity', () => {
  test('has the subject of the request, one SPIFFE id, and no other names from the request', () => {
    const issued = certifyIdentity(enrollment({ extensions: [asked] }), 'id-1')
    const [leaf, above, ...others] = parseCertificates(issued.chainPem)
    expect(leaf.commonName).toBe('somebody')
    expect(leaf.uris).toEqual(['spiffe://test.internal/identity/id-1'])
    expect([leaf.dnsNames, leaf.emails, leaf.ipAddresses]).toEqual([[], [], []])
    expect(leaf.isAuthority).toBe(false)
    expect([...(readKeyUsage(leaf.contents.extensions) ?? [])]).toEqual([0, 2, 3])
    expect(readKeyPurposes(leaf.contents.extensions)).toEqual([purposeOids.clientAuth])
    expect(leaf.contents.extensions.has(extensionOids.basicConstraints)).toBe(false)
    expect(leaf.native.verify(issuer.certificate.native.publicKey)).toBe(true)
    expect(leaf.native.checkIssued(issuer.certificate.native)).toBe(true)
    expect(above?.sha256).toBe(issuer.certificate.sha256)
    expect(others).toEqual([])
    expect(issued).toMatchObject({
      leafPem: leaf.pem,
      fingerprint: leaf.sha1,
      publicKeyPrint: Buffer.from(leaf.publicKeySha256).toString('hex'),
      subject: 'CN=somebody',
      notBeforeMs: nowMs - 60_000,
      notAfterMs: nowMs + yearMs,
    })
    expect([leaf.notBeforeMs, leaf.notAfterMs]).toEqual([issued.notBeforeMs, issued.notAfterMs])
  })

  test('has the expected subject, issuer and extensions when another X.509 library parses it', () => {
    const { leafPem } = certifyIdentity(enrollment({ extensions: [asked] }), 'id-1')
    const other = new OtherReader(leafPem)
    expect(other.subject).toBe('CN=somebody')
    expect(other.issuer).toBe('CN=network issuing')
    expect(other.extensions.map(({ type }) => type)).toEqual([
      '2.5.29.15',
      '2.5.29.37',
      '2.5.29.14',
      '2.5.29.35',
      '2.5.29.17',
    ])
    expect(new X509Certificate(leafPem).subjectAltName).toBe(
      'URI:spiffe://test.internal/identity/id-1',
    )
  })

  test('has a unique serial number: positive, at most 20 bytes', () => {
    const made = enrollment()
    const serials = Array.from({ length: 300 }, () => {
      const { serialNumber } = new X509Certificate(certifyIdentity(made, 'id-1').leafPem)
      expect(serialNumber).toMatch(/^[0-9A-F]{2,40}$/)
      return BigInt(`0x${serialNumber}`)
    })
    expect(new Set(serials).size).toBe(300)
    expect(serials.every((serial) => serial > 0n && serial < 1n << 159n)).toBe(true)
  })

  test('expires no later than its issuer, and is not issued by an expired issuer', () => {
    const late = issuer.certificate.notAfterMs - DAY_MS
    const issued = certifyIdentity(enrollment({}, { nowMs: late }), 'id-1')
    expect(issued.notAfterMs).toBe(issuer.certificate.notAfterMs)
    const over = enrollment({}, { nowMs: issuer.certificate.notAfterMs })
    expect(() => certifyIdentity(over, 'id-1')).toThrow('the issuing authority expired')
  })

  test('can have an expiry after 2049', () => {
    const until = Date.UTC(2060, 5, 1)
    const made = makeAuthority('lasting', { notAfterMs: until + DAY_MS })
    const lasting = parseCertificateSigner({
      certificatePem: made.certificate.pem,
      privateKeyPem: made.keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    })
    const options = { issuer: lasting, lifetimeMs: until - nowMs }
    const { leafPem } = certifyIdentity(enrollment({}, options), 'id-1')
    expect(parseCertificate(leafPem).notAfterMs).toBe(until)
  })

  test('can be signed by a CA with an RSA key', () => {
    for (const keys of [newRsaKey()]) {
      const made = makeAuthority('of rsa', { keys })
      const rsa = parseCertificateSigner({
        certificatePem: made.certificate.pem,
        privateKeyPem: keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      })
      const issued = certifyIdentity(enrollment({}, { issuer: rsa }), 'id-1')
      const leaf = parseCertificate(issued.leafPem)
      expect(leaf.native.verify(keys.publicKey)).toBe(true)
      // A self-signed root is not included.
      expect(issued.chainPem).toBe(issued.leafPem)
    }
  })

  test('marks its alternative names as critical if its subject is empty', () => {
    const { leafPem } = certifyIdentity(enrollment({ subject: Buffer.from('3000', 'hex') }), 'id-1')
    const { extensions } = parseCertificate(leafPem).contents
    expect(extensions.get(extensionOids.subjectAlternativeName)?.isCritical).toBe(true)
  })

  test('is refused for an id that would result in the SPIFFE id of another identity', () => {
    for (const id of ['', 'a/b', '..', 'a b', 'controller/ctrl1', 'ä', `${'x'.repeat(3000)}`]) {
      expect(() => certifyIdentity(enrollment(), id), id.slice(0, 20)).toThrow('SPIFFE')
    }
  })
})

describe('The certificate that extends an identity’s certificate', () => {
  test('keeps the names in the current certificate if the network issued the current certificate', () => {
    const parts = { certificate: issuer.certificate }
    const privateKey = issuer.key
    const keys = { privateKey, publicKey: issuer.certificate.native.publicKey }
    const current = makeClient('now', { ...parts, keys }, { extensions: [asked] })
    const issued = extendIdentityCertificate(enrollment(), 'id-1', current.certificate)
    const leaf = parseCertificate(issued.leafPem)
    expect(leaf.dnsNames).toEqual(['a.example', '*.b.example'])
    expect(leaf.uris).toEqual(['spiffe://test.internal/identity/id-1'])
    expect(leaf.ipAddresses).toEqual(['10.0.0.1', 'fe80::1'])
  })

  test('has only its SPIFFE id as name if another CA issued the current certificate, even a CA with the same name', () => {
    const impostor = makeAuthority('network issuing')
    for (const other of [impostor, makeAuthority('other')]) {
      const current = makeClient('now', other, { extensions: [asked] })
      const issued = extendIdentityCertificate(enrollment(), 'id-1', current.certificate)
      const { dnsNames, emails, uris } = parseCertificate(issued.leafPem)
      expect([dnsNames, emails]).toEqual([[], []])
      expect(uris).toEqual(['spiffe://test.internal/identity/id-1'])
    }
  })
})

test('a session certificate contains the public key in its request, and no name from the request', () => {
  const ids = { identityId: 'id-1', apiSessionId: 's-1', certificateId: 'c-1' }
  const made = enrollment({ extensions: [asked] }, { lifetimeMs: DAY_MS / 2 })
  const issued = certifySession(made, ids)
  const leaf = parseCertificate(issued.leafPem)
  expect(issued.subject).toBe('CN=id-1')
  expect(leaf.commonNames).toEqual(['id-1'])
  expect(leaf.uris).toEqual([
    'spiffe://test.internal/identity/id-1/apiSession/s-1/apiSessionCertificate/c-1',
  ])
  expect(leaf.dnsNames).toEqual([])
  expect(leaf.notAfterMs).toBe(nowMs + DAY_MS / 2)
  expect(() => certifySession(made, { ...ids, apiSessionId: 's/1' })).toThrow('SPIFFE')
})

describe('The certificates of a router', () => {
  const subject = distinguishedNameFromCommonName('r1').der

  const free: RouterNaming = {
    at: 'enrollment',
    allowed: [],
    reserved: [],
    withheld: [],
    currentPem: null,
  }

  function asking(names: Parameters<typeof alternativeNames>[0]): EnrolledCertificateInput {
    return enrollment({ subject, extensions: [alternativeNames(names)] })
  }

  function hostsFor(
    dnsNames: string[],
    naming: Partial<RouterNaming>,
    ipAddresses: Buffer[] = [],
  ): readonly string[] {
    const made = asking({ dnsNames, ipAddresses })
    return certifyRouterServer(made, 'r1', { ...free, ...naming }).hosts
  }

  test('contain the requested hosts in the server certificate but not in the client certificate, each with the matching extended key usage', () => {
    const made = enrollment({ subject, extensions: [asked] })
    const naming = { ...free, allowed: ['*.b.example', 'a.example', '10.0.0.1', 'FE80::1'] }
    const own = 'spiffe://test.internal/router/r1'
    const server = parseCertificate(certifyRouterServer(made, 'r1', naming).leafPem)
    expect(server.commonName).toBe('r1')
    expect(server.dnsNames).toEqual(['a.example', '*.b.example'])
    expect(server.emails).toEqual(['a@b.example'])
    expect(server.ipAddresses).toEqual(['10.0.0.1', 'fe80::1'])
    expect(server.uris).toEqual([own, 'urn:x:y'])
    expect(readKeyPurposes(server.contents.extensions)).toEqual([purposeOids.serverAuth])
    const client = parseCertificate(certifyRouterClient(made, 'r1').leafPem)
    expect(client.commonName).toBe('r1')
    expect(client.names).toMatchObject({ dnsNames: [], ipAddresses: [], emails: [], uris: [own] })
    expect(readKeyPurposes(client.contents.extensions)).toEqual([purposeOids.clientAuth])
  })

  test('have the router’s id as common name; a client certificate request with another name is refused, and the name in a server certificate request is ignored', () => {
    const other = enrollment({ subject: distinguishedNameFromCommonName('r2').der })
    expect(() => certifyRouterClient(other, 'r1')).toThrow('must be the id of the router')
    expect(certifyRouterServer(other, 'r1', free).subject).toBe('CN=r1')
  })

  test('contain, at enrollment, no host name of a controller, in any spelling, unless an administrator allowed it', () => {
    const reserved = ['ctrl1.example', '10.0.0.1', '2001:db8::7', '[2001:DB8::8]']
    for (const name of ['ctrl1.example', 'CTRL1.example.']) {
      expect(() => hostsFor([name], { reserved })).toThrow('is that of a controller')
    }
    for (const hex of [
      '0a000001',
      '00000000000000000000ffff0a000001',
      '20010db8000000000000000000000007',
      '20010db8000000000000000000000008',
    ]) {
      expect(() => hostsFor([], { reserved }, [Buffer.from(hex, 'hex')])).toThrow('controller')
    }
    expect(() => hostsFor(['10.0.0.1'], { reserved })).toThrow('is that of a controller')
    expect(hostsFor(['ctrl2.example'], { reserved })).toEqual(['ctrl2.example'])
    expect(hostsFor(['ctrl1.example'], { reserved, allowed: ['Ctrl1.Example'] })).toEqual([
      'ctrl1.example',
    ])
  })

  test('contain a wildcard name only if an administrator allowed it', () => {
    expect(() => hostsFor(['*.com'], {})).toThrow('is a wildcard')
    expect(hostsFor(['*.r1.example'], { allowed: ['*.r1.example'] })).toEqual(['*.r1.example'])
    expect(() => hostsFor(['*.r2.example'], { allowed: ['*.r1.example'] })).toThrow('wildcard')
  })

  test('may always contain loopback names, because these refer to the verifier’s own host', () => {
    const local = ['localhost', 'r1.localhost']
    const addresses = [Buffer.from([127, 0, 0, 1]), Buffer.from(`${'00'.repeat(15)}01`, 'hex')]
    const reserved = ['localhost', '127.0.0.1', '::1']
    for (const allowed of [[], ['r1.example']]) {
      const hosts = [...local, '127.0.0.1', '::1']
      expect(hostsFor(local, { reserved, allowed }, addresses)).toEqual(hosts)
      const made = asking({ dnsNames: local, ipAddresses: addresses })
      const naming = { ...free, at: 'extension', reserved, allowed } as const
      expect(certifyRouterServer(made, 'r1', naming).hosts).toEqual(hosts)
    }
    expect(() => hostsFor(['localhost.example'], { reserved, allowed: ['x'] })).toThrow('allowed')
  })

  test('do not contain hosts of other routers', () => {
    expect(hostsFor(['r1.example', 'r2.example'], { withheld: ['r2.example'] })).toEqual([
      'r1.example',
    ])
  })

  test('are extended only with names that they already contain or that an administrator allowed', () => {
    const first = asking({
      dnsNames: ['a.example', 'b.example'],
      emails: ['a@b.example'],
      uris: ['urn:x:y'],
    })
    const currentPem = certifyRouterServer(first, 'r1', free).leafPem
    const more = asking({
      dnsNames: ['*.example', 'a.example', 'b.example', 'c.example', 'localhost'],
      ipAddresses: [Buffer.from([10, 0, 0, 1])],
      emails: ['a@b.example', 'root@b.example'],
      uris: ['urn:x:y', 'urn:x:z'],
    })
    const at = 'extension'
    const leaf = (naming: Partial<RouterNaming>): Certificate =>
      parseCertificate(
        certifyRouterServer(more, 'r1', { ...free, at, currentPem, ...naming }).leafPem,
      )
    expect(leaf({}).dnsNames).toEqual(['a.example', 'b.example', 'localhost'])
    expect(leaf({}).ipAddresses).toEqual([])
    expect(leaf({}).emails).toEqual(['a@b.example'])
    expect(leaf({}).uris).toEqual(['spiffe://test.internal/router/r1', 'urn:x:y'])
    expect(leaf({ reserved: ['a.example'] }).dnsNames).toEqual(['b.example', 'localhost'])
    expect(leaf({ allowed: ['c.example', '10.0.0.1'] }).dnsNames).toEqual([
      'c.example',
      'localhost',
    ])
    expect(leaf({ allowed: ['10.0.0.1'] }).ipAddresses).toEqual(['10.0.0.1'])
    expect(leaf({ currentPem: null }).dnsNames).toEqual(['localhost'])
  })

  test.each([
    'spiffe://test.internal/controller/ctrl1',
    'spiffe://test.internal/identity/id-1',
    'spiffe://test.internal/router/r2',
    'spiffe://test.internal/router/r1/x',
    'spiffe://test.internal/router/r1?x',
    'spiffe://test.internal/router/../controller/ctrl1',
    'SPIFFE://test.internal/controller/ctrl1',
    'spiffe://TEST.internal/controller/ctrl1',
    'spiffe://test.internal:443/controller/ctrl1',
    'spiffe://x@test.internal/controller/ctrl1',
    'spiffe:test.internal/controller/ctrl1',
    'spiffe://test.internal',
    'spiffe://other.internal/controller/ctrl1',
    'spiffe://other.internal/x',
    ' spiffe://test.internal/controller/ctrl1',
    'no uri',
  ])('are refused if they would contain the name %s', (uri) => {
    const made = asking({ uris: [uri] })
    expect(() => certifyRouterServer(made, 'r1', free)).toThrow('alternative name')
  })

  test.each([
    { dnsNames: ['a b'] },
    { dnsNames: [''] },
    { dnsNames: ['a..b'] },
    { dnsNames: ['x'.repeat(64)] },
    { dnsNames: ['a.*.b'] },
    { emails: ['a'] },
    { emails: ['a@b@c d'] },
  ])('are refused if they would contain the names %o', (names) => {
    expect(() => certifyRouterServer(asking(names), 'r1', free)).toThrow('alternative name')
  })
})

test('a CA certificate is refused as an issuer if the private key belongs to another CA', () => {
  expect(() => parseCertificateSigner({ ...issuing, privateKeyPem: root.privateKeyPem })).toThrow(
    'does not belong',
  )
})
