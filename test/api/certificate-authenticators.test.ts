import { describe, expect, test } from 'vitest'
import { parseCertificate } from '../../src/pki/certificate.ts'
import { LEAF_LIFETIME_MS } from '../../src/pki/authority/authority.ts'
import { clientCertificate, newCa } from '../support/authorities.ts'
import { management, type Reply } from './support/caller.ts'
import { sessionCommand } from './support/controller.ts'
import { controllerForFile } from './support/for-file.ts'

const { controller, root } = await controllerForFile()

const authenticators = `${management}/authenticators`
let serial = 0
const nowMs = (): number => controller.clock.nowMs()
const idOf = (reply: Reply): string => {
  expect(reply.status, reply.text).toBe(201)
  return (reply.body.data as { id: string }).id
}
async function newIdentity(): Promise<string> {
  serial += 1
  const body = { name: `holder ${serial}`, type: 'User', isAdmin: false }
  return idOf(await root.call('POST', `${management}/identities`, body))
}
const ofNetwork = (): Promise<string> =>
  clientCertificate(controller.authorities.issuing, `client ${serial}`, nowMs())
const give = (identityId: string, certPem: unknown): Promise<Reply> =>
  root.call('POST', authenticators, { identityId, method: 'cert', certPem })
const shown = async (id: string): Promise<Record<string, unknown>> =>
  (await root.get(`${authenticators}/${id}`)).body.data as Record<string, unknown>

describe('a certificate authenticator that an administrator creates for an identity', () => {
  test('is stored with its fingerprint, and shown with its identity', async () => {
    const identityId = await newIdentity()
    const certPem = await ofNetwork()
    const id = idOf(await give(identityId, certPem))
    const { sha1, publicKeySha256 } = parseCertificate(certPem)
    expect(await shown(id)).toMatchObject({
      method: 'cert',
      fingerprint: sha1,
      certPem,
      identityId,
    })
    for (const absent of ['username', 'isIssuedByNetwork', 'isExtendRequested', 'caId']) {
      expect(await shown(id)).not.toHaveProperty(absent)
    }
    const print = Buffer.from(publicKeySha256).toString('hex')
    const filter = encodeURIComponent(`publicKeyPrint = "${print}" and certFingerprint = "${sha1}"`)
    const found = await root.get(`${authenticators}?filter=${filter}`)
    expect(found.body.meta?.pagination?.totalCount).toBe(1)
    const identity = await root.get(`${management}/identities/${identityId}`)
    expect(identity.body.data).toMatchObject({
      authenticators: { cert: { id, fingerprint: sha1 } },
    })
    const own = await root.get(`${management}/identities/${identityId}/authenticators`)
    expect((own.body.data as { id: string }[]).map((row) => row.id)).toEqual([id])
  })

  test('may exist together with a password: an identity has at most one authenticator of each method', async () => {
    const identityId = await newIdentity()
    idOf(await give(identityId, await ofNetwork()))
    const updb = { identityId, method: 'updb', username: `user${serial}`, password: 'long enough' }
    idOf(await root.call('POST', authenticators, updb))
    const second = await give(identityId, await ofNetwork())
    expect(second.status).toBe(409)
    expect(second.body.error?.code).toBe('MAX_AUTHENTICATOR_METHODS_REACHED')
  })

  test('is refused if its certificate belongs to another identity', async () => {
    const certPem = await ofNetwork()
    idOf(await give(await newIdentity(), certPem))
    const taken = await give(await newIdentity(), certPem)
    expect(taken.status).toBe(400)
    expect(taken.body.error?.cause?.['field']).toBe('fingerprint')
  })

  test('is refused unless it contains exactly one certificate', async () => {
    const identityId = await newIdentity()
    const one = await ofNetwork()
    for (const certPem of ['nothing', `${one}${one}`, one.slice(0, 200)]) {
      const reply = await give(identityId, certPem)
      expect(reply.status).toBe(400)
      expect(reply.body.error?.code).toBe('COULD_NOT_PARSE_PEM_BLOCK')
    }
    for (const certPem of [undefined, null, '']) {
      const reply = await give(identityId, certPem)
      expect(reply.body.error?.cause).toMatchObject({ field: 'certPem' })
    }
    const other = await root.call('POST', authenticators, { identityId, method: 'face' })
    expect(other.body.error?.cause).toMatchObject({ field: 'method' })
  })

  test('is refused unless its certificate chains to a trusted CA that is valid when the certificate’s validity begins', async () => {
    const identityId = await newIdentity()
    const stranger = await newCa('stranger', nowMs())
    const refused = await give(identityId, await clientCertificate(stranger, 'x', nowMs()))
    expect(refused.status).toBe(400)
    expect(refused.body.error?.cause?.['field']).toBe('certPem')
    const ended = { notBeforeMs: nowMs(), notAfterMs: nowMs() + 1000 }
    const certPem = await clientCertificate(controller.authorities.issuing, 'short', ended)
    controller.clock.advance(60_000)
    idOf(await give(identityId, certPem))
    const early = { notBeforeMs: nowMs() - LEAF_LIFETIME_MS, notAfterMs: nowMs() }
    const before = await clientCertificate(controller.authorities.issuing, 'early', early)
    expect((await give(await newIdentity(), before)).status).toBe(400)
  })

  test('can change only in its tags', async () => {
    const id = idOf(await give(await newIdentity(), await ofNetwork()))
    const credentials = { username: 'somebody', password: 'something' }
    const before = controller.state.get('authenticator', id)
    for (const [method, body] of [
      ['PUT', credentials],
      ['PATCH', { username: 'somebody' }],
      ['PATCH', { password: 'something' }],
    ] as const) {
      const reply = await root.call(method, `${authenticators}/${id}`, body)
      expect(reply.status).toBe(409)
      expect(reply.body.error?.code).toBe('CAN_NOT_UPDATE_AUTHENTICATOR')
      expect(controller.state.get('authenticator', id)).toEqual(before)
    }
    const tags = { tags: { a: 'b' }, method: 'updb', identityId: 'x', certPem: 'y' }
    expect((await root.call('PATCH', `${authenticators}/${id}`, tags)).status).toBe(200)
    const { revision, updatedAt } = controller.state.get('authenticator', id) ?? {}
    const changed = { ...before, tags: { a: 'b' }, revision, updatedAt }
    expect(controller.state.get('authenticator', id)).toEqual(changed)
  })

  test('is replaced by an ott enrollment when an administrator re-enrolls it', async () => {
    const identityId = await newIdentity()
    const id = idOf(await give(identityId, await ofNetwork()))
    const expiresAt = new Date(nowMs() + 60_000).toISOString()
    const url = `${authenticators}/${id}/re-enroll`
    const enrollment = idOf(await root.call('POST', url, { expiresAt }))
    const made = await root.get(`${management}/enrollments/${enrollment}`)
    expect(made.body.data).toMatchObject({ method: 'ott', identityId, expiresAt })
    expect((await root.get(`${authenticators}/${id}`)).status).toBe(404)
  })

  test('ends, when it is deleted, the sessions that it opened', async () => {
    const identityId = await newIdentity()
    const id = idOf(await give(identityId, await ofNetwork()))
    controller.cluster.apply(sessionCommand('kept', identityId))
    controller.cluster.apply(sessionCommand('made', identityId, id))
    expect((await root.call('DELETE', `${authenticators}/${id}`)).status).toBe(200)
    const sessions = await root.get(`${management}/api-sessions?limit=500`)
    const ids = (sessions.body.data as { id: string }[]).map((row) => row.id)
    expect(ids).toContain('kept')
    expect(ids).not.toContain('made')
  })
})

describe('an administrator’s request to extend a certificate', () => {
  test('is shown in the record of the certificate and in the sessions that were opened with it', async () => {
    const identityId = await newIdentity()
    const id = idOf(await give(identityId, await ofNetwork()))
    controller.cluster.apply(sessionCommand('extending', identityId, id))
    const ask = (rollKeys?: boolean): Promise<Reply> =>
      root.call('POST', `${authenticators}/${id}/request-extend`, { rollKeys })
    expect((await ask()).status).toBe(200)
    expect(await shown(id)).toMatchObject({
      isExtendRequested: true,
      extendRequestedAt: new Date(nowMs()).toISOString(),
    })
    expect(await shown(id)).not.toHaveProperty('isKeyRollRequested')
    expect((await ask(true)).status).toBe(200)
    expect(await shown(id)).toMatchObject({ isExtendRequested: true, isKeyRollRequested: true })
    const session = await root.get(`${management}/api-sessions/extending`)
    expect(session.body.data).toMatchObject({
      isCertExtendRequested: true,
      isCertKeyRollRequested: true,
      isCertExtendable: false,
    })
    const filter = encodeURIComponent('isExtendRequested = true')
    const found = await root.get(`${authenticators}?filter=${filter}`)
    expect(found.body.meta?.pagination?.totalCount).toBe(1)
  })

  test('is refused for a password authenticator and for an unknown authenticator', async () => {
    const reply = await root.call('POST', `${authenticators}/alice-updb/request-extend`, {})
    expect(reply.status).toBe(409)
    expect(reply.body.error?.code).toBe('CAN_NOT_UPDATE_AUTHENTICATOR')
    expect((await root.call('POST', `${authenticators}/nope/request-extend`, {})).status).toBe(404)
  })
})
