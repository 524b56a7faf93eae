import { expect, test } from 'vitest'

import { generatePrivateKeyPem } from '../../src/pki/authority/certificate-request.ts'
import { client, management } from '../api/support/caller.ts'
import { listed } from '../api/support/network.ts'
import type { TlsReply } from '../api/support/tls.ts'
import { attackedByCertificates, csrOf, dataOf, heldTogether, PEM } from './support/certificates.ts'

// The attack: somebody who has seen another's token presents it to a second controller at the same
// moment, after it was refreshed, as it expires, or after it was used.

const attacked = await attackedByCertificates()
const { controller, listener, root, newToken } = attacked

async function bring(token: string): Promise<TlsReply> {
  const path = `${client}/enroll?method=ott&token=${token}`
  return listener.call({ path, body: await csrOf(generatePrivateKeyPem()), headers: PEM })
}

const credentialsOf = (identityId: string) =>
  listed(root, `${management}/identities/${identityId}/authenticators`)

test('a token that two controllers have verified enrolls one key', async () => {
  const { identityId, token } = await newToken({ ott: true })
  heldTogether(controller.issuer, 'identity', 2)
  const replies = await Promise.all([bring(token), bring(token)])
  expect(replies.map(({ status }) => status).sort()).toEqual([200, 400])
  expect(await credentialsOf(identityId)).toHaveLength(1)
})

test('a token that was verified, and refreshed before its use, enrolls no identity', async () => {
  const { identityId, id, token } = await newToken({ ott: true })
  const expiresAt = new Date(attacked.nowMs() + 60_000).toISOString()
  heldTogether(controller.issuer, 'identity', 1, () =>
    root.call('POST', `${management}/enrollments/${id}/refresh`, { expiresAt }),
  )
  expect((await bring(token)).status).toBe(400)
  expect(await credentialsOf(identityId)).toHaveLength(0)
})

test('a token that expires between its check and its use enrolls no identity', async () => {
  const { identityId, token } = await newToken({ ott: true })
  heldTogether(controller.issuer, 'identity', 1, () => controller.clock.advance(4 * 60 * 60_000))
  expect((await bring(token)).status).toBe(400)
  root.token = controller.openSession('admin-id')
  expect(await credentialsOf(identityId)).toHaveLength(0)
})

test('a used token reveals its certificate only to the holder of its key', async () => {
  const { token } = await newToken({ ott: true })
  dataOf(await bring(token))
  const again = await bring(token)
  expect(again.status).toBe(400)
  expect(again.text).not.toContain('BEGIN CERTIFICATE')
})
