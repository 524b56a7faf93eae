import { expect, test } from 'vitest'
import { type CallerOf, management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'

// The attack: an explanation of access contains records of ten kinds. A caller who may read only
// one or two of the kinds could read the others in it.
const { root, sessionOf } = await controllerForFile()

async function created(collection: string, body: object): Promise<string> {
  const reply = await root.call('POST', `${management}/${collection}`, body)
  expect(reply.status, reply.text).toBe(201)
  return (reply.body.data as { id: string }).id
}

const hidden = {
  policy: 'policy in the vault',
  check: 'check in the vault',
  router: 'router in the vault',
  address: 'tcp:vault.example:22',
}
const semantic = 'AnyOf'
const router = await created('edge-routers', { name: hidden.router })
const service = await created('services', { name: 'wiki', encryptionRequired: true })
const check = await created('posture-checks', { name: hidden.check, typeId: 'MFA' })
const policies = [
  await created('service-policies', {
    semantic,
    name: hidden.policy,
    type: 'Dial',
    identityRoles: ['#staff'],
    serviceRoles: ['#all'],
    postureCheckRoles: [`@${check}`],
  }),
  await created('edge-router-policies', {
    semantic,
    name: hidden.policy,
    identityRoles: ['#all'],
    edgeRouterRoles: ['#all'],
  }),
  await created('service-edge-router-policies', {
    semantic,
    name: hidden.policy,
    serviceRoles: ['#all'],
    edgeRouterRoles: ['#all'],
  }),
]
const terminator = await created('terminators', {
  address: hidden.address,
  binding: 'transport',
  service,
  router,
})
const url = `${management}/access/explain?identity=alice-id&service=${service}`

let eves = 0

async function eve(...permissions: readonly string[]): Promise<CallerOf> {
  eves += 1
  const name = `eve ${eves}`
  return sessionOf(await created('identities', { name, type: 'User', isAdmin: false, permissions }))
}

test('a caller who may read only identities or only services gets 401 for an explanation of access', async () => {
  for (const permissions of [['service.read'], ['identity.read'], []]) {
    const caller = await eve(...permissions)
    for (const asked of [url, url.replace(/identity=[^&]*&/, ''), url.replace(/&.*$/, '')]) {
      const reply = await caller.get(asked)
      expect(reply.status, `${asked} ${permissions.join()}`).toBe(401)
      expect(reply.text).not.toMatch(/alice|wiki/i)
    }
  }
})

test('an explanation of access contains no records that its caller may not read', async () => {
  // Alice's session does not pass the posture check, so the explanation lists the session as an
  // obstacle.
  sessionOf('alice-id')
  const caller = await eve('service.read', 'identity.read')
  const reply = await caller.get(url)
  expect(reply.status, reply.text).toBe(200)
  expect(reply.text).toContain('wiki')
  expect(reply.text).toContain('POSTURE_FAILS')
  for (const secret of [...Object.values(hidden), router, check, terminator, ...policies]) {
    expect(reply.text).not.toContain(secret)
  }
  expect(reply.text).not.toMatch(/\b1 (edge router|terminator|Dial policy)/)
  const all = await root.get(url)
  for (const shown of [...Object.values(hidden), router, check, terminator, ...policies]) {
    expect(all.text).toContain(shown)
  }
})

test('an explanation of access does not list records as missing conditions if the caller may not list them', async () => {
  const other = await created('services', { name: 'printer', encryptionRequired: true })
  await created('service-policies', {
    semantic,
    name: 'another policy in the vault',
    type: 'Bind',
    identityRoles: ['#staff'],
    serviceRoles: ['#nothing'],
  })
  await created('service-policies', {
    semantic,
    name: 'a third policy in the vault',
    type: 'Bind',
    identityRoles: ['#nobody'],
    serviceRoles: [`@${other}`],
  })
  const asked = `${management}/access/explain?identity=alice-id&service=${other}`
  expect((await root.get(asked)).text).toContain('1 Bind policy includes the identity')
  const told = await (await eve('service.read', 'identity.read')).get(asked)
  expect(told.text).toContain('NO_SHARED_POLICY')
  expect(told.text).not.toMatch(/[0-9]+ Bind polic|vault/)
})

test('a filter with a limit clause cannot make one request explain more pairs of identity and service than a page may contain', async () => {
  for (let n = 0; n < 101; n += 1) {
    await created('services', { name: `one of many ${n}`, encryptionRequired: true })
  }
  const filter = encodeURIComponent('true limit none')
  const reply = await root.get(`${management}/access/explain?identity=alice-id&filter=${filter}`)
  expect([reply.status, reply.body.error?.cause?.['field']]).toEqual([400, 'limit'])
})
