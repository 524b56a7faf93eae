import { webcrypto } from 'node:crypto'
import { expect, test } from 'vitest'

import {
  type CertificateWithKey,
  issueLeaf,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import {
  BasicConstraintsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '../../src/pki/authority/x509.ts'
import { Extension } from '@peculiar/x509'
import { newIdentity } from '../api/support/network.ts'
import { clientKey } from '../api/support/tls.ts'
import {
  attackedByCertificates,
  COMMON_NAME,
  DAY_MS,
  dataOf,
  notLoggedIn,
} from './support/certificates.ts'

// The attack: the holder of one certificate of a CA signs other certificates with it, and acts for
// every identity for which the CA may vouch: with a certificate that is not a CA certificate, below
// an authority that permits no CA below it, and outside of its permitted names.

const attacked = await attackedByCertificates()
const { root } = attacked
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const NAME_CONSTRAINTS = '2.5.29.30'

/** Signs a certificate whose key usage permits signing, with the given extensions. */
async function below(
  issuer: CertificateWithKey,
  extensions: readonly Extension[],
  name = 'below',
): Promise<CertificateWithKey> {
  const { subtle } = webcrypto
  const keys = await subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const pkcs8 = Buffer.from(issuer.privateKeyPem.replace(/-----[A-Z ]+-----|\s/g, ''), 'base64')
  const signingKey = await subtle.importKey('pkcs8', pkcs8, ALGORITHM, false, ['sign'])
  const { notBeforeMs, notAfterMs } = validityStartingAt(attacked.nowMs(), 30 * DAY_MS)
  const certificate = await X509CertificateGenerator.create({
    serialNumber: '0102030405',
    subject: `CN=${name}`,
    issuer: new X509Certificate(issuer.certificatePem).subjectName,
    notBefore: new Date(notBeforeMs),
    notAfter: new Date(notAfterMs),
    signingAlgorithm: ALGORITHM,
    signingKey,
    publicKey: keys.publicKey,
    extensions: [new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true), ...extensions],
  })
  const key = Buffer.from(await subtle.exportKey('pkcs8', keys.privateKey)).toString('base64')
  const lines = key.replace(/.{1,64}/g, '$&\n')
  return {
    certificatePem: `${certificate.toString('pem')}\n`,
    privateKeyPem: `-----BEGIN PRIVATE KEY-----\n${lines}-----END PRIVATE KEY-----\n`,
  }
}

/** `permitted`: only DNS names below this domain. */
function onlyNamesOf(domain: string): Extension {
  const wrap = (tag: number, contents: Buffer): Buffer =>
    Buffer.concat([Buffer.of(tag, contents.length), contents])
  const subtrees = wrap(0x30, wrap(0x82, Buffer.from(domain)))
  return new Extension(NAME_CONSTRAINTS, true, wrap(0x30, wrap(0xa0, subtrees)))
}

const authority = (pathLength?: number): Extension =>
  new BasicConstraintsExtension(true, pathLength, true)

/**
 * A CA that identifies a client by the common name of its leaf, with an identity that may log in.
 */
async function speaking(name: string): Promise<CertificateWithKey> {
  const { key } = await attacked.verifiedCa({
    externalIdClaim: COMMON_NAME,
  })
  await newIdentity(root, name, { externalId: name })
  dataOf(await attacked.logIn(await clientKey(key, name, attacked.nowMs())))
  return key
}

/**
 * Response to a log-in with a leaf signed by `issuer`, presented with the certificates between the
 * leaf and the CA.
 */
async function logInBelow(
  issuer: CertificateWithKey,
  name: string,
  between = issuer.certificatePem,
) {
  const leaf = await clientKey(issuer, name, attacked.nowMs())
  const [own = ''] = leaf.certificatePem.split(/(?<=-----END CERTIFICATE-----\n)/)
  return attacked.logIn({ ...leaf, certificatePem: own + between })
}

test('a leaf issued by a certificate that is not a CA logs in no identity', async () => {
  const ca = await speaking('unit 1')
  const between = await below(ca, [new BasicConstraintsExtension(false, undefined, true)])
  expect(await logInBelow(between, 'unit 1')).toMatchObject(notLoggedIn)
  dataOf(await logInBelow(await below(ca, [authority(0)]), 'unit 1'))
})

test('a leaf that exceeds the path length constraint of its CA logs in no identity', async () => {
  const ca = await speaking('unit 2')
  const first = await below(ca, [authority(0)])
  // A certificate with the same name would count as the same authority with another key.
  const second = await below(first, [authority(0)], 'further below')
  const between = second.certificatePem + first.certificatePem
  expect(await logInBelow(second, 'unit 2', between)).toMatchObject(notLoggedIn)
})

test('a leaf with a name outside the name constraints of its CA cannot log in', async () => {
  const ca = await speaking('unit 3')
  const issuer = await below(ca, [authority(0), onlyNamesOf('corp.test')])
  const named = async (host: string) => {
    const validity = validityStartingAt(attacked.nowMs(), DAY_MS)
    const leaf = await issueLeaf({
      issuer,
      commonName: 'unit 3',
      uris: [],
      hosts: [host],
      usages: ['client'],
      validity,
    })
    const [own = ''] = leaf.certificatePem.split(/(?<=-----END CERTIFICATE-----\n)/)
    return attacked.logIn({ ...leaf, certificatePem: own + issuer.certificatePem })
  }
  expect(await named('elsewhere.test')).toMatchObject(notLoggedIn)
  dataOf(await named('unit.corp.test'))
})
