import { describe, expect, test } from 'vitest'
import { permissionEffectScope } from '../../src/lib/permissions.ts'
import { type CallerOf, client, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { listed, made, newIdentity, newService, shown } from './support/network.ts'

const { root, sessionOf } = await controllerForFile()

async function holderOf(permission: string): Promise<CallerOf> {
  return sessionOf(
    await newIdentity(root, `holder of ${permission}`, { permissions: [permission] }),
  )
}

// Goal: an administrator finds in permissions.md what the holder of a permission can do.
describe('The effect of a permission includes', () => {
  test('the configs that clients receive, for config-type.update', async () => {
    const types = await listed(root, `${management}/config-types?limit=500`)
    const typeId = types.find(({ name }) => name === 'host.v1')?.['id']
    const data = { protocol: 'tcp', address: 'localhost', port: 80 }
    const config = { name: 'wiki', configTypeId: typeId, data }
    const configId = await made(root, `${management}/configs`, config)
    const serviceId = await newService(root, 'wiki', { configs: [configId] })
    await made(root, `${management}/service-policies`, {
      name: 'wiki',
      type: 'Bind',
      semantic: 'AnyOf',
      identityRoles: ['#all'],
      serviceRoles: [`@${serviceId}`],
    })
    const host = sessionOf(await newIdentity(root, 'host'))
    const url = `${client}/services?configTypes=all`
    expect(await listed(host, url)).toMatchObject([{ config: { 'host.v1': data } }])
    const holder = await holderOf('config-type.update')
    await holder.call('PATCH', `${management}/config-types/${String(typeId)}`, { name: 'host.v0' })
    expect(await listed(host, url)).toMatchObject([{ config: { 'host.v0': data } }])
    expect(permissionEffectScope('config-type.update')).toBe('services')
  })

  test('the routers that carry a service, for service-edge-router-policy.create', async () => {
    const serviceId = await newService(root, 'mail')
    await made(root, `${management}/edge-routers`, { name: 'router of the holder' })
    const routers = `${management}/services/${serviceId}/edge-routers`
    const before = (await listed(root, routers)).length
    const holder = await holderOf('service-edge-router-policy.create')
    await made(holder, `${management}/service-edge-router-policies`, {
      name: 'mail',
      semantic: 'AnyOf',
      serviceRoles: [`@${serviceId}`],
      edgeRouterRoles: ['#all'],
    })
    expect((await listed(root, routers)).length).toBeGreaterThan(before)
    expect(permissionEffectScope('service-edge-router-policy.create')).toBe('services')
  })

  test('the sessions of administrators, for ops.delete', async () => {
    const admin = sessionOf(await newIdentity(root, 'another administrator', { isAdmin: true }))
    const { id } = await shown(admin, `${management}/current-api-session`)
    const holder = await holderOf('ops.delete')
    await holder.call('DELETE', `${management}/api-sessions/${String(id)}`)
    expect((await admin.get(`${management}/current-api-session`)).status).toBe(401)
    expect(permissionEffectScope('ops.delete')).toBe('running')
  })
})
