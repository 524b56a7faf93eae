import { expect, test } from 'vitest'

import { generatePrivateKeyPem } from '../../src/pki/authority/certificate-request.ts'
import { client, management } from '../api/support/caller.ts'
import { attackedByCertificates, csrOf, dataOf, refusal } from './support/certificates.ts'

// The attack: somebody with the first factor of another identity, and without the second, requests
// certificates: one for the session, with which routers would admit them, or a renewed one for the
// credential.

const attacked = await attackedByCertificates()
const { controller, listener, root } = attacked

test('a session without its second factor gets no certificate', async () => {
  const { identityId, authenticatorId, key: by } = await attacked.newDevice()
  const token = String(dataOf(await attacked.logIn(by))['token'])
  const csr = await csrOf(generatePrivateKeyPem())
  const own = `${client}/current-identity/authenticators/${authenticatorId}/extend`
  const asked = [
    { path: `${client}/current-api-session/certificates`, body: { csr }, token, by },
    { path: own, body: { clientCertCsr: csr }, token, by },
  ]
  const policy = await root.call('PATCH', `${management}/auth-policies/default`, {
    secondary: { requireTotp: false },
  })
  expect(policy.status, policy.text).toBe(200)
  const [ofSession, extension] = await Promise.all(asked.map((one) => listener.call(one)))
  expect([ofSession?.status, extension?.status]).toEqual([201, 200])

  const { body: made } = await root.call('GET', `${management}/auth-policies/default`)
  const { primary } = made.data as { primary: object }
  const stricter = { name: 'two factors', primary, secondary: { requireTotp: true } }
  const created = await root.call('POST', `${management}/auth-policies`, stricter)
  const { id: authPolicyId } = created.body.data as { id: string }
  const path = `${management}/identities/${identityId}`
  expect((await root.call('PATCH', path, { authPolicyId })).status).toBe(200)
  const partial = String(dataOf(await attacked.logIn(by))['token'])
  const records = [...controller.state.storedRecords()]
  const signatures = controller.issuer.orders.length
  for (const one of asked) {
    expect(await listener.call({ ...one, token: partial }), one.path).toMatchObject(
      refusal(401, 'UNAUTHORIZED'),
    )
  }
  expect([...controller.state.storedRecords()]).toEqual(records)
  expect(controller.issuer.orders).toHaveLength(signatures)
})
