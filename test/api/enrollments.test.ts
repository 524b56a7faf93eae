import { describe, expect, test } from 'vitest'
import { newUuidv7, formatUuid } from '../../src/lib/text/uuid.ts'
import { CallerOf, client, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { claimsOf, listed, made, newIdentity, shown } from './support/network.ts'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const hour = 3_600_000

const { controller, root } = await controllerForFile({ identityEnrollmentMs: 2 * hour })
let serial = 0

const enrollments = `${management}/enrollments`
const later = (ms = hour): string => new Date(controller.clock.nowMs() + ms).toISOString()

function somebody(rest: Record<string, unknown> = {}): Promise<string> {
  serial += 1
  return newIdentity(root, `somebody ${serial}`, rest)
}

async function newEnrollment(identityId: string, rest: object = {}): Promise<string> {
  return made(root, enrollments, { identityId, method: 'ott', expiresAt: later(), ...rest })
}

describe('The creation of an enrollment', () => {
  test('returns a token and a JWT signed by this controller, and the record of the identity shows the enrollment', async () => {
    const identityId = await somebody()
    const expiresAt = later()
    const id = await newEnrollment(identityId, { expiresAt })
    const detail = await shown(root, `${enrollments}/${id}`)
    expect(detail).toMatchObject({
      _links: { self: { href: `./enrollments/${id}` } },
      method: 'ott',
      expiresAt,
      identityId,
      identity: { entity: 'identities', urlName: 'identities', id: identityId },
      ca: null,
    })
    for (const absent of ['caId', 'edgeRouter', 'edgeRouterId', 'transitRouterId', 'username']) {
      expect(detail).not.toHaveProperty(absent)
    }
    const { token, jwt } = detail
    expect(token).toMatch(uuid)
    expect(await controller.parts.jwt.verify(String(jwt))).toMatchObject({
      iss: 'https://localhost:1280',
      sub: identityId,
      aud: [''],
      jti: token,
      em: 'ott',
      exp: Math.floor(Date.parse(expiresAt) / 1000),
    })
    expect(claimsOf(jwt)).not.toHaveProperty('iat')
    expect(await shown(root, `${management}/identities/${identityId}`)).toMatchObject({
      enrollment: { ott: { id, token, jwt, expiresAt } },
    })
    const own = await listed(root, `${management}/identities/${identityId}/enrollments`)
    expect(own).toEqual([detail])
  })

  test('is refused with 409 if the identity already has an open enrollment of the same type', async () => {
    const identityId = await somebody()
    await newEnrollment(identityId)
    const body = { identityId, method: 'ott', expiresAt: later() }
    const reply = await root.call('POST', enrollments, body)
    expect(reply.status).toBe(409)
    expect(reply.body.error).toMatchObject({
      code: 'ENROLLMENT_EXISTS',
      cause: { field: 'method', value: 'ott' },
    })
    const updb = await newEnrollment(identityId, { method: 'updb', username: 'somebody' })
    expect(await shown(root, `${enrollments}/${updb}`)).toMatchObject({ username: 'somebody' })
    const identity = await shown(root, `${management}/identities/${identityId}`)
    expect(Object.keys(identity['enrollment'] as object).sort()).toEqual(['ott', 'updb'])
  })

  test.each([
    ['identityId', { identityId: 'nobody' }],
    ['identityId', { identityId: null }],
    ['method', { method: 'erott' }],
    ['expiresAt', { expiresAt: '2020-01-01T00:00:00Z' }],
    ['expiresAt', { expiresAt: null }],
    ['expiresAt', { expiresAt: 'tomorrow' }],
    ['caId', { method: 'ottca', caId: 'nowhere' }],
    ['caId', { method: 'ottca' }],
    ['username', { method: 'updb' }],
    ['username', { method: 'updb', username: 'ann' }],
  ])('is refused because of an invalid %s: %j', async (field, changes) => {
    const identityId = await somebody()
    const body = { identityId, method: 'ott', expiresAt: later(), ...changes }
    const reply = await root.call('POST', enrollments, body)
    expect(reply.status, reply.text).toBe(400)
    expect(reply.body.error).toMatchObject({ code: 'COULD_NOT_VALIDATE', cause: { field } })
  })

  test('generates a token, even if the request contains one', async () => {
    const identityId = await somebody()
    const id = await newEnrollment(identityId, { token: 'mine', jwt: 'mine', edgeRouterId: 'x' })
    const detail = await shown(root, `${enrollments}/${id}`)
    expect(detail['token']).toMatch(uuid)
    expect(detail).not.toHaveProperty('edgeRouterId')
  })

  test('returns the same enrollment for a repeated request id', async () => {
    const identityId = await somebody()
    const headers = { 'net-request-id': formatUuid(newUuidv7(controller.clock.nowMs())) }
    const body = { identityId, method: 'ott', expiresAt: later() }
    const first = await root.call('POST', enrollments, body, headers)
    const second = await root.call('POST', enrollments, body, headers)
    expect(second.status).toBe(201)
    expect(second.body.data).toEqual(first.body.data)
  })
})

describe('The refresh of an open or expired enrollment', () => {
  test('creates a new JWT and invalidates the previous one', async () => {
    const identityId = await somebody()
    const id = await newEnrollment(identityId)
    const before = await shown(root, `${enrollments}/${id}`)
    const expiresAt = later(5 * hour)
    const reply = await root.call('POST', `${enrollments}/${id}/refresh`, { expiresAt })
    expect(reply.status, reply.text).toBe(200)
    expect(reply.body.data).toEqual({
      _links: { self: { href: `./enrollments/${id}` } },
      id,
    })
    const after = await shown(root, `${enrollments}/${id}`)
    expect(after).toMatchObject({ expiresAt, identityId, method: 'ott' })
    expect(after['token']).not.toBe(before['token'])
    expect(claimsOf(after['jwt'])).toMatchObject({ jti: after['token'], sub: identityId })
    expect(controller.machine.find('enrollment', 'token', String(before['token']))).toBeUndefined()
  })

  test('is possible for an expired enrollment, which stays listed until the refresh', async () => {
    const identityId = await somebody()
    const id = await newEnrollment(identityId, { expiresAt: later(1000) })
    controller.clock.advance(2000)
    expect(await shown(root, `${enrollments}/${id}`)).toMatchObject({ id })
    const reply = await root.call('POST', `${enrollments}/${id}/refresh`, { expiresAt: later() })
    expect(reply.status).toBe(200)
  })

  test('also updates the token that the router’s record shows', async () => {
    const router = await made(root, `${management}/edge-routers`, { name: 'refreshed' })
    const [enrollment] = controller.machine.findAll('enrollment', 'edgeRouterId', router)
    const expiresAt = later(9 * hour)
    const url = `${enrollments}/${String(enrollment?.id)}/refresh`
    expect((await root.call('POST', url, { expiresAt })).status).toBe(200)
    const detail = await shown(root, `${management}/edge-routers/${router}`)
    expect(detail).toMatchObject({ enrollmentExpiresAt: expiresAt })
    expect(detail['enrollmentToken']).not.toBe(enrollment?.['token'])
    expect(claimsOf(detail['enrollmentJwt'])).toMatchObject({ em: 'erott', sub: router })
  })

  test.each([
    [400, { expiresAt: '2020-01-01T00:00:00Z' }],
    [400, {}],
    [400, { expiresAt: null }],
  ])('is refused with status %i for the body %j', async (status, body) => {
    const id = await newEnrollment(await somebody())
    const reply = await root.call('POST', `${enrollments}/${id}/refresh`, body)
    expect(reply.status).toBe(status)
    expect(reply.body.error?.cause).toMatchObject({ field: 'expiresAt' })
  })

  test('returns 404 for an unknown enrollment', async () => {
    const url = `${enrollments}/nowhere/refresh`
    expect((await root.call('POST', url, { expiresAt: later() })).status).toBe(404)
  })
})

describe('The deletion of an open enrollment', () => {
  test('removes the enrollment, also from the record of the identity', async () => {
    const identityId = await somebody()
    const id = await newEnrollment(identityId)
    expect((await root.call('DELETE', `${enrollments}/${id}`)).status).toBe(200)
    expect((await root.get(`${enrollments}/${id}`)).status).toBe(404)
    expect((await root.call('DELETE', `${enrollments}/${id}`)).status).toBe(404)
    expect(await shown(root, `${management}/identities/${identityId}`)).toMatchObject({
      enrollment: {},
    })
  })

  test('also happens when the identity is deleted', async () => {
    const identityId = await somebody()
    const id = await newEnrollment(identityId)
    await root.call('DELETE', `${management}/identities/${identityId}`)
    expect((await root.get(`${enrollments}/${id}`)).status).toBe(404)
    expect((await root.get(`${management}/identities/${identityId}/enrollments`)).status).toBe(404)
  })
})

describe('an identity created with an enrollment', () => {
  const enrollmentOf = async (id: string): Promise<unknown> =>
    (await shown(root, `${management}/identities/${id}`))['enrollment']

  test('is created in one log entry, and its token is valid for the configured time', async () => {
    const before = controller.cluster.proposals.length
    const id = await somebody({ enrollment: { ott: true } })
    expect(controller.cluster.proposals.length).toBe(before + 1)
    expect(await enrollmentOf(id)).toMatchObject({
      ott: { token: expect.stringMatching(uuid), expiresAt: later(2 * hour) },
    })
  })

  test('uses the first requested method in the order ott, ottca, updb', async () => {
    const first = await somebody({ enrollment: { ott: true, ottca: 'x', updb: 'username' } })
    expect(Object.keys((await enrollmentOf(first)) as object)).toEqual(['ott'])
    const last = await somebody({ enrollment: { ott: false, ottca: '', updb: 'username' } })
    expect(await enrollmentOf(last)).toMatchObject({ updb: { jwt: expect.any(String) } })
    const [record] = controller.machine.findAll('enrollment', 'identityId', last)
    expect(record).toMatchObject({ username: 'username' })
  })

  test('is not created if its enrollment is invalid', async () => {
    const body = { name: 'neither', type: 'Device', isAdmin: false }
    const reply = await root.call('POST', `${management}/identities`, {
      ...body,
      enrollment: { ottca: 'nowhere' },
    })
    expect(reply.body.error?.cause).toMatchObject({ field: 'caId' })
    expect(controller.machine.find('identity', 'name', 'neither')).toBeUndefined()
  })
})

describe('The re-enrollment of an authenticator with expiresAt', () => {
  const authenticators = `${management}/authenticators`

  async function withPassword(): Promise<{ identityId: string; id: string; username: string }> {
    const identityId = await somebody()
    const username = `user name ${serial}`
    const body = { identityId, method: 'updb', username, password: 'a good password' }
    return { identityId, username, id: await made(root, authenticators, body) }
  }

  test('deletes the authenticator and creates an enrollment of the same type, which keeps the user name of a password', async () => {
    const { identityId, id, username } = await withPassword()
    const expiresAt = later()
    const reply = await root.call('POST', `${authenticators}/${id}/re-enroll`, { expiresAt })
    expect(reply.status, reply.text).toBe(201)
    const enrollment = (reply.body.data as { id: string }).id
    expect(reply.body.data).toMatchObject({
      _links: { self: { href: `./enrollments/${enrollment}` } },
    })
    expect(await shown(root, `${enrollments}/${enrollment}`)).toMatchObject({
      method: 'updb',
      username,
      identityId,
      expiresAt,
    })
    expect((await root.get(`${authenticators}/${id}`)).status).toBe(404)
  })

  test('is refused, and keeps the authenticator, if the identity has an open enrollment of that type or if expiresAt is in the past', async () => {
    const { identityId, id } = await withPassword()
    const url = `${authenticators}/${id}/re-enroll`
    const past = await root.call('POST', url, { expiresAt: '2020-01-01T00:00:00Z' })
    expect(past.status).toBe(400)
    await newEnrollment(identityId, { method: 'updb', username: 'somebody' })
    const reply = await root.call('POST', url, { expiresAt: later() })
    expect(reply.status).toBe(409)
    expect(reply.body.error?.code).toBe('ENROLLMENT_EXISTS')
    expect((await root.get(`${authenticators}/${id}`)).status).toBe(200)
  })

  test('returns 404 for an unknown authenticator', async () => {
    const url = `${authenticators}/nowhere/re-enroll`
    expect((await root.call('POST', url, { expiresAt: later() })).status).toBe(404)
    expect((await root.call('POST', url, {})).status).toBe(400)
  })
})

describe('the JWT that describes the network', () => {
  test.each([client, management])('is public below the path %s', async (base) => {
    const reply = await new CallerOf(controller).get(`${base}/network-jwts`)
    expect(reply.status).toBe(200)
    const [row] = reply.body.data as { name: string; token: string }[]
    expect(row?.name).toBe('default')
    const address = 'https://localhost:1280/'
    expect(await controller.parts.jwt.verify(String(row?.token))).toEqual({
      iss: address,
      sub: address,
      aud: ['openziti-enroller'],
      jti: expect.stringMatching(uuid),
      em: 'network',
    })
  })
})

test('an identity without permissions has no access to enrollments', async () => {
  const alice = new CallerOf(controller)
  alice.token = controller.openSession('alice-id')
  const id = await newEnrollment(await somebody())
  const expiresAt = later()
  const before = [...controller.state.storedRecords()]
  for (const [method, path, body] of [
    ['GET', '', undefined],
    ['GET', `/${id}`, undefined],
    ['POST', '', { identityId: 'alice-id', method: 'ott', expiresAt }],
    ['POST', `/${id}/refresh`, { expiresAt }],
    ['DELETE', `/${id}`, undefined],
  ] as const) {
    const reply = await alice.call(method, `${enrollments}${path}`, body)
    expect(reply.status, `${method} ${path}`).toBe(401)
    expect(reply.body.data).toBeUndefined()
  }
  expect([...controller.state.storedRecords()]).toEqual(before)
})
