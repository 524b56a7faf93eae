import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  generateFactor,
  decryptFactorSecrets,
  encryptFactorSecrets,
} from '../../src/pki/secrets/factor-secrets.ts'
import {
  encodeBase32,
  equalsInConstantTime,
  generateRecoveryCode,
  totpStepAt,
  findTotpStep,
  totpCode,
} from '../../src/pki/secrets/totp.ts'
import { codeOf, secretOf } from '../support/totp.ts'

/**
 * RFC 6238, appendix B, SHA-1: the secret and, for each Unix time, the last six of the eight
 * digits.
 */
const rfcSecret = Buffer.from('12345678901234567890')
const rfcCodes = [
  [59, '287082'],
  [1_111_111_109, '081804'],
  [1_111_111_111, '050471'],
  [1_234_567_890, '005924'],
  [2_000_000_000, '279037'],
  [20_000_000_000, '353130'],
] as const

test.each(rfcCodes)('the TOTP code at %d s is %s, as in RFC 6238', (seconds, code) => {
  expect(totpCode(rfcSecret, totpStepAt(seconds * 1000))).toBe(code)
})

test.each([
  ['', ''],
  ['f', 'MY'],
  ['fo', 'MZXQ'],
  ['foo', 'MZXW6'],
  ['foob', 'MZXW6YQ'],
  ['fooba', 'MZXW6YTB'],
  ['foobar', 'MZXW6YTBOI'],
])('the base32 encoding of %j is %j, as in RFC 4648 without padding', (text, expected) => {
  expect(encodeBase32(Buffer.from(text))).toBe(expected)
})

test('an authenticator app that reads the provisioning URL generates the same codes as the controller', () => {
  for (let round = 0; round < 200; round += 1) {
    const secret = randomBytes(20)
    const url = `otpauth://totp/x:y?issuer=x&secret=${encodeBase32(secret)}`
    expect(Buffer.from(secretOf(url))).toEqual(secret)
    const step = 50_000_000 + round * 7919
    expect(totpCode(secret, step)).toBe(codeOf(url, step * 30_000))
  }
})

describe('the time step of a TOTP code', () => {
  const nowMs = 1_700_000_000_000
  const now = totpStepAt(nowMs)
  const codeAt = (step: number): string => totpCode(rfcSecret, step)

  test('is found if it is at most one step before or after the current step', () => {
    const found = [-2, -1, 0, 1, 2].map((by) => findTotpStep(rfcSecret, codeAt(now + by), nowMs, 0))
    expect(found).toEqual([null, now - 1, now, now + 1, null])
  })

  test('is not found if it is at or before the last used step', () => {
    const found = [-1, 0, 1].map((by) => findTotpStep(rfcSecret, codeAt(now + by), nowMs, now))
    expect(found).toEqual([null, null, now + 1])
  })

  test('is found only for a text of exactly the six digits of the code', () => {
    const code = codeAt(now)
    for (const text of ['', ` ${code}`, `${code} `, code.slice(1), `${code}0`, '١٢٣٤٥٦']) {
      expect(findTotpStep(rfcSecret, text, nowMs, 0)).toBeNull()
    }
  })
})

test('a recovery code never has the format of a TOTP code', () => {
  const drawn = [Buffer.alloc(6, 31), Buffer.from([0, 26, 27, 31, 1, 2])]
  expect(generateRecoveryCode(() => drawn.shift() ?? Buffer.alloc(0))).toBe('A237BC')
  expect(equalsInConstantTime('ABCDEF', 'abcdef')).toBe(false)
})

describe('an encrypted MFA secret', () => {
  const key = randomBytes(32)
  const context = { clusterId: 'c', identityId: 'i', secretId: 's', codesId: 'k' }
  const factor = generateFactor(20)
  const sealed = encryptFactorSecrets(key, factor, context)

  test('can be decrypted with its key and context', () => {
    expect(decryptFactorSecrets(key, sealed, context)).toEqual(factor)
    expect(factor.secret).toHaveLength(20)
    expect(new Set(factor.recoveryCodes).size).toBe(20)
  })

  test('is different at each encryption, and fits into the size limit of the record', () => {
    expect(encryptFactorSecrets(key, factor, context)).not.toBe(sealed)
    expect(sealed.length).toBeLessThan(1024)
  })

  test.each(Object.keys(context))('cannot be decrypted in a context with another %s', (member) => {
    expect(decryptFactorSecrets(key, sealed, { ...context, [member]: 'another' })).toBeNull()
  })

  test('cannot be decrypted with another key, or with a changed or missing byte', () => {
    expect(decryptFactorSecrets(randomBytes(32), sealed, context)).toBeNull()
    const bytes = Buffer.from(sealed, 'base64url')
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = Buffer.from(bytes)
      changed.writeUInt8(changed.readUInt8(at) ^ 1, at)
      expect(decryptFactorSecrets(key, changed.toString('base64url'), context)).toBeNull()
    }
    for (const end of [0, 12, 28, bytes.length - 1]) {
      const cut = bytes.subarray(0, end).toString('base64url')
      expect(decryptFactorSecrets(key, cut, context)).toBeNull()
    }
  })
})
