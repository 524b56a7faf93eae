import { afterAll, describe, expect, test } from 'vitest'

import {
  createCertificateRequest,
  createControllerRequest,
  generatePrivateKeyPem,
} from '../../../src/pki/authority/certificate-request.ts'
import type { CertificateWithKey } from '../../../src/pki/authority/authority.ts'
import { sessionCertificatesMax } from '../../../src/fsm/enrollment/certificate.ts'
import { parseCertificates } from '../../../src/pki/certificate.ts'
import { client, management } from '../../api/support/caller.ts'
import { claimsOf, made } from '../../api/support/network.ts'
import { OidcClient, type OidcReply, type Tokens } from '../../api/support/oidc.ts'
import { TlsListener } from '../../api/support/tls.ts'
import { Certificates, ownIdentity, password, twoControllers } from './support.ts'

// The attack: somebody has the tokens of a client that requested a certificate during its log-in,
// or requests a certificate with the name of another identity.

const DAY_MS = 86_400_000
const two = await twoControllers()
const { controller, root, newClient, newPerson, newPersonWithCodes } = two
const certificates = await Certificates.open(two)

interface Asked {
  readonly privateKeyPem: string
  readonly csr: string
}

async function newRequest(id = 'mallory'): Promise<Asked> {
  const privateKeyPem = generatePrivateKeyPem()
  return { privateKeyPem, csr: await createCertificateRequest({ privateKeyPem, id }) }
}

/** Logs in by password with a certificate request. @returns the authorization code. */
async function codeFor(oidc: OidcClient, username: string, csrPem: string): Promise<string> {
  const id = await oidc.begin()
  const step = await oidc.send('POST', '/oidc/login/password', { id, username, password, csrPem })
  expect(step.status).toBe(302)
  return await oidc.codeOf(step)
}

const tokensIn = ({ json }: OidcReply): Tokens => json as unknown as Tokens
const keyOf = ({ json }: OidcReply, { privateKeyPem }: Asked): CertificateWithKey => ({
  certificatePem: String(json['session_cert']),
  privateKeyPem,
})
const doorOf = (key: CertificateWithKey | null): OidcClient =>
  new OidcClient(certificates.door(key))
const printOf = ({ certificatePem }: CertificateWithKey): string =>
  parseCertificates(certificatePem)[0].sha1

/** Replaces one method of an object. */
function instead<T extends object, N extends keyof T>(target: T, method: N, value: T[N]): T {
  return new Proxy(target, {
    get: (_, name) => {
      if (name === method) return value
      const found: unknown = Reflect.get(target, name, target)
      return typeof found === 'function' ? (found.bind(target) as unknown) : found
    },
  })
}

async function boundLogIn(username: string) {
  const asked = await newRequest()
  const oidc = newClient()
  const answer = await oidc.redeem(await codeFor(oidc, username, asked.csr))
  expect(answer.status, answer.text).toBe(200)
  return { tokens: tokensIn(answer), key: keyOf(answer, asked) }
}

async function sessionsOf(identityId: string): Promise<number> {
  const filter = encodeURIComponent(`identity = "${identityId}"`)
  const { body } = await root.call('GET', `${management}/api-sessions?filter=${filter}`)
  return (body.data as readonly unknown[]).length
}

describe('the tokens of an OIDC client that requested a certificate during its log-in', () => {
  test('are useless without the certificate, at every endpoint where they are presented', async () => {
    const { id, username } = await newPerson()
    const { tokens, key } = await boundLogIn(username)
    const claims = claimsOf(tokens.access_token)
    expect(claims).toMatchObject({ z_cfs: [printOf(key)], amr: ['password'] })
    expect(claims).not.toHaveProperty('z_acf')
    const own = doorOf(key)
    expect(await own.statusAt(ownIdentity, tokens.access_token)).toBe(200)
    expect((await own.refresh(tokens.refresh_token)).status).toBe(200)
    expect((await own.refresh(tokens.refresh_token)).json).not.toHaveProperty('session_cert')

    const { key: other } = await certificates.newHolder()
    const second = (await boundLogIn(username)).key
    for (const stolen of [null, other, second]) {
      const thief = doorOf(stolen)
      expect(await thief.statusAt(ownIdentity, tokens.access_token)).toBe(401)
      expect(await thief.statusAt('/oidc/userinfo', tokens.access_token)).toBe(401)
      // A certificate request does not replace a missing certificate.
      const { csr } = await newRequest()
      for (const { status, json } of [
        await thief.refresh(tokens.refresh_token),
        await thief.refresh(tokens.refresh_token, { csr_pem: csr }),
        await thief.exchange(tokens.refresh_token, 'refresh_token', 'access_token'),
        await thief.exchange(tokens.access_token, 'access_token', 'access_token'),
        await thief.exchange(tokens.access_token, 'access_token', 'id_token'),
      ]) {
        expect([status, json['error']]).toEqual([400, 'access_denied'])
        expect(json).not.toHaveProperty('access_token')
      }
      const headers = { authorization: `Bearer ${tokens.access_token}` }
      for (const [method, url] of [
        ['GET', `${client}/services`],
        ['DELETE', `${client}/current-api-session`],
        ['GET', `${client}/current-api-session/certificates`],
        ['POST', `${client}/current-identity/mfa`],
      ] as const) {
        const { status } = await thief.send(method, url, undefined, headers)
        expect([method, url, status]).toEqual([method, url, 401])
      }
    }
    expect(await sessionsOf(id)).toBe(2)
    expect(await own.statusAt(ownIdentity, tokens.access_token)).toBe(200)
    expect(
      (await own.exchange(tokens.access_token, 'access_token', 'id_token')).json,
    ).toHaveProperty('access_token')
  })

  test('are valid, after a refresh, only with the key that was sent in that refresh', async () => {
    const { username } = await newPerson()
    const { tokens, key } = await boundLogIn(username)
    const asked = await newRequest()
    const renewed = await doorOf(key).refresh(tokens.refresh_token, { csr_pem: asked.csr })
    const next = keyOf(renewed, asked)
    const { access_token: access, refresh_token: refresh } = tokensIn(renewed)
    expect(claimsOf(access)['z_cfs']).toEqual([printOf(next)])
    const bad = await doorOf(next).refresh(refresh, { csr_pem: 'no request' })
    expect([bad.status, bad.json['error']]).toEqual([400, 'invalid_request'])
    // A thief with the old key and all tokens can neither renew nor use the tokens.
    const thief = doorOf(key)
    for (const stolen of [tokens.refresh_token, refresh]) {
      const { csr } = await newRequest()
      for (const changes of [{}, { csr_pem: csr }]) {
        const { status, json } = await thief.refresh(stolen, changes)
        expect([status, json['error']]).toEqual([400, 'access_denied'])
      }
    }
    expect(await thief.statusAt(ownIdentity, access)).toBe(401)
    expect((await doorOf(next).refresh(refresh)).status).toBe(200)
    expect(await doorOf(next).statusAt(ownIdentity, access)).toBe(200)
  })

  test('are valid only with the key of the newest certificate, however often the client requests a certificate for another key', async () => {
    const { tokens, key } = await boundLogIn((await newPerson()).username)
    let last = key
    const earlier: CertificateWithKey[] = []
    for (let at = 0; at < sessionCertificatesMax + 2; at += 1) {
      const asked = await newRequest()
      const answer = await doorOf(last).refresh(tokens.refresh_token, { csr_pem: asked.csr })
      expect(answer.status, answer.text).toBe(200)
      earlier.push(last)
      last = keyOf(answer, asked)
      controller.clock.advance(1000)
    }
    expect(await doorOf(last).statusAt(ownIdentity, tokens.access_token)).toBe(200)
    for (const old of earlier) {
      expect(await doorOf(old).statusAt(ownIdentity, tokens.access_token)).toBe(401)
      const { status, json } = await doorOf(old).refresh(tokens.refresh_token)
      expect([status, json['error']]).toEqual([400, 'access_denied'])
    }
    expect((await doorOf(last).refresh(tokens.refresh_token)).status).toBe(200)
  })

  test('can be exchanged with the certificate, and the new tokens are bound to another key if requested', async () => {
    const { tokens, key } = await boundLogIn((await newPerson()).username)
    const asked = await newRequest()
    const answer = await doorOf(key).send('POST', '/oidc/oauth/token', {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      client_id: 'native',
      subject_token: tokens.refresh_token,
      subject_token_type: 'urn:ietf:params:oauth:token-type:refresh_token',
      requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      csr_pem: asked.csr,
    })
    expect(answer.status).toBe(200)
    const next = keyOf(answer, asked)
    const { access_token: access } = tokensIn(answer)
    expect(claimsOf(access)['z_cfs']).toEqual([printOf(next)])
    const statuses: number[] = []
    for (const by of [next, key, null])
      statuses.push(await doorOf(by).statusAt(ownIdentity, access))
    expect(statuses).toEqual([200, 401, 401])
  })

  test('are also valid with the certificate of the log-in, if the client logged in with a certificate', async () => {
    const { key: login } = await certificates.newHolder()
    const oidc = doorOf(login)
    const id = await oidc.begin()
    const asked = await newRequest()
    const step = await oidc.send('POST', '/oidc/login/cert', { id, csrPem: asked.csr })
    const answer = await oidc.redeem(await oidc.codeOf(step))
    const issued = keyOf(answer, asked)
    const { access_token: access } = tokensIn(answer)
    const prints = [printOf(login), printOf(issued)]
    expect(claimsOf(access)).toMatchObject({ z_cfs: prints, z_acf: prints[0], amr: ['cert'] })
    for (const key of [login, issued]) {
      expect(await doorOf(key).statusAt(ownIdentity, access)).toBe(200)
    }
    expect(await doorOf(null).statusAt(ownIdentity, access)).toBe(401)
  })

  test('stay bound to a certificate after the certificate of the session is revoked', async () => {
    const { id: identityId, key: enrolled } = await certificates.newHolder()
    const username = `holder ${identityId}`
    const credential = { method: 'updb', identityId, username, password }
    await made(root, `${management}/authenticators`, credential)
    const { tokens, key } = await boundLogIn(username)
    const own = `${client}/current-api-session/certificates`
    const headers = { authorization: `Bearer ${tokens.access_token}` }
    const { json } = await doorOf(key).send('GET', own, undefined, headers)
    const certificatesOfSession = json as { readonly data: readonly { readonly id: string }[] }
    expect(certificatesOfSession.data).toHaveLength(1)
    for (const { id } of certificatesOfSession.data) {
      expect((await doorOf(key).send('DELETE', `${own}/${id}`, undefined, headers)).status).toBe(
        200,
      )
    }
    const { csr } = await newRequest()
    for (const by of [key, null]) {
      expect(await doorOf(by).statusAt(ownIdentity, tokens.access_token)).toBe(401)
      for (const changes of [{}, { csr_pem: csr }]) {
        const { status, json } = await doorOf(by).refresh(tokens.refresh_token, changes)
        expect([status, json['error']]).toEqual([400, 'access_denied'])
      }
    }
    const renewed = tokensIn(await doorOf(enrolled).refresh(tokens.refresh_token))
    expect(claimsOf(renewed.access_token)['z_cfs']).toEqual([printOf(enrolled)])
  })

  test('are also bound to a certificate that was requested in the first step of a log-in with a second factor', async () => {
    const { username, app } = await newPersonWithCodes()
    const oidc = newClient()
    const id = await oidc.begin()
    const asked = await newRequest()
    const form = { id, username, password, csrPem: asked.csr }
    expect((await oidc.send('POST', '/oidc/login/password', form)).status).toBe(200)
    const step = await oidc.send('POST', '/oidc/login/totp', { id, code: app.freshCode() })
    const answer = await oidc.redeem(await oidc.codeOf(step))
    const { access_token: access } = tokensIn(answer)
    expect(await doorOf(keyOf(answer, asked)).statusAt(ownIdentity, access)).toBe(200)
    expect(await doorOf(null).statusAt(ownIdentity, access)).toBe(401)
  })

  test('are accepted by a controller whose state lags, because it first waits for the latest log entries', async () => {
    const { tokens, key } = await boundLogIn((await newPerson()).username)
    let isLate = false
    const { state, reads } = controller.parts
    const lagging = instead(state, 'findAll', (...given) =>
      isLate && given[0] === 'sessionCertificate' ? [] : state.findAll(...given),
    )
    const latest = instead(reads, 'reachLatest', () => {
      isLate = false
      return reads.reachLatest()
    })
    const parts = { state: lagging, reads: latest }
    const listener = await TlsListener.open(controller, undefined, parts)
    afterAll(() => listener.close())
    const headers = { authorization: `Bearer ${tokens.access_token}` }
    const asked = { method: 'GET', path: ownIdentity, headers } as const
    // The first verification of a token always requests the latest state.
    for (const isNew of [true, false]) {
      isLate = !isNew
      expect((await listener.call({ ...asked, by: key })).status).toBe(200)
      expect(isLate).toBe(false)
    }
    isLate = true
    // A request without a client certificate causes no query to the cluster.
    expect((await listener.call(asked)).status).toBe(401)
    expect(isLate).toBe(true)
    const form = {
      grant_type: 'refresh_token',
      client_id: 'native',
      refresh_token: tokens.refresh_token,
    }
    const renewed = await listener.call({
      path: '/oidc/oauth/token',
      by: key,
      body: new URLSearchParams(form).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', host: 'localhost:1280' },
    })
    expect([renewed.status, isLate]).toEqual([200, false])
  })

  test('are issued again with a certificate if the first response was lost and the code is redeemed again', async () => {
    const { id, username } = await newPerson()
    const asked = await newRequest()
    const oidc = newClient()
    const code = await codeFor(oidc, username, asked.csr)
    await oidc.redeem(code)
    const again = await oidc.redeem(code)
    const { access_token: access } = tokensIn(again)
    expect(claimsOf(access)['z_cfs']).toEqual([printOf(keyOf(again, asked))])
    expect(await doorOf(keyOf(again, asked)).statusAt(ownIdentity, access)).toBe(200)
    expect(await doorOf(null).statusAt(ownIdentity, access)).toBe(401)
    expect(await sessionsOf(id)).toBe(1)
  })
})

describe('a certificate request in an OIDC log-in', () => {
  test('results in a certificate for the identity and the session, even if the request contains other names', async () => {
    const { id, username } = await newPerson()
    const privateKeyPem = generatePrivateKeyPem()
    const csr = await createControllerRequest({
      privateKeyPem,
      id: 'ctrl1',
      trustDomain: 'flotilla.test',
      hosts: ['ctrl1.example.net', '127.0.0.1'],
    })
    const oidc = newClient()
    const answer = await oidc.redeem(await codeFor(oidc, username, csr))
    const [leaf] = parseCertificates(String(answer.json['session_cert']))
    const { z_asid: sessionId } = claimsOf(tokensIn(answer).access_token)
    const path = `/identity/${id}/apiSession/${String(sessionId)}/apiSessionCertificate/`
    expect(leaf.commonName).toBe(id)
    expect([...leaf.dnsNames, ...leaf.ipAddresses, ...leaf.emails]).toEqual([])
    expect(leaf.uris).toHaveLength(1)
    expect(leaf.uris[0]).toContain(path)
    const days = (leaf.notAfterMs - controller.clock.nowMs()) / DAY_MS
    expect(days).toBeGreaterThan(300)
  })

  test('fails when the code is redeemed if no certificate can be signed for it, and then leaves no session', async () => {
    const { csr } = await newRequest()
    const der = Buffer.from(csr.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64')
    der[der.length - 1] = (der.at(-1) ?? 0) ^ 1
    const head = '-----BEGIN CERTIFICATE REQUEST-----'
    const forged = `${head}\n${der.toString('base64')}\n${head.replace('BEGIN', 'END')}\n`
    for (const csrPem of ['no request', forged, csr + 'x'.repeat(5000)]) {
      const { id, username } = await newPerson()
      const oidc = newClient()
      const { status, json } = await oidc.redeem(await codeFor(oidc, username, csrPem))
      expect([status, json['error']]).toEqual([400, 'invalid_request'])
      expect(await sessionsOf(id)).toBe(0)
    }
  })

  test('is ignored in a refresh of tokens that are not bound to a key, and the new tokens are not bound either', async () => {
    const tokens = await newClient().logIn((await newPerson()).username, password)
    const { csr } = await newRequest()
    const { status, json } = await newClient().refresh(tokens.refresh_token, { csr_pem: csr })
    expect([status, json['session_cert']]).toEqual([200, undefined])
    expect(claimsOf((json as unknown as Tokens).access_token)['z_cfs']).toBeNull()
  })
})
