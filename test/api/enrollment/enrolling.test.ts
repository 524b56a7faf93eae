import { createHash, createPublicKey, randomUUID, verify } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { compactVerify, importJWK, type JWK } from 'jose'
import type { CertificateWithKey } from '../../../src/pki/authority/authority.ts'
import { parseCertificates } from '../../../src/pki/certificate.ts'
import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../../../src/pki/authority/certificate-request.ts'
import { newCa } from '../../support/authorities.ts'
import { CallerOf, client, management } from '../support/caller.ts'
import { admin, startController, type TestController } from '../support/controller.ts'
import { claimsOf, type Detail, made, newIdentity, shown } from '../support/network.ts'
import { clientKey, TlsListener, type TlsReply } from '../support/tls.ts'

// Goal: a caller with a token, or with a certificate of a verified CA, can enroll in every way that
// OpenZiti clients use, and no other caller can. Method: the real listener, over TLS, as clients
// use it.

const ENROLL = `${client}/enroll`
const PEM = { 'content-type': 'application/x-pem-file' }

let controller: TestController
let listener: TlsListener
let caller: CallerOf
beforeAll(async () => {
  controller = await startController()
  listener = await TlsListener.open(controller)
  caller = new CallerOf(controller)
  await caller.logIn(admin)
})
afterAll(async () => {
  await listener.close()
  await controller.close()
})

const newKey = generatePrivateKeyPem
const csrOf = (privateKeyPem: string, id = 'anybody'): Promise<string> =>
  createCertificateRequest({ privateKeyPem, id })

let serial = 0
async function newToken(enrollment: Detail): Promise<{ id: string; token: string; jwt: string }> {
  serial += 1
  const id = await newIdentity(caller, `device ${serial}`, { enrollment })
  const outstanding = await shown(caller, `${management}/identities/${id}`)
  const [made] = Object.values(outstanding['enrollment'] as Record<string, Detail>)
  return { id, token: String(made?.['token']), jwt: String(made?.['jwt']) }
}

const dataOf = (reply: TlsReply): Record<string, string> => {
  expect(reply.status, reply.text).toBe(200)
  return reply.body.data as Record<string, string>
}
const refusal = (status: number, code: string): object => ({
  status,
  body: { error: { code } },
})
const enroll = (query: string, csr: string): Promise<TlsReply> =>
  listener.call({ path: `${ENROLL}?${query}`, body: csr, headers: PEM })
const logIn = (by: CertificateWithKey | null): Promise<TlsReply> =>
  listener.call({ path: `${client}/authenticate?method=cert`, by, body: {} })

async function verifiedCa(
  name: string,
  rest: Detail = {},
): Promise<{ id: string; key: CertificateWithKey }> {
  const key = await newCa(name, controller.clock.nowMs())
  const id = await made(caller, `${management}/cas`, {
    name,
    certPem: key.certificatePem,
    identityRoles: ['sensors'],
    isAuthEnabled: true,
    isAutoCaEnrollmentEnabled: true,
    isOttCaEnrollmentEnabled: true,
    ...rest,
  })
  const { verificationToken } = await shown(caller, `${management}/cas/${id}`)
  const proof = await clientKey(key, String(verificationToken), controller.clock.nowMs())
  const [leaf] = parseCertificates(proof.certificatePem)
  const reply = await caller.call('POST', `${management}/cas/${id}/verify`, leaf.pem, {
    'content-type': 'text/plain',
  })
  expect(reply.status, reply.text).toBe(200)
  return { id, key }
}

describe('an ott enrollment', () => {
  test('issues a certificate for the key in the certificate request; the certificate can log in and becomes the authenticator', async () => {
    const { id, token } = await newToken({ ott: true })
    const privateKeyPem = newKey()
    const {
      ca = '',
      cert = '',
      serverCert,
    } = dataOf(await enroll(`method=ott&token=${token}`, await csrOf(privateKeyPem)))
    expect(serverCert).toBe('')
    const chain = parseCertificates(cert)
    expect(chain[0].uris).toEqual([`spiffe://test.internal/identity/${id}`])
    expect(parseCertificates(ca).every(({ isAuthority }) => isAuthority)).toBe(true)
    const by = { certificatePem: cert, privateKeyPem }
    const session = dataOf(await logIn(by)) as unknown as Detail
    const identity = await shown(caller, `${management}/identities/${id}`)
    const { cert: known } = identity['authenticators'] as { cert: Detail }
    expect(known['fingerprint']).toBe(chain[0].sha1)
    expect(session).toMatchObject({
      identityId: id,
      authenticatorId: known['id'],
      isCertExtendable: true,
    })
    expect(session).not.toHaveProperty('improperClientCertChain')
    expect(identity).toMatchObject({ hasApiSession: true, enrollment: {} })
  })

  test('returns its response again only to a request with the same key', async () => {
    const { id, token } = await newToken({ ott: true })
    const csr = await csrOf(newKey())
    const first = dataOf(await enroll(`token=${token}`, csr))
    expect(dataOf(await enroll(`token=${token}`, csr))['cert']).toBe(first['cert'])
    expect(await enroll(`token=${token}`, await csrOf(newKey()))).toMatchObject(
      refusal(400, 'INVALID_ENROLLMENT_TOKEN'),
    )
    const { data } = (await caller.get(`${management}/identities/${id}/authenticators`)).body
    expect(data).toHaveLength(1)
  })

  test('accepts a certificate request as PEM with two content types or as JSON, also at the path /enroll/ott', async () => {
    for (const [path, headers, asJson] of [
      [`${ENROLL}?method=ott&`, PEM, false],
      ['/enroll?', { 'content-type': 'text/plain; charset=utf-8' }, false],
      [`${ENROLL}?method=ott&`, { 'content-type': 'application/json' }, true],
      [`${ENROLL}/ott?`, PEM, false],
    ] as const) {
      const { token } = await newToken({ ott: true })
      const csr = await csrOf(newKey())
      const body = asJson ? { clientCsr: csr } : csr
      const reply = await listener.call({ path: `${path}token=${token}`, body, headers })
      expect(dataOf(reply)['cert'], path).toContain('BEGIN CERTIFICATE')
      expect(reply.headers['content-type']).toBe('application/json')
    }
    const { token } = await newToken({ ott: true })
    const body = { token, clientCsr: await csrOf(newKey()) }
    dataOf(await listener.call({ path: `${ENROLL}/ott`, body }))
  })

  test('refuses a missing or invalid certificate request, a method other than ott, and a missing or unknown token; afterwards its token is still valid', async () => {
    const { token } = await newToken({ ott: true })
    const csr = await csrOf(newKey())
    for (const [query, body, status, code] of [
      [`token=${token}`, '', 400, 'COULD_NOT_PROCESS_CSR'],
      [`token=${token}`, 'no PEM', 400, 'COULD_NOT_PROCESS_CSR'],
      [`method=updb&token=${token}`, csr, 400, 'INVALID_ENROLL_METHOD'],
      [`method=ottca&token=${token}`, csr, 400, 'INVALID_ENROLL_METHOD'],
      [`method=erott&token=${token}`, csr, 400, 'INVALID_ENROLL_METHOD'],
      [`method=what&token=${token}`, csr, 400, 'INVALID_ENROLL_METHOD'],
      [`method=ott&token=${randomUUID()}`, csr, 400, 'INVALID_ENROLLMENT_TOKEN'],
      [`method=ott&token=${'x'.repeat(5000)}`, csr, 400, 'INVALID_ENROLLMENT_TOKEN'],
      ['method=ott', csr, 400, 'COULD_NOT_VALIDATE'],
    ] as const) {
      expect(await enroll(query, body), `${query} ${code}`).toMatchObject(refusal(status, code))
    }
    dataOf(await enroll(`token=${token}`, csr))
  })

  test('refuses an expired token, and accepts the new token after a refresh', async () => {
    const { id, token } = await newToken({ ott: true })
    const { enrollment } = await shown(caller, `${management}/identities/${id}`)
    const enrollmentId = String((enrollment as { ott: Detail }).ott['id'])
    controller.clock.advance(4 * 60 * 60_000)
    await caller.logIn(admin)
    const csr = await csrOf(newKey())
    expect(await enroll(`token=${token}`, csr)).toMatchObject(refusal(400, 'ENROLLMENT_EXPIRED'))
    const expiresAt = new Date(controller.clock.nowMs() + 60_000).toISOString()
    const path = `${management}/enrollments/${enrollmentId}/refresh`
    expect((await caller.call('POST', path, { expiresAt })).status).toBe(200)
    expect(await enroll(`token=${token}`, csr)).toMatchObject(
      refusal(400, 'INVALID_ENROLLMENT_TOKEN'),
    )
    const fresh = await shown(caller, `${management}/enrollments/${enrollmentId}`)
    dataOf(await enroll(`token=${String(fresh['token'])}`, csr))
  })
})

describe('an updb enrollment', () => {
  test('sets the password of the user name in the enrollment, and ignores a user name in the body', async () => {
    const { token } = await newToken({ updb: 'field-unit' })
    const path = `${ENROLL}?method=updb&token=${token}`
    const body = { username: 'somebody', password: 'a long enough one' }
    expect(await listener.call({ path, body: { username: 'field-unit' } })).toMatchObject(
      refusal(400, 'COULD_NOT_VALIDATE'),
    )
    const { username } = dataOf(await listener.call({ path, body }))
    expect(username, 'the Go SDK logs in by this name').toBe('field-unit')
    const used = await listener.call({ path, body })
    expect(used).toMatchObject(refusal(400, 'INVALID_ENROLLMENT_TOKEN'))
    expect(used.body.error?.cause?.['message'] ?? used.body.error?.message).toContain('used')
    const device = new CallerOf(controller)
    expect(
      (await device.logIn({ username: 'field-unit', password: body.password }, client)).status,
    ).toBe(200)
  })

  test('is also available at the path /enroll/updb', async () => {
    const { token } = await newToken({ updb: 'field-unit-2' })
    const path = `${ENROLL}/updb?token=${token}`
    const body = { password: 'a long enough one' }
    expect(dataOf(await listener.call({ path, body }))).toMatchObject({ username: 'field-unit-2' })
  })
})

describe('an ottca enrollment', () => {
  test('accepts only a client certificate that the CA named in the enrollment has signed', async () => {
    const { id: caId, key } = await verifiedCa('workshop')
    const other = await verifiedCa('elsewhere')
    const { id, token } = await newToken({ ottca: caId })
    const now = controller.clock.nowMs()
    const path = `${ENROLL}?method=ottca&token=${token}`
    const headers = { 'content-type': 'text/plain' }
    expect(await listener.call({ path, headers })).toMatchObject(
      refusal(400, 'CERTIFICATE_FAILED_VALIDATION'),
    )
    const foreign = await clientKey(other.key, 'unit', now)
    expect(await listener.call({ path, headers, by: foreign })).toMatchObject(
      refusal(400, 'CERTIFICATE_FAILED_VALIDATION'),
    )
    const by = await clientKey(key, 'unit', now)
    const enrolled = dataOf(await listener.call({ path, headers, by }))
    expect(Object.keys(enrolled)).toEqual(['controllers'])
    const again = await listener.call({ path, headers, by })
    expect(dataOf(again), 'the answer was lost').toEqual(enrolled)
    expect(dataOf(await logIn(by))).toMatchObject({ identityId: id })
    expect(await logIn(foreign)).toMatchObject(refusal(401, 'INVALID_AUTH'))
  })
})

describe('an enrollment through a CA', () => {
  const auto = (by: CertificateWithKey | null, body: unknown = {}): Promise<TlsReply> =>
    listener.call({ path: `${ENROLL}?method=ca`, by, body })

  test('creates an identity with the name format and the roles of the CA', async () => {
    const format = '[caName] / [commonName] / [requestedName] / [identityId]'
    const { key } = await verifiedCa('plant', { identityNameFormat: format })
    const by = await clientKey(key, '[caName]', controller.clock.nowMs())
    expect(dataOf(await auto(by, { name: 'pump' }))).toEqual({})
    expect(await auto(by)).toMatchObject(refusal(409, 'CERT_IN_USE'))
    const { identityId = '' } = dataOf(await logIn(by))
    expect(await shown(caller, `${management}/identities/${identityId}`)).toMatchObject({
      name: `plant / [caName] / pump / ${identityId}`,
      roleAttributes: ['sensors'],
      isAdmin: false,
      typeId: 'Default',
    })
  })

  test('accepts a request without a body and content type, at /enroll?method=ca and at /enroll/ca', async () => {
    const { key } = await verifiedCa('mill')
    const now = controller.clock.nowMs()
    const by = await clientKey(key, 'a', now)
    expect((await listener.call({ path: `${ENROLL}?method=ca`, by })).status).toBe(200)
    const other = await clientKey(key, 'b', now)
    expect((await listener.call({ path: `${ENROLL}/ca`, by: other })).status).toBe(200)
  })

  test('recognizes an enrolled holder by the external ID claim of the CA, whichever certificate the holder presents', async () => {
    const claim = { index: 0, location: 'SAN_URI', matcher: 'SCHEME', matcherCriteria: 'unit' }
    const externalIdClaim = { ...claim, parser: 'SPLIT', parserCriteria: '/' }
    const { key, id } = await verifiedCa('fleet', { externalIdClaim })
    const now = controller.clock.nowMs()
    expect(await auto(await clientKey(key, 'x', now))).toMatchObject(
      refusal(400, 'MISSING_CERT_CLAIM'),
    )
    const by = await clientKey(key, 'x', now, ['unit:seven/of/nine'])
    expect(dataOf(await auto(by))).toEqual({})
    const renewed = await clientKey(key, 'y', now, ['unit:seven/and/more'])
    const session = dataOf(await logIn(renewed))
    expect(session).toMatchObject({ authenticatorId: 'internal', isCertExtendable: false })
    expect(await auto(renewed)).toMatchObject(refusal(409, 'ENROLLMENT_IDENTITY_ALREADY_ENROLLED'))
    const token = String(session['token'])
    const own = (): Promise<TlsReply> =>
      listener.call({ method: 'GET', path: `${client}/current-identity`, token, by: renewed })
    expect((await own()).status).toBe(200)
    await caller.call('PATCH', `${management}/cas/${id}`, { isAuthEnabled: false })
    expect((await own()).status).toBe(401)
    expect(await logIn(renewed)).toMatchObject(refusal(401, 'INVALID_AUTH'))
  })

  test('is refused without a certificate, if the CA is unknown or unverified, and if enrollment is not enabled on the CA', async () => {
    const now = controller.clock.nowMs()
    expect(await auto(null)).toMatchObject(refusal(400, 'CERT_FAILED_VALIDATION'))
    const { key } = await verifiedCa('closed', { isAutoCaEnrollmentEnabled: false })
    expect(await auto(await clientKey(key, 'x', now))).toMatchObject(
      refusal(400, 'CERT_FAILED_VALIDATION'),
    )
    const authority = await newCa('unverified', now)
    const by = await clientKey(authority, 'x', now)
    expect(await auto(by), 'unknown').toMatchObject(refusal(400, 'CERT_FAILED_VALIDATION'))
    await made(caller, `${management}/cas`, {
      name: 'unverified',
      certPem: authority.certificatePem,
      identityRoles: [],
      isAuthEnabled: true,
      isAutoCaEnrollmentEnabled: true,
      isOttCaEnrollmentEnabled: true,
    })
    expect(await auto(by), 'unverified').toMatchObject(refusal(400, 'CERT_FAILED_VALIDATION'))
  })
})

describe('routers', () => {
  async function newRouter(
    kind: 'edge-routers' | 'transit-routers',
  ): Promise<{ id: string; token: string }> {
    serial += 1
    const id = await made(caller, `${management}/${kind}`, { name: `gate ${serial}` })
    const { enrollmentToken } = await shown(caller, `${management}/${kind}/${id}`)
    return { id, token: String(enrollmentToken) }
  }

  test.each([
    ['edge-routers', 'erott'],
    ['transit-routers', 'trott'],
    ['edge-routers', ''],
  ] as const)(
    'created at /%s enroll by the method "%s", and a repeated request returns the same certificates',
    async (kind, method) => {
      const { id, token } = await newRouter(kind)
      const body = {
        certCsr: await csrOf(newKey(), id),
        serverCertCsr: await csrOf(newKey(), 'gate.test'),
      }
      const path = `${ENROLL}?method=${method}&token=${token}`
      const { cert = '', serverCert = '', ca } = dataOf(await listener.call({ path, body }))
      expect(parseCertificates(cert)[0].commonName).toBe(id)
      expect(parseCertificates(serverCert)[0].commonName).toBe(id)
      expect(ca).toContain('BEGIN CERTIFICATE')
      expect(dataOf(await listener.call({ path, body }))).toMatchObject({ cert, serverCert })
      expect(await shown(caller, `${management}/${kind}/${id}`)).toMatchObject({
        isVerified: true,
        fingerprint: parseCertificates(cert)[0].sha1,
      })
    },
  )

  test('are refused without both certificate requests, or if the common name in the client request is not the router’s id', async () => {
    const { id, token } = await newRouter('edge-routers')
    const path = `${ENROLL}/erott`
    const clientCsr = await csrOf(newKey(), id)
    const serverCsr = await csrOf(newKey(), 'gate.test')
    for (const [body, code] of [
      [{ token, clientCsr }, 'MISSING_OR_INVALID_CSR'],
      [{ token, serverCsr }, 'MISSING_OR_INVALID_CSR'],
      [{ token, clientCsr: serverCsr, serverCsr }, 'COULD_NOT_PROCESS_CSR'],
    ] as const) {
      expect(await listener.call({ path, body })).toMatchObject(refusal(400, code))
    }
    dataOf(await listener.call({ path, body: { token, clientCsr, serverCsr } }))
  })

  test('extend their certificate, and the previous one becomes invalid when they use the new one', async () => {
    const { id, token } = await newRouter('edge-routers')
    const privateKeyPem = newKey()
    const body = {
      certCsr: await csrOf(privateKeyPem, id),
      serverCertCsr: await csrOf(newKey(), 'gate.test'),
    }
    const enrolled = dataOf(
      await listener.call({ path: `${ENROLL}?method=erott&token=${token}`, body }),
    )
    const by = { certificatePem: enrolled['cert'] ?? '', privateKeyPem }
    const path = `${ENROLL}/extend/router`
    expect(await listener.call({ path, body })).toMatchObject(refusal(401, 'UNAUTHORIZED'))
    expect(await listener.call({ path, body: { certCsr: body.certCsr }, by })).toMatchObject(
      refusal(400, 'COULD_NOT_VALIDATE'),
    )
    for (const field of ['certCsr', 'serverCertCsr']) {
      expect(await listener.call({ path, body: { ...body, [field]: '' }, by })).toMatchObject({
        status: 400,
        body: { error: { code: 'COULD_NOT_PROCESS_CSR', cause: { field } } },
      })
    }
    const extended = dataOf(await listener.call({ path, body, by }))
    const again = dataOf(await listener.call({ path, body, by }))
    expect(again, 'the response was lost').toEqual(extended)
    const next = { certificatePem: extended['cert'] ?? '', privateKeyPem }
    dataOf(await listener.call({ path, body, by: next }))
    const message = 'the new certificate was used'
    expect(await listener.call({ path, body, by }), message).toMatchObject(
      refusal(401, 'UNAUTHORIZED'),
    )
  })

  test('that request certificates for other keys replace the certificates that they have not used yet', async () => {
    const { id, token } = await newRouter('edge-routers')
    const privateKeyPem = newKey()
    const certCsr = await csrOf(privateKeyPem, id)
    const enrolling = { certCsr, serverCertCsr: await csrOf(newKey(), 'gate.test') }
    const enrolled = dataOf(
      await listener.call({ path: `${ENROLL}?method=erott&token=${token}`, body: enrolling }),
    )
    const by = { certificatePem: enrolled['cert'] ?? '', privateKeyPem }
    const path = `${ENROLL}/extend/router`
    const [first, second] = [
      { ...enrolling, serverCertCsr: await csrOf(newKey(), 'gate.test') },
      { ...enrolling, serverCertCsr: await csrOf(newKey(), 'gate.test') },
    ]
    const replaced = dataOf(await listener.call({ path, body: first, by }))
    const pending = dataOf(await listener.call({ path, body: second, by }))
    expect(pending['serverCert']).not.toBe(replaced['serverCert'])
    const nextBy = (cert: string | undefined) => ({ certificatePem: cert ?? '', privateKeyPem })
    expect(await listener.call({ path, body: second, by: nextBy(replaced['cert']) })).toMatchObject(
      refusal(401, 'UNAUTHORIZED'),
    )
    dataOf(await listener.call({ path, body: second, by: nextBy(pending['cert']) }))
  })
})

describe('an enrollment token that is sent without a method', () => {
  test('enrolls by the method for which it was issued: updb, ottca or ott', async () => {
    const password = 'a long enough one'
    const named = await newToken({ updb: 'methodless' })
    const byPassword = await listener.call({
      path: `${ENROLL}?token=${named.token}`,
      body: { password },
    })
    expect(dataOf(byPassword)).toMatchObject({ username: 'methodless' })
    const { id: caId, key } = await verifiedCa('methodless')
    const { token } = await newToken({ ottca: caId })
    const by = await clientKey(key, 'unit', controller.clock.nowMs())
    const byCertificate = { path: `${ENROLL}?token=${token}`, body: {}, by }
    dataOf(await listener.call(byCertificate))
    dataOf(await listener.call(byCertificate))
    const keyed = await newToken({ ott: true })
    const csr = await csrOf(newKey())
    const asked = { path: `${ENROLL}?token=${keyed.token}`, body: { clientCsr: csr } }
    const { cert } = dataOf(await listener.call(asked))
    expect(dataOf(await listener.call(asked))['cert'], 'the answer was lost').toBe(cert)
  })

  test('is refused if it is unknown or missing, or if it has already set a password', async () => {
    const { token } = await newToken({ updb: 'methodless-2' })
    const body = { password: 'a long enough one' }
    dataOf(await listener.call({ path: `${ENROLL}?token=${token}`, body }))
    for (const [query, status, code] of [
      [`token=${token}`, 400, 'INVALID_ENROLLMENT_TOKEN'],
      [`token=${randomUUID()}`, 400, 'INVALID_ENROLLMENT_TOKEN'],
      ['', 400, 'COULD_NOT_VALIDATE'],
    ] as const) {
      const reply = await listener.call({ path: `${ENROLL}?${query}`, body })
      expect(reply, query).toMatchObject(refusal(status, code))
    }
  })
})

test('an enrolled identity receives the controllers’ client addresses', async () => {
  const { token } = await newToken({ ott: true })
  const asked = await enroll(`token=${token}`, await csrOf(newKey()))
  const { controllers } = dataOf(asked) as unknown as { controllers: Detail[] }
  const listed = (await caller.get(`${client}/controllers`)).body.data
  expect(controllers).toEqual(listed)
  expect(controllers[0]).toHaveProperty(['apiAddresses', 'edge-client'])
  expect(controllers[0], 'how controllers reach each other').not.toHaveProperty('ctrlAddress')
})

describe('the identity of a controller', () => {
  test('can be verified by enrolling clients with the published key set; the controller signs no nonce that is not a UUID', async () => {
    const { keys } = JSON.parse(
      (await listener.call({ method: 'GET', path: `${ENROLL}/jwks` })).text,
    ) as { keys: (JWK & { x5c: string[] })[] }
    const [key] = keys
    expect(keys).toHaveLength(1)
    expect(key).not.toHaveProperty('d')
    const der = Buffer.from(key?.x5c[0] ?? '', 'base64')
    expect(key?.kid).toBe(createHash('sha1').update(der).digest('hex'))
    const { jwt } = await newToken({ ott: true })
    await expect(compactVerify(jwt, await importJWK(key as JWK))).resolves.toBeDefined()
    expect(claimsOf(jwt)).toMatchObject({ em: 'ott' })
    const path = `${ENROLL}/challenge`
    const nonce = randomUUID()
    const answer = await listener.call({ path, body: { keyId: key?.kid, nonce } })
    const signed = JSON.parse(answer.text) as Record<string, string>
    const publicKey = createPublicKey({ key: key as JWK as never, format: 'jwk' })
    const signature = Buffer.from(signed['signature'] ?? '', 'base64url')
    const how = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const
    expect(verify('sha256', Buffer.from(nonce), how, signature)).toBe(true)
    expect(signed).toMatchObject({ kid: key?.kid, algorithm: 'ES256' })
    for (const body of [
      { keyId: 'other', nonce },
      { keyId: key?.kid, nonce: `${nonce}x` },
      { keyId: key?.kid, nonce: jwt },
      { keyId: key?.kid, nonce: `${nonce}\n` },
    ]) {
      expect((await listener.call({ path, body })).status).toBe(400)
    }
  })
})
