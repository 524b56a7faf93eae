import { beforeAll, expect, test } from 'vitest'
import { type CallerOf, client, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { made, newIdentity, newService, shown } from './support/network.ts'

// Goal: deletions of records that are in use, for which OpenZiti's API document lists 409, behave
// as OpenZiti clients expect: dependent records are deleted as well, references are removed, and
// the response lists them.

const { root, sessionOf } = await controllerForFile()
let serial = 0
const next = (word: string): string => `${word} ${(serial += 1)}`

interface Setting {
  readonly identityId: string
  readonly device: CallerOf
  readonly serviceId: string
  readonly routerId: string
  readonly policyId: string
  readonly routerPolicyId: string
  readonly servicePolicyId: string
  readonly sessionId: string
  readonly terminatorId: string
}
let setting: Setting

/** A device with a session for a service that has a terminator. */
async function newSetting(): Promise<Setting> {
  const identityId = await newIdentity(root, next('device'))
  const serviceId = await newService(root, next('service'))
  const routerId = await made(root, `${management}/edge-routers`, { name: next('router') })
  const identityRoles = [`@${identityId}`]
  const serviceRoles = [`@${serviceId}`]
  const edgeRouterRoles = [`@${routerId}`]
  const semantic = 'AnyOf'
  const policyId = await made(root, `${management}/service-policies`, {
    name: next('dial'),
    type: 'Dial',
    semantic,
    identityRoles,
    serviceRoles,
  })
  const routerPolicyId = await made(root, `${management}/edge-router-policies`, {
    name: next('routers'),
    semantic,
    identityRoles,
    edgeRouterRoles,
  })
  const servicePolicyId = await made(root, `${management}/service-edge-router-policies`, {
    name: next('services'),
    semantic,
    serviceRoles,
    edgeRouterRoles,
  })
  const terminatorId = await made(root, `${management}/terminators`, {
    service: serviceId,
    router: routerId,
    binding: 'transport',
    address: 'tls:host:1',
  })
  const device = sessionOf(identityId)
  const sessionId = await made(device, `${client}/sessions`, { serviceId, type: 'Dial' })
  return {
    identityId,
    device,
    serviceId,
    routerId,
    policyId,
    routerPolicyId,
    servicePolicyId,
    sessionId,
    terminatorId,
  }
}

async function deleted(collection: string, id: string): Promise<unknown> {
  const reply = await root.call('DELETE', `${management}/${collection}/${id}`)
  expect(reply.status, reply.text).toBe(200)
  expect(reply.body.data).toEqual({})
  return (reply.body.meta as { detachedFrom?: unknown }).detachedFrom
}

const statusOf = async (collection: string, id: string): Promise<number> =>
  (await root.get(`${management}/${collection}/${id}`)).status

beforeAll(async () => {
  setting = await newSetting()
})

test('deleting a service deletes its terminator and session, and removes the service from its policies', async () => {
  const { serviceId, terminatorId, sessionId, policyId, servicePolicyId } = setting
  expect(await deleted('services', serviceId)).toEqual([
    {
      entity: 'serviceEdgeRouterPolicies',
      field: 'serviceRoles',
      ids: [servicePolicyId],
      totalCount: 1,
    },
    { entity: 'servicePolicies', field: 'serviceRoles', ids: [policyId], totalCount: 1 },
  ])
  expect(await statusOf('terminators', terminatorId)).toBe(404)
  expect(await statusOf('sessions', sessionId)).toBe(404)
  const policy = await shown(root, `${management}/service-policies/${policyId}`)
  expect(policy['serviceRoles']).toBeNull()
})

test('deleting an identity ends its sessions', async () => {
  const { identityId, device, sessionId } = await newSetting()
  const detached = await deleted('identities', identityId)
  expect(detached).toMatchObject([{ field: 'identityRoles' }, { field: 'identityRoles' }])
  expect((await device.get(`${client}/current-identity`)).status).toBe(401)
  expect(await statusOf('sessions', sessionId)).toBe(404)
})

test('deleting a router deletes its terminator', async () => {
  const { routerId, terminatorId } = await newSetting()
  await deleted('edge-routers', routerId)
  expect(await statusOf('terminators', terminatorId)).toBe(404)
  const transit = await made(root, `${management}/transit-routers`, { name: next('transit') })
  expect(await deleted('transit-routers', transit)).toBeUndefined()
})

test('deleting a policy ends the access that it granted', async () => {
  const { policyId, routerPolicyId, servicePolicyId, serviceId, sessionId, device } =
    await newSetting()
  expect(await deleted('edge-router-policies', routerPolicyId)).toBeUndefined()
  expect(await deleted('service-edge-router-policies', servicePolicyId)).toBeUndefined()
  expect(await deleted('service-policies', policyId)).toBeUndefined()
  expect((await device.get(`${client}/services/${serviceId}`)).status).toBe(404)
  expect(await statusOf('sessions', sessionId)).toBe(404)
})

test('a session that is in use can be deleted', async () => {
  const { sessionId, device } = await newSetting()
  expect((await device.call('DELETE', `${client}/sessions/${sessionId}`)).status).toBe(200)
  expect(await statusOf('sessions', sessionId)).toBe(404)
})

test('deleting a config removes it from its services, and the response contains their number and the first 20 ids', async () => {
  const configTypeId = await made(root, `${management}/config-types`, { name: next('type') })
  const body = { name: next('config'), configTypeId, data: {} }
  const config = await made(root, `${management}/configs`, body)
  const users: string[] = []
  for (let count = 0; count < 25; count += 1) {
    users.push(await newService(root, next('using'), { configs: [config] }))
  }
  const ids = users.toSorted().slice(0, 20)
  expect(await deleted('configs', config)).toEqual([
    { entity: 'services', field: 'configs', ids, totalCount: 25 },
  ])
  for (const id of users) {
    expect((await shown(root, `${management}/services/${id}`))['configs']).toBeNull()
  }
})
