import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { TokenSigner } from '../../src/api/auth/token.ts'
import { newClusterKey, rotateClusterKey } from '../../src/pki/cluster-key.ts'
import type { ClusterKey } from '../../src/pki/cluster-key.ts'

const sessionId = 'Ab3-_kdjeiwo'

test('a token holds key version, session id and an HMAC-SHA256 over the id', () => {
  const key = newClusterKey()
  const signer = new TokenSigner(() => key)
  const mac = createHmac('sha256', Buffer.from(key[0].secret)).update(sessionId).digest('base64url')
  expect(signer.tokenOf(sessionId)).toBe(`1.${sessionId}.${mac}`)
  expect(signer.sessionIdOf(signer.tokenOf(sessionId))).toBe(sessionId)
})

test('a token of another cluster, a changed one and any other text are refused', () => {
  const key = newClusterKey()
  const signer = new TokenSigner(() => key)
  const other = new TokenSigner(() => newClusterKey())
  const token = signer.tokenOf(sessionId)
  const [version = '', , mac = ''] = token.split('.')
  const flipped = (mac.startsWith('A') ? 'B' : 'A') + mac.slice(1)
  const forged = [
    other.tokenOf(sessionId),
    `${version}.${sessionId}.${flipped}`,
    `${version}.Bb3-_kdjeiwo.${mac}`,
    `2.${sessionId}.${mac}`,
    `0.${sessionId}.${mac}`,
    `${version}.${sessionId}.`,
    `${version}.${sessionId}.${mac}=`,
    `${version}.${sessionId}.${mac}.x`,
    `${version}..${mac}`,
    'eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.',
    '',
    'x'.repeat(100_000),
  ]
  for (const text of forged) expect(signer.sessionIdOf(text), text.slice(0, 80)).toBeNull()
})

test('after a rotation new tokens are signed by the new version and old ones still stand', () => {
  let key: ClusterKey = newClusterKey()
  const signer = new TokenSigner(() => key)
  const before = signer.tokenOf(sessionId)
  key = rotateClusterKey(key)
  const after = signer.tokenOf(sessionId)
  expect(after.startsWith('2.')).toBe(true)
  expect(signer.sessionIdOf(before)).toBe(sessionId)
  expect(signer.sessionIdOf(after)).toBe(sessionId)
  for (let rotation = 0; rotation < 8; rotation += 1) key = rotateClusterKey(key)
  expect(signer.sessionIdOf(before)).toBeNull()
})
