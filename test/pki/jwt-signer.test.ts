import { generateKeyPairSync } from 'node:crypto'
import { decodeProtectedHeader, SignJWT } from 'jose'
import { expect, test } from 'vitest'

import {
  createRootAuthority,
  issueControllerCertificateForKey,
  LEAF_LIFETIME_MS,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { parseCertificate } from '../../src/pki/certificate.ts'
import { JWT_CHARACTERS_MAX, keyJwtAlgorithm } from '../../src/pki/jwt-verifier.ts'
import { memberLeaf, signerOf } from '../support/member-leaf.ts'

const nowSeconds = Math.floor(Date.now() / 1000)
const claims = { iss: 'https://ctrl1.test', sub: 'service', exp: nowSeconds + 3600 }

test('a JWT that a controller signs contains the ID of the signing certificate, and every member can verify it', async () => {
  const [one, two] = [await memberLeaf('ctrl1'), await memberLeaf('ctrl2')]
  const token = await signerOf(one, [one, two]).sign(claims)
  expect(decodeProtectedHeader(token)).toEqual({
    alg: 'ES256',
    kid: parseCertificate(one.certificatePem).sha1,
    typ: 'JWT',
  })
  expect(await signerOf(one, []).verify(token)).toEqual(claims)
  expect(await signerOf(two, [one, two]).verify(token)).toEqual(claims)
})

test('a JWT signed by a controller that is not a member is rejected', async () => {
  const [one, stranger] = [await memberLeaf('ctrl1'), await memberLeaf('ctrl9')]
  const token = await signerOf(stranger, []).sign(claims)
  expect(await signerOf(one, [one]).verify(token)).toBeNull()
})

test('a certificate whose key is not the member’s pinned key verifies no JWT', async () => {
  const [one, two, stranger] = [
    await memberLeaf('ctrl1'),
    await memberLeaf('ctrl2'),
    await memberLeaf('ctrl2'),
  ]
  const token = await signerOf(stranger, []).sign(claims)
  const forged = { ...stranger, publicKeySha256: two.publicKeySha256 }
  expect(await signerOf(one, [one, forged]).verify(token)).toBeNull()
  expect(await signerOf(one, [one, stranger]).verify(token)).toEqual(claims)
})

test('a JWT stays valid if its signing certificate is renewed with the same key', async () => {
  const one = await memberLeaf('ctrl1')
  const token = await signerOf(one, []).sign(claims)
  const root = await createRootAuthority({
    commonName: 'the next root',
    validity: validityStartingAt(Date.now(), 2 * LEAF_LIFETIME_MS),
  })
  const publicKeySpki = parseCertificate(one.certificatePem).native.publicKey.export({
    type: 'spki',
    format: 'der',
  })
  const certificatePem = await issueControllerCertificateForKey({
    issuer: root,
    trustDomain: 'test.internal',
    id: 'ctrl1',
    hosts: ['localhost'],
    validity: validityStartingAt(Date.now(), LEAF_LIFETIME_MS),
    publicKeySpki,
  })
  const { pem } = parseCertificate(certificatePem)
  const renewed = signerOf({ ...one, certificatePem: pem }, [])
  expect(decodeProtectedHeader(await renewed.sign(claims)).kid).not.toBe(
    decodeProtectedHeader(token).kid,
  )
  expect(await renewed.verify(token)).toEqual(claims)
})

test('an expired, not yet valid, modified, unsigned or oversized JWT is rejected', async () => {
  const one = await memberLeaf('ctrl1')
  const signer = signerOf(one, [])
  const token = await signer.sign(claims)
  const later = signerOf(one, [], () => Date.now() + 2 * 3600 * 1000)
  expect(await later.verify(token)).toBeNull()
  expect(await signer.verify(await signer.sign({ nbf: nowSeconds + 600 }))).toBeNull()

  const [head = '', , signature = ''] = token.split('.')
  const changed = Buffer.from(JSON.stringify({ ...claims, sub: 'other' })).toString('base64url')
  const none = Buffer.from('{"alg":"none"}').toString('base64url')
  for (const bad of [
    `${head}.${changed}.${signature}`,
    `${none}.${changed}.`,
    'nothing',
    '',
    `${token}${' '.repeat(JWT_CHARACTERS_MAX)}`,
  ]) {
    expect(await signer.verify(bad), bad.slice(0, 60)).toBeNull()
  }
})

test('a JWT signed with the public key as an HMAC secret is rejected', async () => {
  const one = await memberLeaf('ctrl1')
  const { publicKey } = parseCertificate(one.certificatePem).native
  const secret = publicKey.export({ type: 'spki', format: 'pem' })
  const token = await new SignJWT(claims)
    .setProtectedHeader({ alg: 'HS256' })
    .sign(Buffer.from(secret))
  expect(await signerOf(one, []).verify(token)).toBeNull()
})

test('the type of the signing key determines the signature algorithm of a JWT', () => {
  const ec = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve }).privateKey
  expect(keyJwtAlgorithm(ec('P-256'))).toBe('ES256')
  expect(keyJwtAlgorithm(ec('P-384'))).toBe('ES384')
  expect(keyJwtAlgorithm(ec('P-521'))).toBe('ES512')
  expect(keyJwtAlgorithm(generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey)).toBe(
    'RS256',
  )
  expect(() => keyJwtAlgorithm(generateKeyPairSync('ed25519').privateKey)).toThrow('EC or RSA')
})
