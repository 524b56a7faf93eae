import { createSecretKey, generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { selectClaim, selectTextClaim } from '../../src/auth/tokens/claims.ts'
import { parseBearerTokens, parseUnverifiedToken } from '../../src/auth/tokens/unverified-token.ts'
import {
  supportedSignatureAlgorithms,
  verificationKeyFromCertificate,
  verificationKeyFromJwk,
} from '../../src/auth/tokens/verification-key.ts'
import type { Json } from '../../src/lib/text/canonical-json.ts'
import { newCa } from '../support/authorities.ts'
import { ecKey, jwkOf, rsaKey } from '../support/identity-provider.ts'

const ec = jwkOf(ecKey('ec'))
const rsa = jwkOf(rsaKey('rsa'))
const algorithms = (jwk: object): string[] | null => {
  const key = verificationKeyFromJwk(jwk as Json)
  return key === null ? null : [...key.algorithms]
}

describe('a verification key of a provider', () => {
  test('allows only the algorithms that match its type', () => {
    expect(algorithms(ec)).toEqual(['ES256'])
    expect(algorithms(rsa)).toEqual(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'])
    expect(algorithms({ ...rsa, alg: 'PS384' })).toEqual(['PS384'])
    for (const [namedCurve, algorithm] of [
      ['P-384', 'ES384'],
      ['P-521', 'ES512'],
    ] as const) {
      const { publicKey } = generateKeyPairSync('ec', { namedCurve })
      expect([...supportedSignatureAlgorithms(publicKey)]).toEqual([algorithm])
    }
  })

  test.each([
    ['a symmetric key', { kty: 'oct', k: 'AAAA', kid: 'x' }],
    ['short', jwkOf(rsaKey('short', 1024))],
    ['for encryption', { ...rsa, use: 'enc' }],
    ['for an operation other than verification', { ...rsa, key_ops: ['wrapKey'] }],
    ['without a key id', { ...rsa, kid: undefined }],
    ['for an algorithm that does not match its type', { ...ec, alg: 'RS256' }],
    ['for a MAC algorithm', { ...rsa, alg: 'HS256' }],
    ['without its key parameters', { kty: 'RSA', kid: 'x' }],
    ['malformed', { ...ec, x: 'AA' }],
    ['on an unsupported curve', { ...ec, crv: 'secp256k1' }],
    ['with an invalid certificate', { ...rsa, x5c: ['AAAA'] }],
  ])('is unusable if it is %s', (_what, jwk) => {
    expect(verificationKeyFromJwk(JSON.parse(JSON.stringify(jwk)) as Json)).toBe(null)
  })

  test('is rejected if it is not an object', () => {
    for (const jwk of [null, 'key', 1, [rsa] as unknown as Json])
      expect(verificationKeyFromJwk(jwk)).toBe(null)
    expect([...supportedSignatureAlgorithms(createSecretKey(Buffer.alloc(32)))]).toEqual([])
  })

  test('is valid between the start and end dates of the certificate that contains it', async () => {
    const nowMs = Date.UTC(2026, 5, 1)
    const { certificatePem } = await newCa('provider', nowMs)
    const key = verificationKeyFromCertificate(certificatePem, 'kid')
    expect(key?.notBeforeMs).toBeLessThanOrEqual(nowMs)
    expect(key?.notAfterMs).toBeGreaterThan(nowMs)
    expect(verificationKeyFromCertificate('no certificate', 'kid')).toBe(null)
  })

  test('may be given as a certificate', async () => {
    const { certificatePem } = await newCa('provider', Date.now())
    const der = certificatePem.replace(/-----[^-]+-----|\s/g, '')
    expect(verificationKeyFromJwk({ kty: 'EC', kid: 'x', x5c: [der] })).not.toBe(null)
    expect(algorithms({ kid: 'x', x5c: [der] }), 'that alone').toEqual(['ES256'])
    expect(verificationKeyFromJwk({ kty: 'oct', kid: 'x', x5c: [der] })).toBe(null)
  })

  test('may omit its use, or state it in each form that providers use', () => {
    for (const rest of [
      { alg: '', use: '', key_ops: null },
      { alg: null, use: null, key_ops: [] },
      { key_ops: ['verify'] },
      { key_ops: ['sign'] },
    ]) {
      expect(algorithms({ ...rsa, ...rest })).toEqual(algorithms(rsa))
    }
    for (const rest of [{ key_ops: 'verify' }, { key_ops: ['encrypt', 'wrapKey'] }, { use: 'x' }]) {
      expect(verificationKeyFromJwk({ ...rsa, ...rest } as Json)).toBe(null)
    }
  })
})

describe('a claim selector (the path of a claim in a token)', () => {
  const claims = {
    sub: 'a',
    'x/y': 'b',
    'x~y': 'c',
    deep: { list: ['d', { e: 'f' }] },
    n: 1,
    '': '',
  }

  test.each([
    ['sub', 'a'],
    ['/sub', 'a'],
    ['/x~1y', 'b'],
    ['x/y', undefined],
    ['x~1y', 'b'],
    ['deep/list/0', 'd'],
    ['/x~0y', 'c'],
    ['/deep/list/0', 'd'],
    ['/deep/list/1/e', 'f'],
    ['/deep/list/2', undefined],
    ['/deep/list/-1', undefined],
    ['/deep/list/00', undefined],
    ['/deep/list/length', undefined],
    ['/sub/length', undefined],
    ['/toString', undefined],
    ['/', undefined],
    ['', undefined],
    [`/${'a/'.repeat(20)}`, undefined],
  ])('%s selects the value %s', (selector, value) => {
    expect(selectClaim(claims, selector)).toBe(value)
  })

  test('returns only non-empty strings', () => {
    expect(selectTextClaim(claims, 'sub')).toBe('a')
    for (const selector of ['n', '/deep', '/deep/list', 'nothing']) {
      expect(selectTextClaim(claims, selector)).toBe(null)
    }
  })

  test('takes linear time on an adversarial selector', () => {
    const hostile = `/${'~'.repeat(2000)}${'~0'.repeat(1000)}!`
    const costOf = (selector: string): number => {
      const before = process.threadCpuUsage()
      for (let at = 0; at < 1000; at += 1) selectClaim(claims, selector)
      return process.threadCpuUsage(before).user / 1000
    }
    const plain = costOf(`/${'a'.repeat(hostile.length - 1)}`)
    expect(costOf(hostile)).toBeLessThan(1000 + 20 * plain)
  })
})

describe('parsing a token', () => {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const head = part({ alg: 'ES256', kid: 'k' })
  const body = part({ iss: 'i' })

  test('returns the algorithm, key ID and issuer', () => {
    expect(parseUnverifiedToken(`${head}.${body}.AA`)).toMatchObject({
      algorithm: 'ES256',
      kid: 'k',
      issuer: 'i',
    })
  })

  test.each([
    ['two parts', `${head}.${body}`],
    ['no signature', `${head}.${body}.`],
    ['four parts', `${head}.${body}.AA.AA`],
    ['a header that is a list', `${part([])}.${body}.AA`],
    ['a header that is not JSON', `AAAA.${body}.AA`],
    ['claims that are a string', `${head}.${part('iss')}.AA`],
    ['no key id', `${part({ alg: 'ES256' })}.${body}.AA`],
    [
      'an issuer that is inherited from a prototype',
      `${head}.${part({ ['__proto__']: { iss: 'i' } })}.AA`,
    ],
  ])('is refused with %s', (_what, text) => {
    expect(parseUnverifiedToken(text)).toBe(null)
  })
})

test('only the first three bearer tokens of a request are read, and no other authorization scheme', () => {
  expect(
    parseBearerTokens([
      'Basic abc',
      'Bearer',
      'Bearer ',
      'bearer a',
      'BEARER  b ',
      'Bearer c',
      'Bearer d',
    ]),
  ).toEqual(['a', 'b', 'c'])
})
