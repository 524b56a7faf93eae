import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'

import { client, management } from '../api/support/caller.ts'
import { shown } from '../api/support/network.ts'
import { clientKey } from '../api/support/tls.ts'
import { attackedByCertificates, dataOf } from './support/certificates.ts'

// The attack: a caller sends a text that the controller treats as something else: a nonce that is
// in fact a token, which the controller would sign, or a name with placeholders, which the
// controller would replace.

const attacked = await attackedByCertificates()
const { controller, listener, root } = attacked

test('in response to an enrollment challenge, a controller signs only a nonce', async () => {
  const keyId = String(controller.parts.jwt.publicJwk()['kid'])
  const encoded = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url')
  const jwt = `${encoded({ alg: 'ES256', kid: keyId })}.${encoded({ em: 'ott', sub: 'admin-id' })}`
  const nonce = randomUUID()
  for (const text of [jwt, `urn:uuid:${nonce}`, `${nonce}.${nonce}`, `${nonce}\n`, '']) {
    const body = { keyId, nonce: text }
    const reply = await listener.call({ path: `${client}/enroll/challenge`, body })
    expect(reply.status, text).toBe(400)
  }
  const body = { keyId, nonce }
  expect((await listener.call({ path: `${client}/enroll/challenge`, body })).status).toBe(200)
})

test('in the name format of a CA, placeholders inside inserted values are not replaced', async () => {
  const { id, key } = await attacked.verifiedCa({
    identityNameFormat: '[commonName]/[requestedName]',
  })
  const by = await clientKey(key, '[caId] [identityId]', attacked.nowMs())
  const body = { name: '[commonName] $& $1' }
  dataOf(await listener.call({ path: `${client}/enroll?method=ca`, by, body }))
  const { identityId } = dataOf(await attacked.logIn(by))
  const { name } = await shown(root, `${management}/identities/${String(identityId)}`)
  expect(name).toBe('[caId] [identityId]/[commonName] $& $1')
  expect(name).not.toContain(id)
})
