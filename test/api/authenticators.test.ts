import { afterAll, describe, expect, test } from 'vitest'
import { newUuidv7, formatUuid } from '../../src/lib/text/uuid.ts'
import { CallerOf, client, management, type Reply } from './support/caller.ts'
import { admin, startController, type TestController } from './support/controller.ts'
import { controllerForFile } from './support/for-file.ts'

const { controller, root } = await controllerForFile()
const replies: Reply[] = []

afterAll(() => {
  // No response in this file contains a password hash.
  expect(replies.length).toBeGreaterThan(20)
  for (const { text } of replies) expect(text).not.toMatch(/argon2/i)
})

const authenticators = `${management}/authenticators`
const own = '/current-identity/authenticators'
let serial = 0

async function call(
  caller: CallerOf,
  method: string,
  url: string,
  body?: unknown,
  headers?: Record<string, string>,
): Promise<Reply> {
  const reply = await caller.call(method, url, body, headers)
  replies.push(reply)
  return reply
}

interface Holder {
  readonly identityId: string
  readonly id: string
  readonly username: string
  readonly password: string
}

async function newIdentity(): Promise<string> {
  serial += 1
  const body = { name: `holder ${serial}`, type: 'User', isAdmin: false }
  const reply = await root.call('POST', `${management}/identities`, body)
  return (reply.body.data as { id: string }).id
}

async function newHolder(): Promise<Holder> {
  const identityId = await newIdentity()
  const credentials = { username: `user${serial}`, password: `password of ${serial}` }
  const body = { identityId, method: 'updb', ...credentials }
  const reply = await call(root, 'POST', authenticators, body)
  expect(reply.status, reply.text).toBe(201)
  return { identityId, id: (reply.body.data as { id: string }).id, ...credentials }
}

async function loggedIn(
  holder: Holder,
  base: typeof client | typeof management = client,
): Promise<CallerOf> {
  const caller = new CallerOf(controller)
  const reply = await caller.logIn(holder, base)
  expect(reply.status, reply.text).toBe(200)
  return caller
}

describe('a user name and password authenticator', () => {
  test('lets its identity log in, is listed with the identity, and can be found by its user name but not by its password hash', async () => {
    const holder = await newHolder()
    const { identityId, id, username } = holder
    const caller = await loggedIn(holder)
    const me = await call(caller, 'GET', `${client}/current-identity`)
    expect(me.body.data).toMatchObject({
      id: identityId,
      authenticators: { updb: { id, username } },
    })
    const shown = await call(root, 'GET', `${authenticators}/${id}`)
    expect(shown.body.data).toMatchObject({
      method: 'updb',
      username,
      identityId,
      identity: { id: identityId, entity: 'identities' },
      _links: { identities: { href: `./identities/${identityId}` } },
    })
    const listed = await call(root, 'GET', `${management}/identities/${identityId}/authenticators`)
    expect((listed.body.data as { id: string }[]).map((row) => row.id)).toEqual([id])
    expect((await root.get(`${management}/identities/nope/authenticators`)).status).toBe(404)
    const filter = encodeURIComponent(`updbUsername = "${username}"`)
    const found = await call(root, 'GET', `${authenticators}?filter=${filter}`)
    expect(found.body.meta?.pagination?.totalCount).toBe(1)
    for (const field of ['passwordHash', 'updbPassword']) {
      const asked = await root.get(`${authenticators}?filter=${field}%20contains%20%22a%22`)
      expect(asked.body.error?.code).toBe('INVALID_FILTER')
    }
  })

  test('is refused if the identity already has a password or does not exist, or if the user name is in use', async () => {
    const { identityId, username } = await newHolder()
    const again = { identityId, method: 'updb', username: 'somebody', password: 'secret one' }
    const second = await call(root, 'POST', authenticators, again)
    expect(second.status).toBe(409)
    expect(second.body.error?.code).toBe('MAX_AUTHENTICATOR_METHODS_REACHED')
    const other = { ...again, identityId: await newIdentity(), username }
    const taken = await call(root, 'POST', authenticators, other)
    expect(taken.body.error?.cause).toMatchObject({
      field: 'username',
      reason: 'username must be unique',
    })
    const nobody = await call(root, 'POST', authenticators, { ...again, identityId: 'nobody' })
    expect(nobody.status).toBe(404)
  })

  test.each([
    ['username', 'a username of 3 characters', { username: 'abc' }],
    ['username', 'a username of 101 characters', { username: 'x'.repeat(101) }],
    ['username', 'the username null', { username: null }],
    ['username', 'a missing username', { username: undefined }],
    ['password', 'a password of 4 characters', { password: '1234' }],
    ['password', 'a password of 101 characters', { password: 'x'.repeat(101) }],
    ['password', 'the password null', { password: null }],
    ['password', 'a number as password', { password: 12345 }],
    ['method', 'an unknown method', { method: 'face' }],
    ['certPem', 'a missing certificate', { method: 'cert' }],
    ['method', 'the method ext-jwt', { method: 'ext-jwt' }],
    ['method', 'a missing method', { method: undefined }],
    ['identityId', 'a missing identityId', { identityId: undefined }],
  ])(
    'is refused with an error that names the field %s and does not echo the password, for %s',
    async (field, _fault, fields) => {
      const proposals = controller.cluster.proposals.length
      const body = {
        identityId: 'alice-id',
        method: 'updb',
        username: 'a new name',
        password: 'a new secret',
        ...fields,
      }
      const reply = await call(root, 'POST', authenticators, body)
      expect(reply.status, reply.text).toBe(400)
      expect(reply.body.error?.cause?.['field']).toBe(field)
      expect(reply.text).not.toContain('a new secret')
      if (field === 'password') expect(reply.body.error?.cause).not.toHaveProperty('value')
      expect(controller.cluster.proposals.length).toBe(proposals)
    },
  )

  test('ignores a password hash in a patch', async () => {
    const holder = await newHolder()
    const before = controller.machine.get('authenticator', holder.id)?.['passwordHash']
    const patch = await call(root, 'PATCH', `${authenticators}/${holder.id}`, {
      passwordHash: 'forged',
      tags: { a: 1 },
    })
    expect(patch.status).toBe(200)
    expect(patch.body.meta?.ignoredFields).toEqual(['passwordHash'])
    expect(controller.machine.get('authenticator', holder.id)?.['passwordHash']).toBe(before)
  })

  test('can be changed by an administrator; a new password invalidates the old password and ends its sessions, but new tags end no session', async () => {
    const holder = await newHolder()
    const caller = await loggedIn(holder)
    const url = `${authenticators}/${holder.id}`
    const password = 'another password'
    const tags = { kept: 'as the password stays' }
    expect((await call(root, 'PATCH', url, { tags })).status).toBe(200)
    expect((await caller.get(`${client}/current-identity`)).status).toBe(200)
    expect((await call(root, 'PATCH', url, { password })).status).toBe(200)
    expect((await caller.get(`${client}/current-identity`)).status).toBe(401)
    expect((await root.get(url)).status).toBe(200)
    expect((await new CallerOf(controller).logIn(holder)).status).toBe(401)
    await loggedIn({ ...holder, password })
    const put = await call(root, 'PUT', url, {
      username: `${holder.username}b`,
      password: 'third one',
    })
    expect(put.status, put.text).toBe(200)
    await loggedIn({ ...holder, username: `${holder.username}b`, password: 'third one' })
    expect((await call(root, 'PUT', url, { username: 'only the name' })).status).toBe(400)
    expect((await call(root, 'PATCH', `${authenticators}/nope`, { password })).status).toBe(404)
    // The owner and the method can be set only at creation.
    const moved = await call(root, 'PATCH', url, { identityId: 'admin-id', method: 'cert' })
    expect(moved.body.meta?.ignoredFields).toEqual(['identityId', 'method'])
  })

  test('ends, when it is deleted, the sessions that it opened', async () => {
    const holder = await newHolder()
    const caller = await loggedIn(holder)
    expect((await call(root, 'DELETE', `${authenticators}/${holder.id}`)).status).toBe(200)
    expect((await caller.get(`${client}/current-identity`)).status).toBe(401)
    expect((await new CallerOf(controller).logIn(holder)).status).toBe(401)
    expect((await call(root, 'DELETE', `${authenticators}/${holder.id}`)).status).toBe(404)
  })

  test('puts only the password’s hash into the log, even if the request has a request ID', async () => {
    const identityId = await newIdentity()
    const secret = 'never in the log'
    const headers = { 'net-request-id': formatUuid(newUuidv7(controller.clock.nowMs())) }
    const body = { identityId, method: 'updb', username: 'logged user', password: secret }
    const before = controller.cluster.proposals.length
    expect((await call(root, 'POST', authenticators, body, headers)).status).toBe(201)
    const [proposal] = controller.cluster.proposals.slice(before)
    expect(proposal?.request).toBeUndefined()
    const payload = Buffer.from(proposal?.payload ?? new Uint8Array()).toString('latin1')
    expect(payload).toContain('$argon2id$')
    expect(payload).not.toContain(secret)
  })
})

describe('the password rules of the auth policy', () => {
  test('require eight characters by default, whether an administrator or the user sets the password', async () => {
    const short = '1234567'
    const holder = await newHolder()
    const caller = await loggedIn(holder)
    const { username, password: currentPassword } = holder
    const url = `${authenticators}/${holder.id}`
    const identityId = await newIdentity()
    const create = { identityId, method: 'updb', username: `${username}s`, password: short }
    const ownUrl = `${client}${own}/${holder.id}`
    for (const reply of [
      await call(root, 'POST', authenticators, create),
      await call(root, 'PUT', url, { username, password: short }),
      await call(root, 'PATCH', url, { password: short }),
      await call(caller, 'PUT', ownUrl, { username, password: short, currentPassword }),
      await call(caller, 'PATCH', ownUrl, { password: short, currentPassword }),
    ]) {
      expect(reply.status, reply.text).toBe(400)
      const reason = 'password should be at least 8 chars long'
      expect(reply.body.error?.cause).toMatchObject({ field: 'password', reason })
      expect(reply.text).not.toContain(short)
    }
    const shown = await root.get(`${management}/auth-policies/default`)
    expect(shown.body.data).toMatchObject({ primary: { updb: { minPasswordLength: 8 } } })
  })

  test.each([
    ['short', /at least 12/],
    ['all lower case', /upper and lower/],
    ['Mixed Case Alone', /digit/],
    ['Mixed Case 123', /neither letter nor digit/],
  ])('refuse the password %j', async (password, reason) => {
    const strict = await startController()
    try {
      const policy = strict.machine.get('authPolicy', 'default')
      const primary = policy?.['primary'] as { updb: Record<string, unknown> }
      Object.assign(primary.updb, {
        minPasswordLength: 12,
        requireMixedCase: true,
        requireNumberChar: true,
        requireSpecialChar: true,
      })
      const caller = new CallerOf(strict)
      caller.token = strict.openSession('admin-id')
      const url = `${authenticators}/alice-updb`
      const reply = await call(caller, 'PATCH', url, { password })
      expect(reply.status).toBe(400)
      expect(reply.body.error?.cause).toMatchObject({
        field: 'password',
        reason: expect.stringMatching(reason),
      })
      expect(reply.text).not.toContain(password)
      expect((await call(caller, 'PATCH', url, { password: 'Mixed Case 123!' })).status).toBe(200)
    } finally {
      await strict.close()
    }
  })
})

describe('the authenticators of the calling identity', () => {
  test.each([client, management])(
    'are listed and shown at %s, without those of other identities',
    async (base) => {
      const holder = await newHolder()
      const caller = await loggedIn(holder, base)
      const listed = await call(caller, 'GET', base + own)
      expect(listed.body.data).toMatchObject([
        {
          id: holder.id,
          username: holder.username,
          _links: { self: { href: `./current-identity/authenticators/${holder.id}` } },
        },
      ])
      const other = encodeURIComponent(`identity = "admin-id"`)
      expect((await call(caller, 'GET', `${base}${own}?filter=${other}`)).body.data).toEqual([])
      expect((await call(caller, 'GET', `${base}${own}/${holder.id}`)).status).toBe(200)
      expect((await call(caller, 'GET', `${base}${own}/admin-updb`)).status).toBe(404)
      const body = { currentPassword: admin.password, password: 'taken over' }
      expect((await call(caller, 'PATCH', `${base}${own}/admin-updb`, body)).status).toBe(404)
      // Even for an administrator, this path changes only the administrator's own authenticators.
      expect((await call(root, 'PATCH', `${base}${own}/${holder.id}`, body)).status).toBe(404)
    },
  )

  test('can be changed with the current password; the calling session stays valid, and the other sessions end', async () => {
    const holder = await newHolder()
    const caller = await loggedIn(holder)
    const elsewhere = await loggedIn(holder)
    const url = `${client}${own}/${holder.id}`
    const password = 'my next password'
    const wrong = await call(caller, 'PATCH', url, { currentPassword: 'not it at all', password })
    expect(wrong.status).toBe(401)
    expect(wrong.body.error).toMatchObject({
      code: 'UNAUTHORIZED',
      cause: { field: 'currentPassword' },
    })
    expect(wrong.text).not.toContain('not it at all')
    const missing = await call(caller, 'PATCH', url, { password })
    expect(missing.body.error?.cause?.['field']).toBe('currentPassword')
    const right = await call(caller, 'PATCH', url, { currentPassword: holder.password, password })
    expect(right.status, right.text).toBe(200)
    expect(right.body.meta).not.toHaveProperty('ignoredFields')
    expect((await elsewhere.get(`${client}/current-identity`)).status).toBe(401)
    expect((await caller.get(`${client}/current-identity`)).status).toBe(200)
    expect((await new CallerOf(controller).logIn(holder)).status).toBe(401)
    const put = await call(caller, 'PUT', url, {
      currentPassword: password,
      username: `${holder.username}x`,
      password: 'and one more',
    })
    expect(put.status, put.text).toBe(200)
    await loggedIn({ ...holder, username: `${holder.username}x`, password: 'and one more' })
    const short = await call(caller, 'PATCH', url, {
      currentPassword: 'and one more',
      password: 'abc',
    })
    expect(short.status).toBe(400)
  })

  test('cannot be changed if another request replaces the current password after its verification and before the change is proposed', async () => {
    const holder = await newHolder()
    const caller = await loggedIn(holder)
    const url = `${client}${own}/${holder.id}`
    const { propose } = controller.cluster
    let hasMoved = false
    controller.cluster.propose = async function (this: TestController['cluster'], input) {
      if (!hasMoved) {
        hasMoved = true
        controller.cluster.propose = propose
        const elsewhere = await root.call('PATCH', `${authenticators}/${holder.id}`, {
          password: 'changed elsewhere',
        })
        expect(elsewhere.status).toBe(200)
      }
      return propose.call(controller.cluster, input)
    }
    const reply = await call(caller, 'PATCH', url, {
      currentPassword: holder.password,
      password: 'too late by then',
    })
    expect(hasMoved).toBe(true)
    expect(reply.status).toBe(401)
    await loggedIn({ ...holder, password: 'changed elsewhere' })
  })

  test('do not permit a log-in if a log entry changed the password before the log-in was applied', async () => {
    const holder = await newHolder()
    const { propose } = controller.cluster
    let hasMoved = false
    controller.cluster.propose = async function (this: TestController['cluster'], input) {
      if (!hasMoved) {
        hasMoved = true
        controller.cluster.propose = propose
        const url = `${authenticators}/${holder.id}`
        const changed = await root.call('PATCH', url, { password: 'changed meanwhile' })
        expect(changed.status).toBe(200)
      }
      return propose.call(controller.cluster, input)
    }
    const reply = await new CallerOf(controller).logIn(holder, client)
    expect(hasMoved).toBe(true)
    expect(reply.status, reply.text).toBe(401)
    await loggedIn({ ...holder, password: 'changed meanwhile' })
  })

  test('permit ten wrong guesses of the current password; further requests get the status 429', async () => {
    const holder = await newHolder()
    const caller = await loggedIn(holder)
    const url = `${client}${own}/${holder.id}`
    const statuses: number[] = []
    for (let i = 0; i < 12; i += 1) {
      const body = { currentPassword: `guess ${i}`, password: 'irrelevant' }
      statuses.push((await call(caller, 'PATCH', url, body)).status)
    }
    expect(statuses.slice(0, 10)).toEqual(Array<number>(10).fill(401))
    expect(statuses.slice(10)).toEqual([429, 429])
  })
})
