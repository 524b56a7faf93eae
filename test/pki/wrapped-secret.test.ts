import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { describe, expect, test } from 'vitest'

import {
  unwrapSecret,
  SECRET_BYTES_MAX,
  WRAPPED_CHARACTERS_MAX,
  wrapSecret,
  WrappedSecretError,
} from '../../src/pki/secrets/wrapped-secret.ts'

const context = { clusterId: 'c', name: 'clusterKey', version: 3, nodeId: 'ctrl1' }
const secret = Uint8Array.from(Buffer.from('a secret of thirty-two bytes ...'))

interface Keys {
  readonly spki: Uint8Array
  readonly pem: string
}

function exported(pair: ReturnType<typeof generateKeyPairSync>): Keys {
  const { publicKey, privateKey } = pair as unknown as {
    readonly publicKey: KeyObject
    readonly privateKey: KeyObject
  }
  return {
    spki: Uint8Array.from(publicKey.export({ type: 'spki', format: 'der' })),
    pem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

const curve = (namedCurve: string): Keys => exported(generateKeyPairSync('ec', { namedCurve }))
const rsa = (modulusLength: number): Keys => exported(generateKeyPairSync('rsa', { modulusLength }))

const p256 = curve('P-256')

test.each([
  ['EC P-256', p256],
  ['EC P-384', curve('P-384')],
  ['RSA 2048', rsa(2048)],
])('only the recipient’s key of type %s can decrypt a wrapped secret', async (_type, keys) => {
  const jwe = await wrapSecret(secret, keys.spki, context)
  expect(await unwrapSecret(jwe, keys.pem, context)).toEqual(secret)
  await expect(unwrapSecret(jwe, curve('P-256').pem, context)).rejects.toThrow(WrappedSecretError)
  expect(jwe).not.toContain(Buffer.from(secret).toString('base64url').slice(0, 20))
})

test.each([
  ['an RSA key of 1,024 bits', () => rsa(1024).spki],
  ['an EC key on secp256k1', () => curve('secp256k1').spki],
  ['an Ed25519 key', () => exported(generateKeyPairSync('ed25519') as never).spki],
  ['bytes that are not a key', () => Uint8Array.of(1, 2, 3)],
  ['a key that is too large', () => new Uint8Array(5000)],
])('a secret cannot be wrapped for %s', async (_name, spki) => {
  await expect(wrapSecret(secret, spki(), context)).rejects.toMatchObject({ fault: 'unreadable' })
})

test.each([
  ['cluster', { ...context, clusterId: 'd' }],
  ['name', { ...context, name: 'issuingAuthority' }],
  ['version', { ...context, version: 2 }],
  ['node', { ...context, nodeId: 'ctrl2' }],
])('a wrapped secret cannot be decrypted in a context with another %s', async (_what, other) => {
  const jwe = await wrapSecret(secret, p256.spki, context)
  await expect(unwrapSecret(jwe, p256.pem, other)).rejects.toThrow('encrypted for another purpose')
})

describe('A wrapped secret that was modified', () => {
  const parts = async (): Promise<string[]> =>
    (await wrapSecret(secret, p256.spki, context)).split('.')

  test('cannot be decrypted, whichever part was modified', async () => {
    const whole = await parts()
    for (const [at, part] of whole.entries()) {
      const middle = Math.floor(part.length / 2)
      const flipped = part[middle] === 'A' ? 'B' : 'A'
      const changed = part.slice(0, middle) + flipped + part.slice(middle + 1)
      const jwe = whole.with(at, changed).join('.')
      await expect(unwrapSecret(jwe, p256.pem, context), `part ${at}`).rejects.toThrow(
        WrappedSecretError,
      )
    }
  })

  test('cannot be decrypted if its header specifies other algorithms or extensions', async () => {
    const whole = await parts()
    const header = JSON.parse(Buffer.from(whole[0] ?? '', 'base64url').toString()) as object
    for (const extra of [
      { alg: 'dir' },
      { alg: 'RSA-OAEP-256' },
      { enc: 'A128GCM' },
      { zip: 'DEF' },
      { crit: ['x'], x: 1 },
      { apu: 'AA' },
      { epk: { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' } },
      { flotilla: { ...context, version: 4 } },
    ]) {
      const changed = Buffer.from(JSON.stringify({ ...header, ...extra })).toString('base64url')
      const jwe = whole.with(0, changed).join('.')
      await expect(unwrapSecret(jwe, p256.pem, context)).rejects.toThrow(WrappedSecretError)
    }
  })

  test('cannot be decrypted if its tag is shortened or its format differs', async () => {
    const whole = await parts()
    const shortTag = whole.with(4, (whole[4] ?? '').slice(0, 11)).join('.')
    const texts = [shortTag, '', 'x', '....', whole.slice(0, 4).join('.'), `${whole.join('.')}.x`]
    for (const text of [...texts, 'A'.repeat(WRAPPED_CHARACTERS_MAX + 1)]) {
      await expect(unwrapSecret(text, p256.pem, context)).rejects.toThrow(WrappedSecretError)
    }
  })
})

test('the size of a secret that can be wrapped is limited', async () => {
  for (const bytes of [0, SECRET_BYTES_MAX + 1]) {
    await expect(wrapSecret(new Uint8Array(bytes), p256.spki, context)).rejects.toThrow('bytes')
  }
})

test('a secret that an earlier version of Flotilla wrapped can be decrypted', async () => {
  const pem = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgKL33qEVSb6Wfeeum
/ArOe+x/k28axyWi6xqgaXNW3l6hRANCAAQSHopyELMDM2zfEwZO5mt9C8chrvHu
jz1AvX6NzJXClgzlWAd4tfp1JO4Zr/6L5R4+My0+kQbcf/Fjx4BHKgwT
-----END PRIVATE KEY-----
`
  const jwe =
    'eyJhbGciOiJFQ0RILUVTK0EyNTZLVyIsImVuYyI6IkEyNTZHQ00iLCJmbG90aWxsYSI6eyJjbHVzdGVySWQiOiJjIiwibmFtZSI6ImNsdXN0ZXJLZXkiLCJ2ZXJzaW9uIjozLCJub2RlSWQiOiJjdHJsMSJ9LCJlcGsiOnsieCI6ImRHdkxBY3ZheE5aZUVQY25wZ2Y0OGZnbmNOWFdHWl9ETGlhMS1nM29TUW8iLCJjcnYiOiJQLTI1NiIsImt0eSI6IkVDIiwieSI6InRfckl5RHpLWlRqY0hOMXNOTHdIZTVyRmFhdFpCeTRILThZdG8wQ2lveXcifX0.y8fzE425lJZUSSfFDxKYfAvnIvvujISiG0LqXQSdGt4M3UhaDWiW1g.kH2zAoCNRDAKTIT7.Xp-7cF-IcncKuY9OED8Kbd3RKTPvFHg-34FWWZnUHFkqvmNLCCZW.XcZ077vAaODG1ar8y0FDSg'
  const opened = await unwrapSecret(jwe, pem, context)
  expect(Buffer.from(opened).toString()).toBe('a secret made by another implementation')
})
