import { describe, expect, test } from 'vitest'
import { revocationLimits } from '../../src/fsm/sessions/revocation-rules.ts'
import { CallerOf, client, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { claimsOf, type Detail, made, newIdentity } from './support/network.ts'

const { controller, root, sessionOf } = await controllerForFile()

describe('a revocation of tokens', () => {
  const revocations = `${management}/revocations`
  const tokenId = '0197b3a0-5b1e-7c4e-9d2f-0123456789ab'

  test('has the given id, and expires after the last token that it revokes', async () => {
    const body = {
      id: tokenId,
      type: 'JTI',
      tags: { why: 'lost' },
      expiresAt: '2000-01-01T00:00:00Z',
    }
    const made = await root.call('POST', revocations, body)
    expect(made.status, made.text).toBe(201)
    expect(made.body.data).toMatchObject({
      id: tokenId,
      _links: { self: { href: `./revocations/${tokenId}` } },
    })
    const endsAt = controller.clock.nowMs() + revocationLimits.tokenRevocationMs
    expect((await root.get(`${revocations}/${tokenId}`)).body.data).toMatchObject({
      type: 'JTI',
      expiresAt: new Date(endsAt).toISOString(),
      tags: { why: 'lost' },
    })
    const listed = await root.get(`${revocations}?filter=${encodeURIComponent('type = "JTI"')}`)
    expect(listed.body.meta?.pagination?.totalCount).toBe(1)
    expect((await root.get(`${revocations}/nope`)).status).toBe(404)
    expect((await root.call('DELETE', `${revocations}/${tokenId}`)).status).toBe(405)
  })

  test('for a session ends only this session, and for an identity ends its earlier sessions but not later ones', async () => {
    const bob = await newIdentity(root, 'bob')
    const [first, second] = [sessionOf(bob), sessionOf(bob)]
    const status = async (caller: CallerOf) =>
      (await caller.get(`${management}/current-api-session`)).status
    const id = first.token?.split('.')[1] ?? ''
    const one = await root.call('POST', revocations, { id, type: 'API_SESSION' })
    expect(one.status, one.text).toBe(201)
    expect([await status(first), await status(second)]).toEqual([401, 200])
    const all = await root.call('POST', revocations, { id: bob, type: 'IDENTITY' })
    expect(all.status, all.text).toBe(201)
    expect(await status(second)).toBe(401)
    expect(await status(sessionOf(bob))).toBe(200)
  })

  test('can be repeated for an identity, and ends the sessions opened since the previous revocation', async () => {
    const eve = await newIdentity(root, 'eve')
    const revoke = (type: string, id: string) => root.call('POST', revocations, { id, type })
    for (let round = 0; round < 3; round += 1) {
      const session = sessionOf(eve)
      expect((await session.get(`${management}/current-api-session`)).status).toBe(200)
      const reply = await revoke('IDENTITY', eve)
      expect(reply.status, reply.text).toBe(201)
      expect((await session.get(`${management}/current-api-session`)).status).toBe(401)
      controller.clock.advance(1000)
    }
    const shown = (await root.get(`${revocations}/${eve}`)).body.data as Detail
    const endsAt = controller.clock.nowMs() - 1000 + revocationLimits.lifetimeMs
    expect(shown['expiresAt']).toBe(new Date(endsAt).toISOString())
    const other = await revoke('API_SESSION', eve)
    expect([other.status, other.body.error?.cause?.['field']]).toEqual([400, 'id'])
  })

  test('for an enrollment token deletes the enrollment', async () => {
    const identityId = await newIdentity(root, 'fay')
    const expiresAt = new Date(controller.clock.nowMs() + 3_600_000).toISOString()
    const wanted = { identityId, method: 'updb', username: 'fay of old', expiresAt }
    const id = await made(root, `${management}/enrollments`, wanted)
    const { token, jwt } = (await root.get(`${management}/enrollments/${id}`)).body.data as Detail
    expect(claimsOf(jwt).jti).toBe(token)
    expect((await root.call('POST', revocations, { id: token, type: 'JTI' })).status).toBe(201)
    expect((await root.get(`${management}/enrollments/${id}`)).status).toBe(404)
    const password = 'a password of fay'
    const enrolled = await root.call('POST', `${client}/enroll/updb?token=${String(token)}`, {
      username: 'fay of old',
      password,
    })
    expect(enrolled.status).toBe(400)
  })

  test('for an administrator is refused if the caller is not an administrator', async () => {
    const body = { permissions: ['revocation'] }
    await root.call('PATCH', `${management}/identities/alice-id`, body)
    const alice = sessionOf('alice-id')
    for (const [type, id] of [
      ['IDENTITY', 'admin-id'],
      ['API_SESSION', root.token?.split('.')[1] ?? ''],
    ]) {
      const reply = await alice.call('POST', revocations, { id, type })
      expect(reply.status, reply.text).toBe(401)
    }
    expect((await root.get(`${management}/current-api-session`)).status).toBe(200)
  })

  test.each([
    ['id', { type: 'JTI' }],
    ['id', { id: '', type: 'JTI' }],
    ['id', { id: 'x'.repeat(129), type: 'JTI' }],
    ['id', { id: tokenId, type: 'API_SESSION' }],
    ['id', { id: 'no-id-of-a-session', type: 'API_SESSION' }],
    ['id', { id: '-0123456789a', type: 'API_SESSION' }],
    ['id', { id: 'no-uuid', type: 'JTI' }],
    ['id', { id: `${tokenId} `, type: 'JTI' }],
    ['type', { id: 'a' }],
    ['type', { id: 'a', type: 'EVERYTHING' }],
  ])('is refused, and the error names the field %s, for the body %j', async (field, body) => {
    const reply = await root.call('POST', revocations, body)
    expect(reply.status, reply.text).toBe(400)
    expect(reply.body.error?.cause?.['field']).toBe(field)
  })

  test('for an identity is refused if the identity does not exist', async () => {
    const unknown = await root.call('POST', revocations, { id: 'nobody', type: 'IDENTITY' })
    expect(unknown.status).toBe(404)
    expect(unknown.body.error?.code).toBe('NOT_FOUND')
    const known = await root.call('POST', revocations, { id: 'alice-id', type: 'IDENTITY' })
    expect(known.status, known.text).toBe(201)
  })

  test('is removed after its expiry, when another revocation is created', async () => {
    controller.clock.advance(revocationLimits.tokenRevocationMs)
    root.token = controller.openSession('admin-id')
    const ended = 'aSession0123'
    const next = await root.call('POST', revocations, { id: ended, type: 'API_SESSION' })
    expect(next.status, next.text).toBe(201)
    const listed = await root.get(revocations)
    expect((listed.body.data as { id: string }[]).map(({ id }) => id)).toEqual([ended])
  })
})

describe('controller settings', () => {
  const settings = `${management}/controller-settings`
  const shown = async (path: string): Promise<unknown> =>
    (await root.get(`${settings}/${path}`)).body.data

  test('for one controller take precedence over the settings for all controllers', async () => {
    const all = {
      controllerId: 'global',
      oidc: { redirectUris: ['https://a.test'], postLogoutUris: ['https://b.test'] },
    }
    expect((await root.call('POST', settings, all)).status).toBe(201)
    const own = {
      controllerId: 'ctrl1',
      oidc: { redirectUris: ['https://c.test'], unknown: 1 },
      tags: { a: 'b' },
    }
    const made = await root.call('POST', settings, own)
    expect(made.body.data).toMatchObject({ id: 'ctrl1' })
    expect(await shown('ctrl1')).toMatchObject({
      oidc: { redirectUris: ['https://c.test'] },
      tags: { a: 'b' },
    })
    expect(await shown('ctrl1/effective')).toMatchObject({
      id: 'ctrl1',
      instance: { oidc: { redirectUris: ['https://c.test'] } },
      effective: { oidc: { redirectUris: ['https://c.test'], postLogoutUris: ['https://b.test'] } },
    })
    const listed = await root.get(settings)
    expect(listed.body.meta?.pagination?.totalCount).toBe(2)
    const again = await root.call('POST', settings, own)
    expect(again.status).toBe(400)
    const odd = await root.call('POST', settings, { controllerId: 'no/controller' })
    expect(odd.body.error?.cause?.['field']).toBe('controllerId')
  })

  test('can be patched one member at a time, replaced and deleted', async () => {
    const path = `${settings}/ctrl1/effective`
    const patch = { oidc: { postLogoutUris: ['https://d.test'], redirectUris: null } }
    expect((await root.call('PATCH', path, patch)).status).toBe(200)
    const both = { postLogoutUris: ['https://d.test'], redirectUris: ['https://c.test'] }
    expect(await shown('ctrl1')).toMatchObject({ oidc: both, tags: { a: 'b' } })
    const put = await root.call('PUT', path, { oidc: { redirectUris: [] }, controllerId: 'x' })
    expect(put.body.meta?.ignoredFields).toEqual(['controllerId'])
    expect(await shown('ctrl1')).toMatchObject({ oidc: { redirectUris: [] }, tags: {} })
    expect((await root.call('DELETE', path)).status).toBe(200)
    expect((await root.get(path)).status).toBe(404)
    expect((await root.call('PUT', path, {})).status).toBe(404)
  })

  test('are not accessible to an identity without permissions', async () => {
    const alice = new CallerOf(controller)
    alice.token = controller.openSession('alice-id')
    const before = [...controller.state.storedRecords()]
    const oidc = { redirectUris: ['https://evil.test'] }
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['GET', '/global', undefined],
      ['GET', '/global/effective', undefined],
      ['POST', '', { controllerId: 'ctrl2', oidc }],
      ['PUT', '/global/effective', { oidc }],
      ['PATCH', '/global/effective', { oidc }],
      ['DELETE', '/global/effective', undefined],
    ] as const) {
      const reply = await alice.call(method, `${settings}${path}`, body)
      expect([method, path, reply.status]).toEqual([method, path, 401])
    }
    expect([...controller.state.storedRecords()]).toEqual(before)
  })
})
