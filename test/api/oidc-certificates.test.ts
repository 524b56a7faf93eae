import { X509Certificate } from 'node:crypto'

import { describe, expect, test } from 'vitest'

import { newShortId } from '../../src/lib/random.ts'
import type { CertificateWithKey } from '../../src/pki/authority/authority.ts'
import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../../src/pki/authority/certificate-request.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import { Certificates, ownIdentity, password, twoControllers } from '../attacks/oidc/support.ts'
import { client, management } from './support/caller.ts'
import { made, shown } from './support/network.ts'
import { OidcClient } from './support/oidc.ts'

// Goal: OIDC clients keep, extend and add certificates as clients with REST sessions do.

const two = await twoControllers()
const { controller, root, newPerson } = two
const certificates = await Certificates.open(two)
const ownSession = `${client}/current-api-session`

interface Answer {
  readonly status: number
  readonly data: Record<string, unknown>
}

/** Sends requests with an access token, over connections with or without a client certificate. */
function bearer(token: string, key: CertificateWithKey | null) {
  return async (method: 'GET' | 'POST', path: string, body?: object): Promise<Answer> => {
    const { app } = certificates.door(key)
    const reply = await app.inject({
      method,
      url: path,
      headers: {
        host: 'localhost',
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
    })
    const { data } = JSON.parse(reply.payload) as { data?: Record<string, unknown> }
    return { status: reply.statusCode, data: data ?? {} }
  }
}

/** An identity that has enrolled, with a certificate that the network has issued. */
async function enrolled(): Promise<{ id: string; key: CertificateWithKey }> {
  const body = { name: `device ${newShortId()}`, type: 'Device', enrollment: { ott: true } }
  const id = await made(root, `${management}/identities`, { ...body, isAdmin: false })
  const { enrollment } = await shown(root, `${management}/identities/${id}`)
  const { ott } = enrollment as { ott: { token: string } }
  const privateKeyPem = generatePrivateKeyPem()
  const clientCsr = await createCertificateRequest({ privateKeyPem, id: 'x' })
  const answer = await certificates.door(null).app.inject({
    method: 'POST',
    url: `${client}/enroll?token=${ott.token}`,
    headers: { host: 'localhost', 'content-type': 'application/json' },
    payload: JSON.stringify({ clientCsr }),
  })
  expect(answer.statusCode, answer.payload).toBe(200)
  const { data } = JSON.parse(answer.payload) as { data: { cert: string } }
  return { id, key: { certificatePem: data.cert, privateKeyPem } }
}

/** Id of the only authenticator of an identity. */
async function authenticatorOf(identityId: string): Promise<string> {
  const filter = encodeURIComponent(`identity = "${identityId}"`)
  const listed = await root.call('GET', `${management}/authenticators?filter=${filter}`)
  const [{ id } = { id: '' }] = listed.body.data as { id: string }[]
  return id
}

describe.each([
  ['the same key', false],
  ['a new key', true],
])('a client that an administrator asks to extend its certificate for %s', (_key, rollKeys) => {
  test('sees the request in its session, and keeps this session with the extended certificate', async () => {
    const { id, key } = await enrolled()
    const authenticatorId = await authenticatorOf(id)
    const authenticator = `${management}/authenticators/${authenticatorId}`
    const asked = await root.call('POST', `${authenticator}/request-extend`, { rollKeys })
    expect(asked.status, asked.text).toBe(200)
    expect((await shown(root, authenticator))['isExtendRequested']).toBe(true)

    const door = new OidcClient(certificates.door(key))
    const { access_token: token, refresh_token: refresh } = await door.logInByCertificate()
    const ask = bearer(token, key)
    const session = { isCertExtendable: true, isCertExtendRequested: true }
    expect((await ask('GET', ownSession)).data).toMatchObject(
      rollKeys ? { ...session, isCertKeyRollRequested: true } : session,
    )
    const privateKeyPem = rollKeys ? generatePrivateKeyPem() : key.privateKeyPem
    const clientCertCsr = await createCertificateRequest({ privateKeyPem, id: 'next' })
    const own = `${client}/current-identity/authenticators/${authenticatorId}`
    const extended = await ask('POST', `${own}/extend`, { clientCertCsr })
    expect(extended.status).toBe(200)
    const clientCert = String(extended.data['clientCert'])
    expect((await ask('POST', `${own}/extend-verify`, { clientCert })).status).toBe(200)
    const after = await shown(root, authenticator)
    const flags = [after['isExtendRequested'], after['isKeyRollRequested']]
    expect(flags).toEqual([undefined, undefined])
    const next = { certificatePem: clientCert, privateKeyPem }
    expect((await bearer(token, next)('GET', ownIdentity)).status).toBe(200)
    expect((await new OidcClient(certificates.door(next)).refresh(refresh)).status).toBe(200)
  })
})

/** The authorization code of a log-in by certificate, which is not redeemed yet. */
async function codeBy(door: OidcClient): Promise<string> {
  const step = await door.send('POST', '/oidc/login/cert', { id: await door.begin() })
  return await door.codeOf(step)
}

test('several log-ins at the same time with a new certificate all succeed', async () => {
  const { key } = await enrolled()
  const doors = [1, 2, 3].map(() => new OidcClient(certificates.door(key)))
  const codes = await Promise.all(doors.map(codeBy))
  for (const [at, door] of doors.entries()) {
    const redeemed = await door.redeem(codes[at] ?? '')
    expect(redeemed.status, redeemed.text).toBe(200)
  }
})

describe('an authorization code from a log-in by certificate', () => {
  test('is invalid once the client’s certificate was replaced by an extended one', async () => {
    const { id, key } = await enrolled()
    const door = new OidcClient(certificates.door(key))
    const ask = bearer((await door.logInByCertificate()).access_token, key)
    const code = await codeBy(door)
    const authenticatorId = await authenticatorOf(id)
    const own = `${client}/current-identity/authenticators/${authenticatorId}`
    const clientCertCsr = await createCertificateRequest({
      privateKeyPem: key.privateKeyPem,
      id: 'next',
    })
    const extended = await ask('POST', `${own}/extend`, { clientCertCsr })
    const verified = await ask('POST', `${own}/extend-verify`, {
      clientCert: String(extended.data['clientCert']),
    })
    expect(verified.status).toBe(200)
    const redeemed = await door.redeem(code)
    expect(redeemed).toMatchObject({ status: 400, json: { error: 'invalid_grant' } })
  })

  test('is invalid once the client’s authenticator is deleted', async () => {
    const { id, key } = await enrolled()
    const door = new OidcClient(certificates.door(key))
    const code = await codeBy(door)
    const authenticatorId = await authenticatorOf(id)
    const gone = await root.call('DELETE', `${management}/authenticators/${authenticatorId}`)
    expect(gone.status, gone.text).toBe(200)
    const redeemed = await door.redeem(code)
    expect(redeemed).toMatchObject({ status: 400, json: { error: 'invalid_grant' } })
  })
})

test('an OIDC session gets session certificates, each followed by the certificates of its issuers', async () => {
  const { id, username } = await newPerson()
  const log = async (): Promise<ReturnType<typeof bearer>> => {
    const { access_token: token } = await new OidcClient(controller).logIn(username, password)
    return bearer(token, null)
  }
  const [ask, other] = [await log(), await log()]
  const csr = await createCertificateRequest({ privateKeyPem: generatePrivateKeyPem(), id: 'x' })
  const created = await ask('POST', `${ownSession}/certificates`, { csr })
  expect(created.status).toBe(201)
  const chain = parseCertificates(String(created.data['certificate']))
  const { data: session } = await ask('GET', ownSession)
  const made = `/apiSession/${String(session['id'])}/apiSessionCertificate/${String(created.data['id'])}`
  expect(chain[0].uris).toEqual([`spiffe://test.internal/identity/${id}${made}`])
  const each = chain.map((one) => new X509Certificate(one.pem))
  expect(each.length).toBeGreaterThan(1)
  for (const [at, signer] of each.slice(1).entries()) {
    expect(each[at]?.checkIssued(signer)).toBe(true)
  }
  expect((await ask('GET', `${ownSession}/certificates`)).data).toHaveLength(1)
  expect((await other('GET', `${ownSession}/certificates`)).data).toHaveLength(0)
})

test('an OIDC session has the config types that its client requested, by name or id', async () => {
  const { username } = await newPerson()
  const names = [`a ${newShortId()}`, `b ${newShortId()}`]
  const ids: string[] = []
  for (const name of names) {
    ids.push(await made(root, `${management}/config-types`, { name, schema: {} }))
  }
  const oidc = new OidcClient(controller)
  const id = await oidc.begin({ configTypes: ids[0] ?? '' })
  const form = new URLSearchParams({ id, username, password })
  form.append('configTypes', names[1] ?? '')
  const step = await oidc.send('POST', '/oidc/login/password', form.toString())
  const { json } = await oidc.redeem(await oidc.codeOf(step))
  const { data } = await bearer(String(json['access_token']), null)('GET', ownSession)
  expect([...(data['configTypes'] as string[])].sort()).toEqual([...ids].sort())
})
