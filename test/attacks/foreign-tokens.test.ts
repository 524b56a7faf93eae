import { createPrivateKey, randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import { expect, test } from 'vitest'

import { generatePrivateKeyPem } from '../../src/pki/authority/certificate-request.ts'
import { client, management } from '../api/support/caller.ts'
import { type Detail, shown } from '../api/support/network.ts'
import type { TlsReply } from '../api/support/tls.ts'
import { attackedByCertificates, csrOf, dataOf, PEM, refusal } from './support/certificates.ts'

// The attack: somebody enrolls with a token that is expired, modified, or of another cluster. Only
// clients read the claims of the JWT; a controller uses its own record for the one-time token in
// it.

const attacked = await attackedByCertificates()
const { controller, listener, root, newToken } = attacked

async function bring(token: string, method = 'ott'): Promise<TlsReply> {
  const path = `${client}/enroll?method=${method}&token=${encodeURIComponent(token)}`
  return listener.call({ path, body: await csrOf(generatePrivateKeyPem()), headers: PEM })
}

/** @returns the cost for the controller: number of log entries and of signatures. */
async function costOf(attack: () => Promise<unknown>): Promise<Detail> {
  const before = controller.issuer.orders.length
  const entries = await attacked.entriesOf(attack)
  return { entries, signatures: controller.issuer.orders.length - before }
}

test('an expired enrollment token is refused before a certificate is signed or a log entry is written', async () => {
  const { token } = await newToken({ ott: true })
  controller.clock.advance(4 * 60 * 60_000)
  const cost = await costOf(async () =>
    expect(await bring(token)).toMatchObject(refusal(400, 'ENROLLMENT_EXPIRED')),
  )
  expect(cost).toEqual({ entries: 0, signatures: 0 })
  root.token = controller.openSession('admin-id')
})

test('an enrollment token for a password cannot enroll a certificate, and is refused before a certificate is signed or a log entry is written', async () => {
  const { token } = await newToken({ updb: 'somebody' })
  const cost = await costOf(async () =>
    expect(await bring(token)).toMatchObject(refusal(400, 'INVALID_ENROLL_METHOD')),
  )
  expect(cost).toEqual({ entries: 0, signatures: 0 })
})

test('only the exact ID of an enrollment JWT is accepted as its token: neither the JWT itself, nor a JWT of another cluster, nor a modified ID', async () => {
  const { identityId, token } = await newToken({ ott: true })
  const { enrollment } = await shown(root, `${management}/identities/${identityId}`)
  const jwt = String((enrollment as { ott: Detail }).ott['jwt'])
  const foreign = await new SignJWT({ em: 'ott', jti: token, sub: 'admin-id' })
    .setProtectedHeader({ alg: 'ES256' })
    .sign(createPrivateKey(generatePrivateKeyPem()))
  const edited = token.replace(/^./, (first) => (first === '0' ? '1' : '0'))
  const spelled = [token.toUpperCase(), ` ${token}`, `${token}\0`, `${token}%00`, `{${token}}`]
  const cost = await costOf(async () => {
    for (const text of [jwt, foreign, edited, randomUUID(), ...spelled]) {
      if (text === token) continue
      expect(await bring(text), text).toMatchObject(refusal(400, 'INVALID_ENROLLMENT_TOKEN'))
    }
  })
  expect(cost).toEqual({ entries: 0, signatures: 0 })
  dataOf(await bring(token))
})
