import { expect, test } from 'vitest'

import { derTag, encodeTagged } from '../../src/pki/asn1/der.ts'
import {
  distinguishedNameFromCommonName,
  formatDistinguishedName,
} from '../../src/pki/asn1/distinguished-name.ts'
import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../../src/pki/authority/certificate-request.ts'
import { readEnrollmentRequest } from '../../src/pki/authority/enrollment-request.ts'
import { encodePemBlock } from '../../src/pki/pem.ts'
import {
  alternativeNames,
  basicConstraints,
  extensionRequest,
  keyUsage,
  newEcKey,
  newEdKey,
  newRsaKey,
  requestDer,
  requestPem,
  rsaPss,
  sha1WithRsa,
  spkiOf,
  withNullParameters,
} from './support/fixtures.ts'

const SHA256 = '608648016503040201'
const rsa = newRsaKey()

test.each([
  ['EC P-256', newEcKey('P-256')],
  ['EC P-384', newEcKey('P-384')],
  ['EC P-521', newEcKey('P-521')],
  ['RSA 2048', rsa],
  ['Ed25519', newEdKey()],
])('a certificate request with a key of type %s is accepted', (_type, keys) => {
  const request = readEnrollmentRequest(
    requestPem({ keys, subject: distinguishedNameFromCommonName('r1').der }),
  )
  expect(request.commonName).toBe('r1')
  expect(request.publicKeySpki).toEqual(spkiOf(keys))
  expect(formatDistinguishedName(request.subject)).toBe('CN=r1')
})

test('an RSA-PSS certificate request is accepted, unless its parameters specify SHA-1', () => {
  const keys = rsa
  const good = requestPem({ keys, signing: rsaPss('sha256', SHA256) })
  expect(readEnrollmentRequest(good).commonName).toBe('somebody')
  const old = requestPem({ keys, signing: rsaPss('sha1', null, 20) })
  expect(() => readEnrollmentRequest(old)).toThrow('SHA-1')
})

test('an EC certificate request whose algorithm has NULL as parameters is accepted', () => {
  // The C SDK up to 0.29 writes requests in this form, with mbed TLS 2.
  const keys = newEcKey()
  const pem = requestPem({ keys, signing: withNullParameters(keys) })
  expect(readEnrollmentRequest(pem).commonName).toBe('somebody')
})

test('an Ed25519 certificate request whose algorithm has parameters is refused', () => {
  const keys = newEdKey()
  const pem = requestPem({ keys, signing: withNullParameters(keys) })
  expect(() => readEnrollmentRequest(pem)).toThrow('not a readable certificate request')
})

test('a certificate request that another program created is accepted', async () => {
  const pem = await createCertificateRequest({ privateKeyPem: generatePrivateKeyPem(), id: 'r7' })
  expect(readEnrollmentRequest(pem)).toMatchObject({ commonName: 'r7', names: { uris: [] } })
})

test('the names in a certificate request are returned by type', () => {
  const names = {
    dnsNames: ['a.example', '*.b.example'],
    emails: ['a@b.example'],
    uris: ['urn:x:y'],
    ipAddresses: [Buffer.from([10, 0, 0, 1])],
  }
  const pem = requestPem({ extensions: [alternativeNames(names)] })
  expect(readEnrollmentRequest(pem).names).toMatchObject(names)
  // A certificate request may contain no extensions.
  expect(readEnrollmentRequest(requestPem({ attributes: [] })).names.dnsNames).toEqual([])
})

test('a certificate request in which any byte was changed is refused', () => {
  const der = requestDer({ keys: newEdKey() })
  for (let at = 0; at < der.length; at += 1) {
    const harmed = Buffer.from(der)
    harmed[at] = (harmed[at] ?? 0) ^ 1
    expect(() => readEnrollmentRequest(encodePemBlock('CERTIFICATE REQUEST', harmed))).toThrow()
  }
})

test('a certificate request truncated anywhere is refused', () => {
  const der = requestDer()
  for (let length = 0; length < der.length; length += 1) {
    const part = encodePemBlock('CERTIFICATE REQUEST', der.subarray(0, length))
    expect(() => readEnrollmentRequest(part)).toThrow()
  }
})

test('a certificate request that is not signed with the key in it is refused', () => {
  const pem = requestPem({ spki: spkiOf(newEcKey()) })
  expect(() => readEnrollmentRequest(pem)).toThrow('not signed by the key that is in it')
})

test('a certificate request that is signed with SHA-1 is refused', () => {
  const pem = requestPem({ keys: rsa, signing: sha1WithRsa })
  expect(() => readEnrollmentRequest(pem)).toThrow('SHA-1')
})

test.each([
  ['an RSA key of 512 bits', newRsaKey(512)],
  ['an RSA key of 1,024 bits', newRsaKey(1024)],
  ['a key on an unsupported EC curve', newEcKey('secp256k1')],
])('a certificate request with %s is refused', (_type, keys) => {
  const signing = keys.publicKey.asymmetricKeyType === 'ec' ? { keys: newEcKey() } : { keys }
  const pem = requestPem({ ...signing, spki: spkiOf(keys) })
  expect(() => readEnrollmentRequest(pem)).toThrow('RSA of 2,048 to 8,192 bits')
})

test('a certificate request with a compressed EC point is refused, because each key may have only one encoding', () => {
  const keys = newEcKey()
  const spki = spkiOf(keys)
  const point = Buffer.from([2 + ((spki.at(-1) ?? 0) & 1), ...spki.subarray(27, 59)])
  const algorithm = spki.subarray(2, 23)
  const bits = encodeTagged(derTag.bitString, Buffer.from([0]), point)
  const compressed = encodeTagged(derTag.sequence, algorithm, bits)
  expect(() => readEnrollmentRequest(requestPem({ keys, spki: compressed }))).toThrow('no kind')
})

test.each([
  ['the CA flag in its basic constraints', basicConstraints(true)],
  ['the key usage keyCertSign', keyUsage(0x04)],
])('a certificate request with %s is refused', (_what, extension) => {
  const pem = requestPem({ extensions: [extension] })
  expect(() => readEnrollmentRequest(pem)).toThrow('asks for a CA certificate')
})

test('a certificate request that contains an extension twice is refused, whether in one list or in two', () => {
  const plain = basicConstraints(false)
  for (const attributes of [
    [extensionRequest([plain, basicConstraints(true)])],
    [extensionRequest([plain]), extensionRequest([])],
  ]) {
    expect(() => readEnrollmentRequest(requestPem({ attributes }))).toThrow(
      'readable certificate request',
    )
  }
})

test('a certificate request is refused if its subject exceeds the size limit', () => {
  const large = requestPem({ subject: distinguishedNameFromCommonName('x'.repeat(5000)).der })
  expect(() => readEnrollmentRequest(large)).toThrow('4096 bytes')
  const huge = requestPem({ subject: distinguishedNameFromCommonName('x'.repeat(64 * 1024)).der })
  expect(() => readEnrollmentRequest(huge)).toThrow('exactly one certificate request')
})

test('a certificate request is refused if it has too many names, or a name with a NUL character', () => {
  const many = alternativeNames({ dnsNames: Array.from({ length: 65 }, (_, at) => `n${at}`) })
  expect(() => readEnrollmentRequest(requestPem({ extensions: [many] }))).toThrow(
    'readable certificate request',
  )
  const split = alternativeNames({ dnsNames: ['good.example\0.evil.example'] })
  expect(() => readEnrollmentRequest(requestPem({ extensions: [split] }))).toThrow(
    'readable certificate request',
  )
})

test('a text is refused if it is too large, or is not exactly one PEM block with one certificate request', () => {
  const pem = requestPem()
  const der = requestDer()
  for (const text of [
    '',
    'hello',
    pem + pem,
    `${pem}hello`,
    `hello\n${pem}`,
    pem.replaceAll('CERTIFICATE REQUEST', 'CERTIFICATE'),
    pem.replace('BEGIN CERT', 'BEGIN NEW CERT'),
    encodePemBlock('CERTIFICATE REQUEST', Buffer.concat([der, Buffer.from([0])])),
    encodePemBlock('CERTIFICATE REQUEST', Buffer.concat([der, der])),
    pem.padEnd(17 * 1024, '\n'),
  ]) {
    expect(() => readEnrollmentRequest(text), text.slice(0, 40)).toThrow()
  }
  expect(readEnrollmentRequest(`\n${pem.replaceAll('\n', '\r\n')}\n`).commonName).toBe('somebody')
})
