import { expect, test } from 'vitest'
import { client, management } from './support/caller.ts'
import { user } from './support/controller.ts'
import { controllerForFile } from './support/for-file.ts'

const { controller, root, sessionOf } = await controllerForFile()
const alice = sessionOf('alice-id')

const services = `${management}/services`
const policies = `${management}/service-policies`

interface Detail {
  readonly id: string
  readonly name: string
  readonly createdAt: string
  readonly updatedAt: string
  readonly [key: string]: unknown
}

async function created(url: string, body: unknown): Promise<string> {
  const reply = await root.call('POST', url, body)
  expect(reply.status, reply.text).toBe(201)
  return (reply.body.data as Detail).id
}

async function detail(url: string): Promise<Detail> {
  const reply = await root.get(url)
  expect(reply.status, reply.text).toBe(200)
  return reply.body.data as Detail
}

test('a service can be created, shown, replaced, patched and deleted', async () => {
  const make = await root.call('POST', services, {
    name: 'printer',
    encryptionRequired: true,
    roleAttributes: ['b', 'a', 'b'],
    tags: { floor: 2, colour: true, note: null },
    semantc: 'a typo',
    id: 'mine',
  })
  expect(make.status).toBe(201)
  const { id, _links } = make.body.data as { id: string; _links: unknown }
  expect(_links).toEqual({ self: { href: `./services/${id}` } })
  expect(make.body.meta?.ignoredFields).toEqual(['semantc', 'id'])
  expect(id).not.toBe('mine')

  const shown = await detail(`${services}/${id}`)
  expect(shown).toMatchObject({
    id,
    name: 'printer',
    encryptionRequired: true,
    terminatorStrategy: 'smartrouting',
    maxIdleTimeMillis: 0,
    roleAttributes: ['a', 'b'],
    tags: { floor: 2, colour: true, note: null },
    config: {},
    configs: null,
    permissions: ['Invalid'],
  })
  expect(shown.createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  expect(shown['_links']).toMatchObject({ terminators: { href: `./services/${id}/terminators` } })

  controller.clock.advance(1000)
  const patch = await root.call('PATCH', `${services}/${id}`, {
    maxIdleTimeMillis: 5000,
    name: null,
    encryptionRequired: false,
  })
  expect(patch.status).toBe(200)
  expect(patch.body.data).toEqual({})
  expect(patch.body.meta?.ignoredFields).toEqual(['encryptionRequired'])
  const patched = await detail(`${services}/${id}`)
  expect(patched).toMatchObject({
    name: 'printer',
    maxIdleTimeMillis: 5000,
    encryptionRequired: true,
    roleAttributes: ['a', 'b'],
    createdAt: shown.createdAt,
  })
  expect(Date.parse(patched.updatedAt) - Date.parse(shown.updatedAt)).toBe(1000)

  const put = await root.call('PUT', `${services}/${id}`, { name: 'plotter' })
  expect(put.status).toBe(200)
  expect(put.body.meta).not.toHaveProperty('ignoredFields')
  expect(await detail(`${services}/${id}`)).toMatchObject({
    name: 'plotter',
    roleAttributes: null,
    tags: {},
    maxIdleTimeMillis: 0,
    encryptionRequired: true,
  })

  expect((await root.call('PATCH', `${services}/${id}`, {})).status).toBe(200)
  expect((await root.call('DELETE', `${services}/${id}`)).status).toBe(200)
  expect((await root.get(`${services}/${id}`)).status).toBe(404)
  const again = await root.call('DELETE', `${services}/${id}`)
  expect(again.status).toBe(404)
  expect(again.body.error?.code).toBe('NOT_FOUND')
})

test('a service name that is in use is refused at create, replace and patch', async () => {
  await created(services, { name: 'taken', encryptionRequired: true })
  const other = await created(services, { name: 'other', encryptionRequired: true })
  for (const [method, url] of [
    ['POST', services],
    ['PUT', `${services}/${other}`],
    ['PATCH', `${services}/${other}`],
  ] as const) {
    const reply = await root.call(method, url, { name: 'taken', encryptionRequired: true })
    expect(reply.status, method).toBe(400)
    expect(reply.body.error?.code).toBe('COULD_NOT_VALIDATE')
    expect(reply.body.error?.cause).toMatchObject({ field: 'name', reason: 'name must be unique' })
  }
})

test('a string with characters beyond ASCII is returned unchanged', async () => {
  for (const name of ['Prüfgerät', 'プリンター 🖨', 'plain']) {
    const id = await created(services, { name, encryptionRequired: true })
    expect((await detail(`${services}/${id}`)).name).toBe(name)
  }
})

test('a write gets the response 404 if its record is unknown, or if it references an unknown record', async () => {
  for (const [method, url, body] of [
    ['PUT', `${services}/nobody`, { name: 'x' }],
    ['PATCH', `${services}/nobody`, { name: 'x' }],
    ['DELETE', `${services}/nobody`, undefined],
    ['POST', services, { name: 'dangling', encryptionRequired: true, configs: ['nobody'] }],
  ] as const) {
    const reply = await root.call(method, url, body)
    expect(reply.status, `${method} ${url}`).toBe(404)
    expect(reply.body.error?.code).toBe('NOT_FOUND')
  }
})

test('a policy is refused with invalid roles, and shows the names of the records in valid roles', async () => {
  const service = await created(services, { name: 'wiki', encryptionRequired: true })
  const base = { name: 'readers', type: 'Dial', semantic: 'AnyOf' }
  for (const [field, roles] of [
    ['serviceRoles', ['wiki']],
    ['serviceRoles', ['@nobody']],
    ['identityRoles', ['#all', '#x']],
  ] as const) {
    const reply = await root.call('POST', policies, { ...base, [field]: roles })
    expect(reply.status, String(roles)).toBe(400)
    expect(reply.body.error?.cause?.['field']).toBe(field)
  }
  for (const change of [{ type: 'Invalid' }, { semantic: 'anyof' }, { type: undefined }]) {
    expect((await root.call('POST', policies, { ...base, ...change })).status).toBe(400)
  }
  const id = await created(policies, {
    ...base,
    serviceRoles: [`@${service}`],
    identityRoles: ['#staff'],
  })
  expect(await detail(`${policies}/${id}`)).toMatchObject({
    serviceRoles: [`@${service}`],
    serviceRolesDisplay: [{ role: `@${service}`, name: '@wiki' }],
    identityRolesDisplay: [{ role: '#staff', name: '#staff' }],
    postureCheckRoles: null,
    type: 'Dial',
  })
  const identities = await root.get(`${policies}/${id}/identities`)
  expect((identities.body.data as Detail[]).map(({ name }) => name)).toEqual(['Alice'])
  const linked = await root.get(`${services}/${service}/service-policies`)
  expect((linked.body.data as Detail[]).map(({ name }) => name)).toEqual(['readers'])

  const mine = await alice.get(`${client}/services`)
  expect(mine.status).toBe(200)
  expect((mine.body.data as Detail[]).map(({ name, permissions }) => [name, permissions])).toEqual([
    ['wiki', ['Dial']],
  ])
  expect((await alice.get(`${client}/services/${service}`)).status).toBe(200)
  await root.call('DELETE', `${policies}/${id}`)
  expect((await alice.get(`${client}/services`)).body.data).toEqual([])
  expect((await alice.get(`${client}/services/${service}`)).status).toBe(404)
})

test('on the client API an administrator sees only services that policies grant to the administrator, but may change every service', async () => {
  const id = await created(services, { name: 'unreached', encryptionRequired: true })
  expect((await root.get(`${client}/services/${id}`)).status).toBe(404)
  expect((await root.call('PATCH', `${client}/services/${id}`, { name: 'reached' })).status).toBe(
    200,
  )
  expect(await detail(`${services}/${id}`)).toMatchObject({ name: 'reached' })
  expect((await alice.call('PATCH', `${client}/services/${id}`, { name: 'stolen' })).status).toBe(
    401,
  )
})

test('a list of the records that belong to an unknown record is empty for some kinds of records, and gets the response 404 for others, as the docs describe', async () => {
  expect((await root.get(`${management}/identities/nobody/services`)).status).toBe(404)
  const empty = await root.get(`${services}/nobody/service-policies`)
  expect(empty.status).toBe(200)
  expect(empty.body.data).toEqual([])
})

test('a list can be paged, filtered and sorted', async () => {
  for (let n = 0; n < 25; n += 1) {
    await created(services, {
      name: `page-${String(n).padStart(2, '0')}`,
      encryptionRequired: true,
      roleAttributes: n % 5 === 0 ? ['fifth', 'page'] : ['page'],
    })
  }
  const ask = async (query: string) => {
    const reply = await root.get(`${services}?${query}`)
    expect(reply.status, reply.text).toBe(200)
    return {
      names: (reply.body.data as Detail[]).map(({ name }) => name),
      pagination: reply.body.meta?.pagination,
      fields: reply.body.meta?.filterableFields,
    }
  }
  const pages = encodeURIComponent('name contains "page-"')
  const first = await ask(`filter=${pages}&sort=name`)
  expect(first.names).toEqual(Array.from({ length: 10 }, (_, n) => `page-0${n}`))
  expect(first.pagination).toEqual({ limit: 10, offset: 0, totalCount: 25 })
  expect(first.fields).toContain('roleAttributes')
  const last = await ask(`filter=${pages}&sort=name%20desc&limit=2&offset=24`)
  expect(last.names).toEqual(['page-00'])
  expect(last.pagination).toEqual({ limit: 2, offset: 24, totalCount: 25 })
  const paged = encodeURIComponent('name contains "page-" sort by name skip 3 limit 2')
  expect((await ask(`filter=${paged}&limit=100`)).names).toEqual(['page-03', 'page-04'])
  const all = await ask(`filter=${pages}&limit=-1`)
  expect(all.names).toHaveLength(25)
  expect(all.pagination, 'a limit that fits 32 bits').toEqual({
    limit: -1,
    offset: 0,
    totalCount: 25,
  })
  expect((await ask('limit=100000')).pagination?.limit).toBe(500)
  expect((await ask('limit=0&offset=-5')).pagination).toMatchObject({ limit: 10, offset: 0 })
  expect((await ask('roleFilter=%23fifth&limit=-1')).names).toHaveLength(5)
  expect(
    (await ask('roleFilter=%23fifth&roleFilter=%23page&roleSemantic=anyof&limit=-1')).names,
  ).toHaveLength(25)
  expect((await ask('filter=&limit=1')).names).toHaveLength(1)
})

test('an administrator can read auth policies and identities, but no password hash, and any session can read identity types', async () => {
  const list = await root.get(
    `${management}/identities?filter=${encodeURIComponent('isAdmin = false')}`,
  )
  expect((list.body.data as Detail[]).map(({ name }) => name)).toEqual(['Alice'])
  const alicesDetail = await detail(`${management}/identities/alice-id`)
  expect(alicesDetail).toMatchObject({
    hasApiSession: true,
    disabled: false,
    authenticators: { updb: { id: 'alice-updb', username: user.username } },
  })
  expect(JSON.stringify(alicesDetail)).not.toContain('argon2')
  expect((await root.get(`${management}/auth-policies/default`)).status).toBe(200)
  expect((await alice.get(`${management}/identity-types`)).body.data).toHaveLength(5)
})
