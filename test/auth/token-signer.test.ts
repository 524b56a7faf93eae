import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { SessionTokenSigner } from '../../src/auth/sessions/session-token-signer.ts'
import { requirePresent } from '../../src/lib/assert.ts'
import { newClusterKey } from '../../src/pki/secrets/cluster-key.ts'
import { TestTokenKeys } from '../support/token-keys.ts'

const sessionId = 'Ab3-_kdjeiwo'
const nowMs = 1_700_000_000_000

function newSigner(): { readonly keys: TestTokenKeys; readonly signer: SessionTokenSigner } {
  const keys = new TestTokenKeys()
  return { keys, signer: new SessionTokenSigner(keys) }
}

test('a session token contains the key version, the session id and an HMAC-SHA256 over the id', () => {
  const { keys, signer } = newSigner()
  const { secret } = requirePresent(keys.clusterKeys()[0], 'a key')
  const mac = createHmac('sha256', Buffer.from(secret)).update(sessionId).digest('base64url')
  expect(signer.tokenOf(sessionId)).toBe(`1.${sessionId}.${mac}`)
  expect(signer.judge(signer.tokenOf(sessionId), nowMs)).toEqual({
    sessionId,
    version: 1,
    isOfOldKey: false,
  })
})

test('the tokens of two sessions differ, in whatever order they are created', () => {
  const { signer } = newSigner()
  const [one, other] = [signer.tokenOf(sessionId), signer.tokenOf('Bb3-_kdjeiwo')]
  expect(other).not.toBe(one)
  expect(signer.tokenOf(sessionId)).toBe(one)
  expect(signer.tokenOf(sessionId)).toBe(one)
  expect(signer.judge(other, nowMs)).toMatchObject({ sessionId: 'Bb3-_kdjeiwo' })
  expect(signer.judge(one, nowMs)).toMatchObject({ sessionId })
})

test('a session token from another cluster, a modified token and any other string are refused', () => {
  const { signer } = newSigner()
  const { signer: other } = newSigner()
  const token = signer.tokenOf(sessionId)
  const [version = '', , mac = ''] = token.split('.')
  const flipped = (mac.startsWith('A') ? 'B' : 'A') + mac.slice(1)
  const forged = [
    other.tokenOf(sessionId),
    `${version}.${sessionId}.${flipped}`,
    `${version}.Bb3-_kdjeiwo.${mac}`,
    `0.${sessionId}.${mac}`,
    `${version}.${sessionId}.`,
    `${version}.${sessionId}.${mac}=`,
    `${version}.${sessionId}.${mac}.x`,
    `${version}..${mac}`,
    'eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.',
    '',
    'x'.repeat(100_000),
  ]
  for (const text of forged) expect(signer.judge(text, nowMs), text.slice(0, 80)).toBe('invalid')
  expect(signer.judge(`2.${sessionId}.${mac}`, nowMs)).toBe('unknown-version')
})

test('after a rotation new session tokens use the new key version, and tokens of the old version are valid and marked as old until the overlap ends', () => {
  const { keys, signer } = newSigner()
  const before = signer.tokenOf(sessionId)
  expect(signer.judge(before, nowMs)).toMatchObject({ isOfOldKey: false })
  keys.rotate(nowMs + 1000)
  const after = signer.tokenOf(sessionId)
  expect(after.startsWith('2.')).toBe(true)
  expect(signer.judge(after, nowMs + 5000)).toMatchObject({ isOfOldKey: false })
  expect(signer.judge(before, nowMs + 999)).toEqual({ sessionId, version: 1, isOfOldKey: true })
  // The token was verified before and is remembered; its expiry still counts.
  expect(signer.judge(before, nowMs + 1000)).toBe('invalid')
})

test('session tokens of a removed key version are invalid, even with a correct signature', () => {
  const { keys, signer } = newSigner()
  const before = signer.tokenOf(sessionId)
  expect(signer.judge(before, nowMs)).not.toBe('invalid')
  keys.rotate(null)
  expect(signer.judge(before, nowMs)).toBe('invalid')
})

test('a session token is verified only with the key version that it contains', () => {
  const { keys, signer } = newSigner()
  const [, , oldMac] = signer.tokenOf(sessionId).split('.')
  keys.rotate(nowMs + 1000)
  expect(signer.judge(`2.${sessionId}.${oldMac ?? ''}`, nowMs)).toBe('invalid')
})

test('without a key, session tokens can be neither signed nor verified', () => {
  const { keys, signer } = newSigner()
  const token = signer.tokenOf(sessionId)
  keys.set([])
  expect(signer.judge(token, nowMs)).toBe('no-key')
  expect(signer.judge('x', nowMs)).toBe('invalid')
  expect(() => signer.tokenOf(sessionId)).toThrow('has no key of session tokens yet')
  keys.set([
    { version: 1, secret: newClusterKey(), isExposed: false, overlapEndsAtMs: nowMs + 1000 },
  ])
  expect(() => signer.requireKey()).toThrow('has no key of session tokens yet')
})
