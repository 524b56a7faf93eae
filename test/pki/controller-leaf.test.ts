import { expect, test } from 'vitest'

import { checkClientPath } from '../../src/pki/verify/controller-leaf.ts'
import { makeAuthority, makeClient, testNowMs } from './support/fixtures.ts'

const root = makeAuthority('root')
const policy = makeAuthority('policy', { issuer: root })
const issuing = makeAuthority('issuing', { issuer: policy })
const leaf = makeClient('ctrl1', issuing).certificate
const foreign = Array.from(
  { length: 20 },
  (_, at) => makeAuthority(`of another department ${at}`, { issuer: root }).certificate,
)

test('the path from a controller’s certificate to the root is found in a CA file with many unrelated intermediates', () => {
  const anchors = [...foreign, issuing.certificate, policy.certificate, root.certificate]
  expect(() => checkClientPath([leaf], anchors, testNowMs)).not.toThrow()
})

test('a controller’s certificate is refused if the CA file lacks an intermediate of its path', () => {
  const anchors = [...foreign, issuing.certificate, root.certificate]
  expect(() => checkClientPath([leaf], anchors, testNowMs)).toThrow(
    'the certificate does not lead to any',
  )
})
