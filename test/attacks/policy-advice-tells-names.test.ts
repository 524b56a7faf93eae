import { expect, test } from 'vitest'
import { management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'

// The attack: a caller who may read only services could learn the names of identities and routers
// from policy advice.
const { root, sessionOf } = await controllerForFile()

async function created(collection: string, body: object): Promise<string> {
  const reply = await root.call('POST', `${management}/${collection}`, body)
  expect(reply.status, reply.text).toBe(201)
  return (reply.body.data as { id: string }).id
}

test('policy advice contains no names of records that the caller may not read', async () => {
  const all = { semantic: 'AnyOf', edgeRouterRoles: ['#all'] }
  await created('edge-routers', { name: 'router in the vault' })
  await created('edge-router-policies', { ...all, name: 'a', identityRoles: ['#all'] })
  await created('service-edge-router-policies', { ...all, name: 'b', serviceRoles: ['#all'] })
  const serviceId = await created('services', { name: 'wiki', encryptionRequired: true })
  const permissions = ['service.read']
  const body = { name: 'eve', type: 'User', isAdmin: false, permissions }
  const eve = sessionOf(await created('identities', body))
  const reply = await eve.get(`${management}/identities/alice-id/policy-advice/${serviceId}`)
  expect(reply.status, reply.text).toBe(200)
  const { commonRouters } = reply.body.data as { commonRouters: readonly unknown[] }
  expect(commonRouters).toHaveLength(1)
  expect(reply.text).toContain('wiki')
  expect(reply.text).not.toContain('Alice')
  expect(reply.text).not.toContain('vault')
  const whole = await root.get(`${management}/identities/alice-id/policy-advice/${serviceId}`)
  expect(whole.text).toContain('Alice')
  expect(whole.text).toContain('vault')
})
