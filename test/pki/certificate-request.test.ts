import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'

import {
  type CertificateWithKey,
  createIssuingAuthority,
  createRootAuthority,
  issueControllerCertificateForKey,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import {
  checkCertificateChain,
  checkKeyMatches,
  leafControllerId,
  parseCertificates,
} from '../../src/pki/certificate.ts'
import {
  createCertificateRequest,
  generatePrivateKeyPem,
  parseCertificateRequest,
} from '../../src/pki/authority/certificate-request.ts'

const nowMs = Date.now()
const validity = validityStartingAt(nowMs, 3_600_000)
let root: CertificateWithKey
let issuer: CertificateWithKey

beforeAll(async () => {
  root = await createRootAuthority({ commonName: 'test root', validity })
  issuer = await createIssuingAuthority({ commonName: 'test issuing', root, validity })
})

const rsaPem = (modulusLength: number): string =>
  generateKeyPairSync('rsa', { modulusLength })
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .toString()
const ecPem = (namedCurve: string): string =>
  generateKeyPairSync('ec', { namedCurve })
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .toString()

function spkiOf(privateKeyPem: string): Buffer {
  return createPublicKey(createPrivateKey(privateKeyPem)).export({ type: 'spki', format: 'der' })
}

describe('A certificate request', () => {
  test.each([
    ['EC P-256', generatePrivateKeyPem()],
    ['EC P-384', ecPem('P-384')],
    ['RSA 2048', rsaPem(2048)],
  ])('with a key of type %s results in a leaf for that key', async (_type, privateKeyPem) => {
    const pem = await createCertificateRequest({ privateKeyPem, id: 'ctrl4' })
    const { commonName, publicKeySpki, publicKeySha256 } = await parseCertificateRequest(pem)
    expect(commonName).toBe('ctrl4')
    expect(Buffer.from(publicKeySpki)).toEqual(spkiOf(privateKeyPem))
    const chainPem = await issueControllerCertificateForKey({
      issuer,
      trustDomain: 'test.internal',
      id: 'ctrl4',
      hosts: ['ctrl4.example', '10.0.0.4', '::1'],
      publicKeySpki,
      validity,
    })
    const chain = parseCertificates(chainPem)
    expect(chain).toHaveLength(2)
    expect(chain[0].publicKeySha256).toEqual(publicKeySha256)
    expect(leafControllerId(chain[0], 'test.internal')).toBe('ctrl4')
    expect(chain[0].dnsNames).toEqual(['ctrl4.example'])
    checkKeyMatches(chain[0], privateKeyPem)
    checkCertificateChain(chain, parseCertificates(root.certificatePem), nowMs)
  })

  test('is not created for an RSA key that is too short, or for an EC key on an unsupported curve', async () => {
    await expect(
      createCertificateRequest({ privateKeyPem: rsaPem(1024), id: 'a' }),
    ).rejects.toThrow('2,048')
    await expect(
      createCertificateRequest({ privateKeyPem: ecPem('secp256k1'), id: 'a' }),
    ).rejects.toThrow('P-256')
  })

  test('is refused if it is signed with a key other than the one in it', async () => {
    const own = generatePrivateKeyPem()
    const pem = await createCertificateRequest({ privateKeyPem: own, id: 'ctrl4' })
    const der = Buffer.from(pem.replace(/-----[^-]+-----/g, ''), 'base64')
    const at = der.indexOf(spkiOf(own))
    expect(at).toBeGreaterThan(0)
    spkiOf(generatePrivateKeyPem()).copy(der, at)
    const stolen = `-----BEGIN CERTIFICATE REQUEST-----\n${der.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`
    await expect(parseCertificateRequest(stolen)).rejects.toMatchObject({ fault: 'untrusted' })
  })

  test('is refused if its text is damaged, too long, or not exactly one PEM block with a certificate request', async () => {
    const pem = await createCertificateRequest({
      privateKeyPem: generatePrivateKeyPem(),
      id: 'ctrl4',
    })
    const lines = pem.split('\n')
    for (const text of [
      '',
      'hello',
      root.certificatePem,
      pem + pem,
      lines.toSpliced(2, 1).join('\n'),
      `${lines[0] ?? ''}\nAAAA\n${lines.at(-2) ?? ''}\n`,
      pem.padEnd(100_000, ' '),
    ]) {
      await expect(parseCertificateRequest(text), text.slice(0, 60)).rejects.toMatchObject({
        fault: 'unreadable',
      })
    }
  })
})
