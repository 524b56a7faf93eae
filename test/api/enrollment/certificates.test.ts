import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { formatUuid, newUuidv7 } from '../../../src/lib/text/uuid.ts'
import type { CertificateWithKey } from '../../../src/pki/authority/authority.ts'
import { parseCertificates } from '../../../src/pki/certificate.ts'
import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../../../src/pki/authority/certificate-request.ts'
import { sessionCertificatesMax } from '../../../src/fsm/enrollment/certificate.ts'
import { CallerOf, client, management } from '../support/caller.ts'
import { admin, startController, type TestController } from '../support/controller.ts'
import { type Detail, newIdentity, shown } from '../support/network.ts'
import { clientKey, TlsListener, type TlsReply } from '../support/tls.ts'

// Goal: the holder of a certificate can log in as long as the certificate and its records are
// valid, and can extend it. Method: the real listener, over TLS; each test enrolls a separate
// device.

const DAY_MS = 24 * 60 * 60_000
const refusal = (status: number, code: string): object => ({ status, body: { error: { code } } })

let controller: TestController
let listener: TlsListener
let caller: CallerOf
let device: CertificateWithKey
let identityId = ''
let authenticatorId = ''
let serial = 0

beforeAll(async () => {
  controller = await startController()
  listener = await TlsListener.open(controller)
})
afterAll(async () => {
  await listener.close()
  await controller.close()
})
beforeEach(async () => {
  caller = new CallerOf(controller)
  await caller.logIn(admin)
  serial += 1
  identityId = await newIdentity(caller, `device ${serial}`, { enrollment: { ott: true } })
  const identity = await shown(caller, `${management}/identities/${identityId}`)
  const { token } = (identity['enrollment'] as { ott: Detail }).ott
  const privateKeyPem = generatePrivateKeyPem()
  const body = { clientCsr: await createCertificateRequest({ privateKeyPem, id: 'x' }) }
  const path = `${client}/enroll?token=${String(token)}`
  const { cert } = dataOf(await listener.call({ path, body }))
  device = { certificatePem: String(cert), privateKeyPem }
  const enrolled = await shown(caller, `${management}/identities/${identityId}`)
  authenticatorId = String((enrolled['authenticators'] as { cert: Detail }).cert['id'])
})

function dataOf(reply: TlsReply, status = 200): Detail {
  expect(reply.status, reply.text).toBe(status)
  return reply.body.data as Detail
}
const logIn = (by: CertificateWithKey | null, body: unknown = {}): Promise<TlsReply> =>
  listener.call({ path: `${client}/authenticate?method=cert`, by, body })
const requestId = (): Record<string, string> => ({
  'net-request-id': formatUuid(newUuidv7(controller.clock.nowMs())),
})
const isRefused = refusal(401, 'INVALID_AUTH')

describe('a log-in by certificate', () => {
  test('needs no body, and stores client details from a body; repeated details write no new revision of the identity', async () => {
    expect(
      (await listener.call({ path: `${client}/authenticate?method=cert`, by: device })).status,
    ).toBe(200)
    const sdkInfo = { type: 'probe', appID: 'a', version: '1' }
    const session = dataOf(
      await logIn(device, { sdkInfo, envInfo: { os: 'plan9', deviceId: 'x' } }),
    )
    expect(session).toMatchObject({ identityId, authenticatorId })
    const identity = await shown(caller, `${management}/identities/${identityId}`)
    expect(identity).toMatchObject({
      sdkInfo: { type: 'probe', appId: 'a' },
      envInfo: { os: 'plan9' },
    })
    const before = controller.state.get('identity', identityId)?.revision
    dataOf(await logIn(device, { sdkInfo, envInfo: { os: 'plan9' } }))
    expect(controller.state.get('identity', identityId)?.revision).toBe(before)
  })

  test('needs one log entry and no read-index round', async () => {
    const before = controller.machine.appliedIndex
    const { readRounds } = controller.cluster
    dataOf(await logIn(device))
    expect(controller.machine.appliedIndex - before).toBe(1)
    expect(controller.cluster.readRounds).toBe(readRounds)
  })

  test('is refused without a certificate, and with a certificate that the network issued for an identity but that is no authenticator of this identity', async () => {
    expect(await logIn(null)).toMatchObject(isRefused)
    const now = controller.clock.nowMs()
    const { issuing } = controller.authorities
    const stray = await clientKey(issuing, identityId, now, [
      `spiffe://test.internal/identity/${identityId}`,
    ])
    expect(await logIn(stray)).toMatchObject(isRefused)
  })

  test('accepts a certificate with or without the intermediates of its chain; without them, the response reports an improper chain', async () => {
    expect(dataOf(await logIn(device))).not.toHaveProperty('improperClientCertChain')
    const [leaf] = parseCertificates(device.certificatePem)
    const bare = { ...device, certificatePem: leaf.pem }
    expect(dataOf(await logIn(bare))).toMatchObject({ improperClientCertChain: true })
    const known = await shown(caller, `${management}/authenticators/${authenticatorId}`)
    expect(known).not.toHaveProperty('lastAuthResolvedToRoot')
    dataOf(await logIn(device))
    expect(await shown(caller, `${management}/authenticators/${authenticatorId}`)).toMatchObject({
      lastAuthResolvedToRoot: true,
    })
  })

  test('is refused while the identity is disabled, as are the identity’s existing sessions', async () => {
    const token = String(dataOf(await logIn(device))['token'])
    const own = { method: 'GET', path: `${client}/current-identity`, token }
    const path = `${management}/identities/${identityId}`
    expect((await caller.call('POST', `${path}/disable`, { durationMinutes: 0 })).status).toBe(200)
    expect(await logIn(device)).toMatchObject(isRefused)
    expect((await listener.call(own)).status).toBe(401)
    expect((await caller.call('POST', `${path}/enable`)).status).toBe(200)
    dataOf(await logIn(device))
  })

  test('follows the auth policy, and accepts an expired certificate only if the policy allows this', async () => {
    const rule = async (cert: Detail): Promise<void> => {
      const path = `${management}/auth-policies/default`
      const reply = await caller.call('PATCH', path, { primary: { cert } })
      expect(reply.status, reply.text).toBe(200)
    }
    await rule({ allowed: false })
    expect(await logIn(device)).toMatchObject(isRefused)
    await rule({ allowed: true, allowExpiredCerts: false })
    dataOf(await logIn(device))
    controller.clock.advance(366 * DAY_MS)
    await caller.logIn(admin)
    expect(await logIn(device)).toMatchObject(isRefused)
    await rule({ allowExpiredCerts: true })
    dataOf(await logIn(device))
  })

  test('is refused once the authenticator is deleted, which also ends its sessions', async () => {
    const token = String(dataOf(await logIn(device))['token'])
    const path = `${management}/authenticators/${authenticatorId}`
    expect((await caller.call('DELETE', path)).status).toBe(200)
    expect(await logIn(device)).toMatchObject(isRefused)
    const own = { method: 'GET', path: `${client}/current-identity`, token }
    expect((await listener.call(own)).status).toBe(401)
  })
})

describe('an extended certificate', () => {
  const own = (verb: string): string =>
    `${client}/current-identity/authenticators/${authenticatorId}/${verb}`

  test('replaces the current certificate only after its holder has presented the new one', async () => {
    const { rollKeys } = { rollKeys: true }
    const request = `${management}/authenticators/${authenticatorId}/request-extend`
    expect((await caller.call('POST', request, { rollKeys })).status).toBe(200)
    const asked = await logIn(device)
    expect(asked.headers['ziti-authenticator-extend-requested']).toBe('true')
    const session = dataOf(asked)
    expect(session).toMatchObject({ isCertExtendRequested: true, isCertKeyRollRequested: true })
    const token = String(session['token'])
    const privateKeyPem = generatePrivateKeyPem()
    const clientCertCsr = await createCertificateRequest({ privateKeyPem, id: 'new' })
    const by = device
    const body = { clientCertCsr }
    expect((await listener.call({ path: own('extend'), body, token })).status).toBe(401)
    const extended = dataOf(await listener.call({ path: own('extend'), body, token, by }))
    const clientCert = String(extended['clientCert'])
    const next = { certificatePem: clientCert, privateKeyPem }
    expect(parseCertificates(clientCert)[0].uris).toEqual([
      `spiffe://test.internal/identity/${identityId}`,
    ])
    dataOf(await logIn(device))
    expect(await logIn(next), 'not valid before the verification').toMatchObject(isRefused)
    const verify = (pem: string): Promise<TlsReply> =>
      listener.call({ path: own('extend-verify'), body: { clientCert: pem }, token, by })
    expect(await verify(device.certificatePem)).toMatchObject(refusal(400, 'INVALID_CLIENT_CERT'))
    expect(await verify('no PEM')).toMatchObject(refusal(400, 'COULD_NOT_PARSE_PEM_BLOCK'))
    dataOf(await verify(clientCert))
    const again = { path: own('extend-verify'), body: { clientCert }, token, by: next }
    expect(await listener.call(again)).toMatchObject(refusal(409, 'CAN_NOT_UPDATE_AUTHENTICATOR'))
    expect(await logIn(device)).toMatchObject(isRefused)
    expect(dataOf(await logIn(next))).not.toHaveProperty('isCertExtendRequested')
    const still = { method: 'GET', path: `${client}/current-api-session`, token, by: next }
    expect((await listener.call(still)).status).toBe(200)
    expect(await shown(caller, `${management}/authenticators/${authenticatorId}`)).toMatchObject({
      lastExtendRolledKeys: true,
      fingerprint: parseCertificates(clientCert)[0].sha1,
    })
  })

  test('is issued only to the holder, and only for a valid certificate request', async () => {
    const token = String(dataOf(await logIn(device))['token'])
    const clientCertCsr = await createCertificateRequest({
      privateKeyPem: generatePrivateKeyPem(),
      id: 'x',
    })
    const body = { clientCertCsr }
    const elsewhere = own('extend').replace(authenticatorId, 'somebody')
    expect((await listener.call({ path: elsewhere, body, token, by: device })).status).toBe(404)
    const others = await logInAsAdmin()
    const asAdmin = { path: own('extend'), body, token: others, by: device }
    expect(await listener.call(asAdmin)).toMatchObject(refusal(401, 'UNAUTHORIZED'))
    const bad = { path: own('extend'), body: { clientCertCsr: 'none' }, token, by: device }
    expect(await listener.call(bad)).toMatchObject(refusal(400, 'COULD_NOT_PROCESS_CSR'))
  })

  test('is also returned for a repeated request ID, and can then be verified', async () => {
    const token = String(dataOf(await logIn(device))['token'])
    const privateKeyPem = generatePrivateKeyPem()
    const clientCertCsr = await createCertificateRequest({ privateKeyPem, id: 'new' })
    const ask = { body: { clientCertCsr }, token, by: device, headers: requestId() }
    dataOf(await listener.call({ path: own('extend'), ...ask }))
    const { clientCert } = dataOf(await listener.call({ path: own('extend'), ...ask }))
    const path = own('extend-verify')
    dataOf(await listener.call({ path, body: { clientCert }, token, by: device }))
    dataOf(await logIn({ certificatePem: String(clientCert), privateKeyPem }))
  })

  test.each([
    ['client', client],
    ['management', management],
  ])(
    'can be verified at /authenticators/{id}/extend-verify of the %s API, only by its holder',
    async (_api, base) => {
      const path = `${base}/authenticators/${authenticatorId}/extend-verify`
      const entered = { path: `${base}/authenticate?method=cert`, by: device, body: {} }
      const token = String(dataOf(await listener.call(entered))['token'])
      const privateKeyPem = generatePrivateKeyPem()
      const clientCertCsr = await createCertificateRequest({ privateKeyPem, id: 'new' })
      const asked = { path: own('extend'), body: { clientCertCsr }, token, by: device }
      const { clientCert } = dataOf(await listener.call(asked))
      const proof = { path, body: { clientCert }, by: device }
      expect((await listener.call(proof)).status).toBe(401)
      const byAnother = await listener.call({ ...proof, token: await logInAsAdmin() })
      expect(byAnother.status).toBe(401)
      dataOf(await listener.call({ ...proof, token }))
      expect(await logIn(device)).toMatchObject(isRefused)
      dataOf(await logIn({ certificatePem: String(clientCert), privateKeyPem }))
    },
  )

  const logInAsAdmin = (): Promise<string> => Promise.resolve(caller.token ?? '')
})

describe('session certificates', () => {
  const path = `${client}/current-api-session/certificates`

  test('are issued to, listed for, shown to and revoked by only the session to which they belong', async () => {
    const token = String(dataOf(await logIn(device))['token'])
    const csr = await createCertificateRequest({ privateKeyPem: generatePrivateKeyPem(), id: 'x' })
    const created = dataOf(await listener.call({ path, body: { csr }, token, by: device }), 201)
    const id = String(created['id'])
    const [leaf] = parseCertificates(String(created['certificate']))
    expect(leaf.commonName).toBe(identityId)
    expect(leaf.uris[0]).toMatch(
      new RegExp(`^spiffe://test.internal/identity/${identityId}/apiSession/.+Certificate/${id}$`),
    )
    expect(created['cas']).toContain('BEGIN CERTIFICATE')
    const get = (where: string, by = token): Promise<TlsReply> =>
      listener.call({ method: 'GET', path: where, token: by, by: device })
    expect(dataOf(await get(`${path}/${id}`))).toMatchObject({ id, fingerprint: leaf.sha1 })
    expect(dataOf(await get(path))).toHaveLength(1)
    const other = String(dataOf(await logIn(device))['token'])
    expect((await get(`${path}/${id}`, other)).status).toBe(404)
    expect(dataOf(await get(path, other))).toHaveLength(0)
    const remove = (by: string): Promise<TlsReply> =>
      listener.call({ method: 'DELETE', path: `${path}/${id}`, token: by, by: device })
    expect((await remove(other)).status).toBe(404)
    expect((await remove(token)).status).toBe(200)
    expect((await get(`${path}/${id}`)).status).toBe(404)
  })

  test('are listed in their session, including the certificate that a repeated request ID returns', async () => {
    const token = String(dataOf(await logIn(device))['token'])
    const csr = await createCertificateRequest({ privateKeyPem: generatePrivateKeyPem(), id: 'x' })
    const headers = requestId()
    for (let time = 0; time < 2; time += 1) {
      const { certificate } = dataOf(
        await listener.call({ path, body: { csr }, token, headers, by: device }),
        201,
      )
      const [leaf] = parseCertificates(String(certificate))
      const known = dataOf(await listener.call({ method: 'GET', path, token, by: device }))
      expect(known).toContainEqual(expect.objectContaining({ fingerprint: leaf.sha1 }))
    }
  })

  test('are limited in number, and are refused for an invalid certificate request', async () => {
    const token = String(dataOf(await logIn(device))['token'])
    const make = (csr: string): Promise<TlsReply> =>
      listener.call({ path, body: { csr }, token, by: device })
    expect(await make('none')).toMatchObject(refusal(400, 'COULD_NOT_PROCESS_CSR'))
    const csr = await createCertificateRequest({ privateKeyPem: generatePrivateKeyPem(), id: 'x' })
    for (let at = 0; at < sessionCertificatesMax; at += 1) dataOf(await make(csr), 201)
    expect(await make(csr)).toMatchObject(refusal(400, 'COULD_NOT_VALIDATE'))
  })
})
