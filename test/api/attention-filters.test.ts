import { describe, expect, test } from 'vitest'
import { noRouterStatuses, type RouterStatus } from '../../src/ports/router-status.ts'
import { CallerOf, management } from './support/caller.ts'
import { user } from './support/controller.ts'
import { controllerForFile } from './support/for-file.ts'
import { listed, made, newIdentity, newService } from './support/network.ts'

const { controller, root } = await controllerForFile()
const { clock } = controller

/**
 * Names of the records that a filter finds; for records without a name, the names of their
 * identities.
 */
async function found(path: string, filter: string): Promise<unknown[]> {
  const rows = await listed(root, `${management}/${path}?filter=${encodeURIComponent(filter)}`)
  return rows.map(({ name, identity }) => name ?? (identity as { readonly name: string }).name)
}

describe('filters for records that need attention', () => {
  test('find identities whose password is locked, but not after the lock has ended', async () => {
    const primary = { updb: { maxAttempts: 3, lockoutDurationMinutes: 5 } }
    const policy = `${management}/auth-policies/default`
    expect((await root.call('PATCH', policy, { primary })).status).toBe(200)
    expect(await found('identities', 'isLocked = true')).toEqual([])
    const guesser = new CallerOf(controller)
    for (let attempt = 0; attempt < 3; attempt += 1) {
      expect((await guesser.logIn({ ...user, password: 'a wrong one' })).status).toBe(401)
    }
    expect(await found('identities', 'isLocked = true')).toEqual(['Alice'])
    clock.advance(6 * 60_000)
    expect(await found('identities', 'isLocked = true')).toEqual([])
  })

  test('find services without a terminator', async () => {
    const hosted = await newService(root, 'hosted')
    await newService(root, 'without a host')
    const router = await made(root, `${management}/edge-routers`, { name: 'host' })
    const terminator = { service: hosted, router, binding: 'transport', address: 'tcp:a:1' }
    await made(root, `${management}/terminators`, terminator)
    expect(await found('services', 'isEmpty(terminators)')).toEqual(['without a host'])
    expect(await found('services', 'not isEmpty(terminators)')).toEqual(['hosted'])
  })

  test('find enrollments that have expired or will expire before a given time', async () => {
    await newIdentity(root, 'invited', { enrollment: { ott: true } })
    const at = (ms: number): string => `datetime(${new Date(clock.nowMs() + ms).toISOString()})`
    const ofInvited = 'identity != "" and'
    const day = 24 * 60 * 60_000
    expect(await found('enrollments', `${ofInvited} expiresAt <= ${at(day)}`)).toEqual(['invited'])
    expect(await found('enrollments', `${ofInvited} expiresAt <= ${at(0)}`)).toEqual([])
    clock.advance(day)
    root.token = controller.openSession('admin-id')
    expect(await found('enrollments', `${ofInvited} expiresAt <= ${at(0)}`)).toEqual(['invited'])
  })

  test('find the identities and services of a given router that have no other router online', async () => {
    const routers = `${management}/edge-routers`
    const berlin = await made(root, routers, { name: 'berlin', roleAttributes: ['here'] })
    const paris = await made(root, routers, { name: 'paris' })
    await newIdentity(root, 'by berlin', { roleAttributes: ['one'] })
    await newIdentity(root, 'by both', { roleAttributes: ['one', 'two'] })
    await newService(root, 'mail', { roleAttributes: ['one'] })
    const semantic = 'AnyOf'
    for (const [name, identityRoles, router] of [
      ['first', ['#one'], berlin],
      ['second', ['#two'], paris],
    ] as const) {
      const body = { name, semantic, identityRoles, edgeRouterRoles: [`@${router}`] }
      await made(root, `${management}/edge-router-policies`, body)
    }
    await made(root, `${management}/service-edge-router-policies`, {
      name: 'mail by berlin',
      semantic,
      serviceRoles: ['#one'],
      edgeRouterRoles: [`@${berlin}`],
    })
    const online: RouterStatus = {
      hostname: 'paris',
      protocols: {},
      version: { version: 'v1', revision: '', buildDate: '', os: '', arch: '' },
      capabilities: [],
      linkListeners: [],
      interfaces: [],
    }
    controller.machine.routers = {
      ...noRouterStatuses,
      of: (id) => (id === paris ? online : null),
    }
    const others = `isEmpty(from edgeRouters where online = true and not id = "${berlin}")`
    expect(await found(`edge-routers/${berlin}/identities`, others)).toEqual(['by berlin'])
    expect(await found(`edge-routers/${berlin}/services`, others)).toEqual(['mail'])
  })
})
