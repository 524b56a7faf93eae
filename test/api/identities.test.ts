import { describe, expect, test } from 'vitest'
import { create, toBinary } from '@bufbuild/protobuf'
import { CommandKind, IdentityDisableSchema } from '../../proto/gen/command_pb.ts'
import { CallerOf, client, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { commandData } from '../support/commands.ts'

const { controller, root, sessionOf } = await controllerForFile()
const alice = sessionOf('alice-id')

type Detail = Readonly<Record<string, unknown>>
const identities = `${management}/identities`
let serial = 0

async function created(url: string, body: object): Promise<string> {
  const reply = await root.call('POST', url, body)
  expect(reply.status, reply.text).toBe(201)
  return (reply.body.data as { id: string }).id
}

async function newIdentity(fields: object = {}): Promise<string> {
  serial += 1
  return created(identities, {
    name: `identity ${serial}`,
    type: 'User',
    isAdmin: false,
    ...fields,
  })
}

async function detail(url: string): Promise<Detail> {
  const reply = await root.get(url)
  expect(reply.status, reply.text).toBe(200)
  return reply.body.data as Detail
}

describe('an identity', () => {
  test('is created with OpenZiti’s defaults and the requested type', async () => {
    for (const type of ['User', 'Device', 'Service', 'Default']) {
      const id = await newIdentity({ type, externalId: '', authPolicyId: '' })
      expect(await detail(`${identities}/${id}`)).toMatchObject({
        typeId: type,
        type: { id: type, entity: 'identity-types', name: type },
        authPolicyId: 'default',
        authPolicy: { id: 'default' },
        externalId: null,
        isAdmin: false,
        isDefaultAdmin: false,
        disabled: false,
        defaultHostingCost: 0,
        defaultHostingPrecedence: 'default',
        permissions: null,
        roleAttributes: [],
        appData: {},
        tags: {},
        enrollment: {},
        authenticators: {},
        envInfo: {},
        sdkInfo: {},
        hasApiSession: false,
        isMfaEnabled: false,
      })
    }
  })

  test('can be replaced and patched, including its type; its status and its client details cannot be written', async () => {
    const serviceId = await created(`${management}/services`, {
      name: 'host',
      encryptionRequired: true,
    })
    const id = await newIdentity({
      externalId: 'ext-1',
      roleAttributes: ['b', 'a'],
      appData: { a: 1 },
      serviceHostingCosts: { [serviceId]: 7 },
      serviceHostingPrecedences: { [serviceId]: 'failed' },
      defaultHostingCost: 9,
      defaultHostingPrecedence: 'required',
      permissions: ['service.read', 'admin_readonly'],
    })
    const url = `${identities}/${id}`
    const patch = await root.call('PATCH', url, {
      defaultHostingCost: 10,
      isDefaultAdmin: true,
      disabledAt: '2020-01-01T00:00:00Z',
      envInfo: { os: 'forged' },
      typeId: 'Router',
      type: 'Device',
      isAdmin: null,
    })
    expect(patch.status).toBe(200)
    expect(patch.body.meta?.ignoredFields).toEqual([
      'isDefaultAdmin',
      'disabledAt',
      'envInfo',
      'typeId',
    ])
    expect(await detail(url)).toMatchObject({
      externalId: 'ext-1',
      roleAttributes: ['a', 'b'],
      appData: { a: 1 },
      serviceHostingCosts: { [serviceId]: 7 },
      serviceHostingPrecedences: { [serviceId]: 'failed' },
      defaultHostingCost: 10,
      permissions: ['service.read', 'admin_readonly'],
      isDefaultAdmin: false,
      typeId: 'Device',
      disabled: false,
      envInfo: {},
    })
    const put = await root.call('PUT', url, { name: 'replaced', type: 'User', isAdmin: false })
    expect(put.status, put.text).toBe(200)
    expect(await detail(url)).toMatchObject({
      name: 'replaced',
      externalId: null,
      roleAttributes: [],
      serviceHostingCosts: {},
      defaultHostingCost: 0,
      permissions: null,
    })
  })

  test('keeps nested application data, which a patch replaces completely', async () => {
    const appData = { site: 'a', limits: { rate: 3, days: ['mon', 'tue'] } }
    const url = `${identities}/${await newIdentity({ appData })}`
    expect(await detail(url)).toMatchObject({ appData })
    const patched = await root.call('PATCH', url, { appData: { limits: { rate: 4 } } })
    expect(patched.status, patched.text).toBe(200)
    expect((await detail(url))['appData']).toEqual({ limits: { rate: 4 } })
    expect((await root.call('PATCH', url, { appData: {} })).status).toBe(200)
    expect((await detail(url))['appData']).toEqual({})
    expect((await root.call('PATCH', url, { appData: ['a'] })).status).toBe(400)
  })

  test.each([
    ['name', { name: '' }],
    ['type', { type: 'Person' }],
    ['type', { type: 'Router' }],
    ['type', { type: null }],
    ['isAdmin', { isAdmin: null }],
    ['isAdmin', { isAdmin: 'yes' }],
    ['permissions', { permissions: ['service.read', 'service.write'] }],
    ['permissions', { permissions: ['ops.create'] }],
    ['permissions', { permissions: ['authenticator'] }],
    ['defaultHostingCost', { defaultHostingCost: 65_536 }],
    ['defaultHostingPrecedence', { defaultHostingPrecedence: 'never' }],
    ['serviceHostingCosts.x', { serviceHostingCosts: { x: -1 } }],
    ['roleAttributes', { roleAttributes: ['#a'] }],
    ['username', { enrollment: { updb: 'ann' } }],
    ['caId', { enrollment: { ottca: 'nowhere' } }],
    ['enrollment.ott', { enrollment: { ott: 'yes' } }],
    ['enrollment.updb', { enrollment: { updb: 'u'.repeat(101) } }],
  ])('is refused because of an invalid %s: %j', async (field, fields) => {
    const before = controller.machine.count('identity')
    const body = { name: 'refused', type: 'User', isAdmin: false, ...fields }
    const reply = await root.call('POST', identities, body)
    expect(reply.status, reply.text).toBe(400)
    expect(reply.body.error?.code).toBe('COULD_NOT_VALIDATE')
    expect(reply.body.error?.cause?.['field']).toBe(field)
    expect(controller.machine.count('identity')).toBe(before)
  })

  test('is created if the body contains an empty enrollment', async () => {
    await newIdentity({ enrollment: {} })
    await newIdentity({ enrollment: null })
    await newIdentity({ enrollment: { ott: false, updb: null } })
  })

  test('is refused if it references a missing record, or if another identity has its name or external id', async () => {
    for (const fields of [{ authPolicyId: 'nope' }, { serviceHostingCosts: { nope: 1 } }]) {
      const reply = await root.call('POST', identities, {
        name: 'dangling',
        type: 'User',
        isAdmin: false,
        ...fields,
      })
      expect(reply.status).toBe(404)
    }
    const id = await newIdentity({ name: 'only', externalId: 'one' })
    const again = { name: 'only', type: 'User', isAdmin: false }
    const twice = await root.call('POST', identities, again)
    expect(twice.body.error?.cause).toMatchObject({
      field: 'name',
      reason: `duplicate value 'only' in unique index on identities store`,
    })
    const other = await newIdentity()
    const taken = await root.call('PATCH', `${identities}/${other}`, { externalId: 'one' })
    expect(taken.body.error?.cause).toMatchObject({ field: 'externalId' })
    expect((await root.call('PATCH', `${identities}/${id}`, { externalId: '' })).status).toBe(200)
    expect((await root.call('PATCH', `${identities}/${other}`, { externalId: 'one' })).status).toBe(
      200,
    )
  })

  test('can be found by its role attributes, and gets the response 404 after it was deleted', async () => {
    const id = await newIdentity({ roleAttributes: ['listed'] })
    const listed = await root.get(`${identities}?roleFilter=%23listed`)
    expect((listed.body.data as Detail[]).map((row) => row['id'])).toEqual([id])
    expect((await root.call('DELETE', `${identities}/${id}`)).status).toBe(200)
    expect((await root.get(`${identities}/${id}`)).status).toBe(404)
    expect((await root.call('DELETE', `${identities}/${id}`)).status).toBe(404)
  })
})

describe('administrators', () => {
  test('cannot all be removed: the default administrator cannot be deleted, and the last administrator cannot be demoted or disabled', async () => {
    const url = `${identities}/admin-id`
    const gone = await root.call('DELETE', url)
    expect(gone.status).toBe(400)
    expect(gone.body.error?.code).toBe('ENTITY_CAN_NOT_BE_DELETED')
    for (const [method, path, body] of [
      ['PATCH', url, { isAdmin: false }],
      ['PUT', url, { name: 'admin', type: 'User', isAdmin: false }],
      ['POST', `${url}/disable`, { durationMinutes: 1 }],
    ] as const) {
      const reply = await root.call(method, path, body)
      expect(reply.status, reply.text).toBe(400)
      expect(reply.body.error?.code).toBe('ENTITY_CAN_NOT_BE_UPDATED')
    }
    expect(await detail(url)).toMatchObject({ isAdmin: true, disabled: false })
  })

  test('can read the results of the data integrity check, unlike a caller with other permissions', async () => {
    const id = await newIdentity({ permissions: ['identity', 'service.read'] })
    const holder = new CallerOf(controller)
    holder.token = controller.openSession(id)
    expect((await holder.get(identities)).status).toBe(200)
    const results = `${management}/database/data-integrity-results`
    expect((await holder.get(results)).status).toBe(401)
    expect((await root.get(results)).status).toBe(200)
  })
})

test('an identity without permissions can neither read nor change identities, authenticators and configs, and is refused before its body is read', async () => {
  const url = `${identities}/alice-id`
  const asked: [string, string, unknown][] = [
    ['POST', identities, { name: 'x', type: 'User', isAdmin: true }],
    ['POST', identities, '{"name":'],
    ['PATCH', url, { isAdmin: true }],
    ['PUT', url, { name: 'Alice', type: 'User', isAdmin: true }],
    ['DELETE', url, undefined],
    ['GET', url, undefined],
    ['GET', `${url}/authenticators`, undefined],
    ['POST', `${url}/enable`, undefined],
    ['POST', `${url}/disable`, { durationMinutes: 0 }],
    ['POST', `${url}/service-configs`, []],
    ['DELETE', `${url}/service-configs`, []],
    ['GET', `${url}/service-configs`, undefined],
    ['GET', `${management}/authenticators`, undefined],
    ['POST', `${management}/authenticators`, { identityId: 'alice-id', method: 'updb' }],
    ['PATCH', `${management}/authenticators/admin-updb`, { password: 'stolen-password' }],
    ['DELETE', `${management}/authenticators/admin-updb`, undefined],
    ['GET', `${management}/configs`, undefined],
    ['POST', `${management}/configs`, {}],
    ['GET', `${management}/config-types`, undefined],
    ['DELETE', `${management}/config-types/host.v1`, undefined],
  ]
  const proposals = controller.cluster.proposals.length
  for (const [method, path, body] of asked) {
    const reply = await alice.call(method, path, body)
    expect(reply.status, `${method} ${path}`).toBe(401)
    expect(reply.body.error?.code).toBe('UNAUTHORIZED')
  }
  expect(controller.cluster.proposals.length).toBe(proposals)
})

describe('disabling an identity', () => {
  test('ends its sessions immediately, and its record shows until when the identity is disabled', async () => {
    const id = await newIdentity()
    const held = new CallerOf(controller)
    held.token = controller.openSession(id)
    expect((await held.get(`${client}/current-identity`)).status).toBe(200)
    const reply = await root.call('POST', `${identities}/${id}/disable`, { durationMinutes: 5 })
    expect(reply.status, reply.text).toBe(200)
    expect(reply.body.data).toEqual({})
    expect((await held.get(`${client}/current-identity`)).status).toBe(401)
    const shown = await detail(`${identities}/${id}`)
    expect(shown).toMatchObject({ disabled: true, hasApiSession: false })
    const span =
      Date.parse(String(shown['disabledUntil'])) - Date.parse(String(shown['disabledAt']))
    expect(span).toBe(5 * 60_000)
    expect((await root.call('POST', `${identities}/${id}/enable`)).status).toBe(200)
    const enabled = await detail(`${identities}/${id}`)
    expect(enabled['disabled']).toBe(false)
    expect(enabled).not.toHaveProperty('disabledAt')
    held.token = controller.openSession(id)
    expect((await held.get(`${client}/current-identity`)).status).toBe(200)
  })

  test('on another controller makes this controller refuse the session in a linearizable request', async () => {
    const id = await newIdentity()
    const held = new CallerOf(controller)
    held.token = controller.openSession(id)
    const message = create(IdentityDisableSchema, { id })
    const payload = toBinary(IdentityDisableSchema, message)
    controller.cluster.arriving.push(commandData(CommandKind.IDENTITY_DISABLE, payload))
    const url = `${client}/services`
    expect((await held.get(url)).status).toBe(200)
    expect((await held.get(`${url}?consistency=linearizable`)).status).toBe(401)
  })

  test('is permanent if the duration is zero or negative, and is refused without a valid duration', async () => {
    const id = await newIdentity()
    for (const durationMinutes of [0, -1]) {
      await root.call('POST', `${identities}/${id}/disable`, { durationMinutes })
      const shown = await detail(`${identities}/${id}`)
      expect(shown['disabled']).toBe(true)
      expect(shown).not.toHaveProperty('disabledUntil')
    }
    for (const body of [{}, { durationMinutes: 1.5 }, { durationMinutes: 1e300 }]) {
      const reply = await root.call('POST', `${identities}/${id}/disable`, body)
      expect(reply.body.error?.cause?.['field']).toBe('durationMinutes')
    }
    expect((await root.call('POST', `${identities}/nope/enable`)).status).toBe(404)
    expect(
      (await root.call('POST', `${identities}/nope/disable`, { durationMinutes: 1 })).status,
    ).toBe(404)
  })
})

describe('config overrides of an identity', () => {
  test('can be created, listed and removed', async () => {
    const id = await newIdentity()
    const url = `${identities}/${id}/service-configs`
    const serviceId = await created(`${management}/services`, {
      name: 'given',
      encryptionRequired: true,
    })
    const configId = await created(`${management}/configs`, {
      name: 'given',
      configTypeId: 'interfaces.v1',
      data: { interfaces: ['eth0'] },
    })
    const pairs = [{ serviceId, configId }]
    expect((await root.call('POST', url, pairs)).status).toBe(200)
    const listed = await root.get(url)
    expect(listed.body.data).toEqual([
      {
        serviceId,
        configId,
        service: expect.objectContaining({
          entity: 'services',
          id: serviceId,
          urlName: 'services',
        }),
        config: expect.objectContaining({ entity: 'configs', name: 'given', urlName: 'configs' }),
      },
    ])
    expect(listed.body.meta?.pagination).toEqual({ limit: 1, offset: 0, totalCount: 1 })
    const held = await root.call('DELETE', `${management}/configs/${configId}`)
    expect(held.status).toBe(409)
    expect((await root.call('DELETE', url)).status).toBe(200)
    expect((await root.call('DELETE', url, [])).status).toBe(200)
    expect((await root.get(url)).body.data).toHaveLength(1)
    expect((await root.call('DELETE', url, pairs)).status).toBe(200)
    expect((await root.get(url)).body.data).toEqual([])
    expect((await root.call('DELETE', `${management}/configs/${configId}`)).status).toBe(200)
  })

  test('are refused if they reference missing records or exceed the limit', async () => {
    const id = await newIdentity()
    const url = `${identities}/${id}/service-configs`
    expect((await root.get(`${identities}/nope/service-configs`)).status).toBe(404)
    expect((await root.call('POST', `${identities}/nope/service-configs`, [])).status).toBe(404)
    const pair = { serviceId: 'nope', configId: 'nope' }
    expect((await root.call('POST', url, [pair])).status).toBe(404)
    expect((await root.call('POST', url, [{ serviceId: 'x' }])).status).toBe(400)
    expect((await root.call('POST', url, { ...pair })).status).toBe(400)
    const many = await root.call('POST', url, Array<object>(1001).fill(pair))
    expect(many.status).toBe(400)
  })
})
