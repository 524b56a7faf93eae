import { expect, test } from 'vitest'
import { CallerOf, client, management, type Reply } from './support/caller.ts'
import { admin } from './support/controller.ts'
import { controllerForFile } from './support/for-file.ts'

const { controller, root } = await controllerForFile()
const encryptionRequired = true

const dataOf = (reply: Reply): Record<string, unknown> => reply.body.data as Record<string, unknown>
const idOf = (reply: Reply): string => String(dataOf(reply)['id'])

async function shown(collection: string, reply: Reply): Promise<Record<string, unknown>> {
  expect(reply.status, reply.text).toBe(201)
  return dataOf(await root.get(`${management}/${collection}/${idOf(reply)}`))
}

test('a field name is accepted with any capitalization if the body lacks the exact name, and is not reported as ignored', async () => {
  const reply = await root.call('POST', `${management}/service-policies`, {
    NAME: 'dialers',
    Type: 'Dial',
    semantic: 'AnyOf',
    IdentityRoles: ['#all'],
  })
  expect(reply.body.meta?.ignoredFields).toBeUndefined()
  expect(await shown('service-policies', reply)).toMatchObject({
    name: 'dialers',
    type: 'Dial',
    identityRoles: ['#all'],
  })
})

test('the case of field names is ignored at every depth of a body, also in lists', async () => {
  const reply = await root.call('POST', `${management}/posture-checks`, {
    name: 'linux',
    typeId: 'OS',
    operatingSystems: [
      { Type: 'Linux', Versions: ['>=5.0.0'] },
      { type: 'macOS', VERSIONS: [] },
    ],
  })
  expect(await shown('posture-checks', reply)).toMatchObject({
    operatingSystems: [
      { type: 'Linux', versions: ['>=5.0.0'] },
      { type: 'macOS', versions: [] },
    ],
  })
  const policy = await root.call('POST', `${management}/auth-policies`, {
    name: 'strict',
    primary: {
      cert: { allowed: true, allowExpiredCerts: false },
      extJwt: { allowed: false, allowedSigners: [] },
      UPDB: {
        Allowed: true,
        lockoutDurationMinutes: 0,
        maxAttempts: 5,
        MinPasswordLength: 12,
        requireMixedCase: false,
        requireNumberChar: false,
        requireSpecialChar: false,
      },
    },
    secondary: { requireTotp: false },
  })
  expect(await shown('auth-policies', policy)).toMatchObject({
    primary: { updb: { allowed: true, minPasswordLength: 12 } },
  })
})

test('a patch accepts field names with any capitalization', async () => {
  const created = await root.call('POST', `${management}/services`, {
    name: 'before',
    encryptionRequired,
  })
  const path = `${management}/services/${idOf(created)}`
  expect((await root.call('PATCH', path, { Name: 'after' })).status).toBe(200)
  expect(dataOf(await root.get(path))['name']).toBe('after')
})

test('a body is refused if it contains one field in two spellings, in any order and at any depth', async () => {
  const bodies: [unknown, string][] = [
    [{ name: 'one', Name: 'other' }, 'name'],
    [{ Name: 'one', name: 'other' }, 'name'],
    [{ Name: 'one', NAME: 'other' }, 'name'],
  ]
  for (const [body, field] of bodies) {
    const reply = await root.call('POST', `${management}/services`, body)
    expect(reply.status, JSON.stringify(body)).toBe(400)
    expect(reply.body.error?.code).toBe('COULD_NOT_VALIDATE')
    expect(reply.body.error?.cause).toEqual({
      field,
      reason: `${field} in body is given more than once, in other spellings`,
    })
  }
  const nested = await root.call('POST', `${management}/posture-checks`, {
    name: 'twice',
    typeId: 'OS',
    operatingSystems: [{ type: 'Linux', Type: 'iOS', versions: [] }],
  })
  expect(nested.status).toBe(400)
  expect(nested.body.error?.cause?.['field']).toBe('operatingSystems.0.type')
})

test('the keys of free-form maps keep their capital letters', async () => {
  const tags = { Name: 'a', name: 'b', NAME: 'c' }
  const service = await root.call('POST', `${management}/services`, {
    name: 'tagged',
    encryptionRequired,
    Tags: tags,
  })
  expect((await shown('services', service))['tags']).toEqual(tags)
  const appData = { Name: 'a', name: 'b' }
  const identity = await root.call('POST', `${management}/identities`, {
    name: 'with app data',
    type: 'Default',
    isAdmin: false,
    AppData: appData,
  })
  expect((await shown('identities', identity))['appData']).toEqual(appData)
  const type = await root.call('POST', `${management}/config-types`, {
    Name: 'free',
    Schema: { type: 'object', properties: { Name: { type: 'string' }, name: { type: 'string' } } },
  })
  const config = await root.call('POST', `${management}/configs`, {
    name: 'free',
    ConfigTypeId: idOf(type),
    Data: { Name: 'a', name: 'b' },
  })
  expect((await shown('configs', config))['data']).toEqual({ Name: 'a', name: 'b' })
})

test('a log-in, which has no record descriptor, also ignores the case of field names', async () => {
  const reply = await new CallerOf(controller).call(
    'POST',
    `${client}/authenticate?method=password`,
    { Username: admin.username, PASSWORD: admin.password, EnvInfo: { Os: 'linux' } },
  )
  expect(reply.status, reply.text).toBe(200)
})

test('an unknown field name is listed in the response as ignored', async () => {
  const reply = await root.call('POST', `${management}/services`, {
    name: 'odd',
    encryptionRequired,
    Colour: 'red',
  })
  expect(reply.body.meta?.ignoredFields).toEqual(['Colour'])
})
