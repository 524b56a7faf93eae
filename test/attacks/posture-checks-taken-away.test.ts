import { beforeAll, describe, expect, test } from 'vitest'
import { type CallerOf, client, management, type Reply } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { made, newIdentity, newService, shown } from '../api/support/network.ts'

// The attack: an attacker may use a service only from a device that passes a posture check, and has
// another device. The attacker has a permission for posture checks, and deletes the check.

const { controller, root, sessionOf } = await controllerForFile()
const checks = `${management}/posture-checks`
let serial = 0

interface Guarded {
  readonly checkId: string
  readonly policyId: string
  /** The attacker's request for a service session. */
  dial: () => Promise<number>
  readonly attacker: CallerOf
}

function newCheck(name: string, roleAttributes: readonly string[] = []): Promise<string> {
  return made(root, checks, { name, typeId: 'MAC', macAddresses: ['aabbccddee01'], roleAttributes })
}

/**
 * @param roles returns the posture check roles of the policy for the ID of the check, which has the
 * attribute of the same name.
 */
async function guarded(
  permissions: readonly string[],
  roles: (checkId: string) => readonly string[],
  semantic = 'AnyOf',
): Promise<Guarded> {
  serial += 1
  const identityId = await newIdentity(root, `attacker ${serial}`, { permissions })
  const serviceId = await newService(root, `service ${serial}`)
  const checkId = await newCheck(`check ${serial}`, [`laptops-${serial}`, 'managed'])
  const policyId = await made(root, `${management}/service-policies`, {
    name: `policy ${serial}`,
    type: 'Dial',
    semantic,
    identityRoles: [`@${identityId}`],
    serviceRoles: [`@${serviceId}`],
    postureCheckRoles: roles(checkId),
  })
  const client_ = sessionOf(identityId)
  const dial = async (): Promise<number> =>
    (await client_.call('POST', `${client}/sessions`, { serviceId, type: 'Dial' })).status
  expect(await dial()).toBe(409)
  return { checkId, policyId, dial, attacker: sessionOf(identityId) }
}

const byId = (checkId: string): string[] => [`@${checkId}`]
const byAttribute = (): string[] => [`#laptops-${serial}`]

function checkOf({ checkId }: Guarded): unknown {
  return controller.state.get('postureCheck', checkId)
}

function rolesOf({ policyId }: Guarded): unknown {
  return controller.state.get('servicePolicy', policyId)?.['postureCheckRoles']
}

beforeAll(async () => {
  const all = { semantic: 'AnyOf', edgeRouterRoles: ['#all'] }
  await made(root, `${management}/edge-routers`, { name: 'router' })
  const identities = { ...all, name: 'all', identityRoles: ['#all'] }
  await made(root, `${management}/edge-router-policies`, identities)
  const services = { ...all, name: 'all', serviceRoles: ['#all'] }
  await made(root, `${management}/service-edge-router-policies`, services)
})

describe('A posture check that a policy names', () => {
  test.each([
    ['a holder of posture-check.delete', 'attacker'],
    ['an administrator', 'administrator'],
  ])('cannot be deleted by %s', async (_who, caller) => {
    const target = await guarded(['posture-check.delete'], byId)
    const by = caller === 'attacker' ? target.attacker : root
    const reply = await by.call('DELETE', `${checks}/${target.checkId}`)
    expect([reply.status, reply.body.error?.code, reply.body.error?.cause]).toEqual([
      409,
      'CAN_NOT_DELETE_REFERENCED_ENTITY',
      {
        field: 'postureCheckRoles',
        reason: `entity type postureChecks referenced by servicePolicies: [${target.policyId}]`,
        value: [target.policyId],
      },
    ])
    expect(rolesOf(target)).toEqual(byId(target.checkId))
    expect(checkOf(target)).toBeDefined()
    expect(await target.dial()).toBe(409)
  })
})

describe('A posture check that a policy selects by a role attribute', () => {
  const permissions = ['posture-check.delete', 'posture-check.update']
  const body = (name: string, roleAttributes: readonly string[]) => ({
    name,
    typeId: 'MAC',
    macAddresses: ['aabbccddee01'],
    roleAttributes,
  })
  const ways: readonly (readonly [string, (by: CallerOf, url: string) => Promise<Reply>])[] = [
    ['deletion', (by, url) => by.call('DELETE', url)],
    ['a PATCH', (by, url) => by.call('PATCH', url, { typeId: 'MAC', roleAttributes: ['managed'] })],
    ['a PUT', (by, url) => by.call('PUT', url, body(`check ${serial}`, ['managed']))],
  ]

  test.each(ways)(
    'cannot be removed from the policy by %s if the caller may not change policies',
    async (_how, take) => {
      for (const semantic of ['AnyOf', 'AllOf']) {
        const target = await guarded(permissions, byAttribute, semantic)
        // With another check, the policy still requires a check, but fewer than before.
        await newCheck(
          `other of ${serial}`,
          byAttribute().map((role) => role.slice(1)),
        )
        const before = checkOf(target)
        const reply = await take(target.attacker, `${checks}/${target.checkId}`)
        expect([reply.status, reply.body.error?.code], reply.text).toEqual([401, 'UNAUTHORIZED'])
        expect([before, rolesOf(target)]).toEqual([checkOf(target), byAttribute()])
        expect(await target.dial()).toBe(409)
      }
    },
  )

  test.each(ways)(
    'cannot be removed from the policy by %s, even by an administrator, while the policy selects no other check',
    async (_how, take) => {
      const target = await guarded(permissions, byAttribute)
      const before = checkOf(target)
      const refused = await take(root, `${checks}/${target.checkId}`)
      expect([400, 409], refused.text).toContain(refused.status)
      expect(refused.body.error?.cause?.['reason']).toBe(
        `the service policies [${target.policyId}] select no other posture check and would ask for none; change their postureCheckRoles first`,
      )
      expect([before, rolesOf(target)]).toEqual([checkOf(target), byAttribute()])
      expect(await target.dial()).toBe(409)
      await newCheck(
        `other of ${serial}`,
        byAttribute().map((role) => role.slice(1)),
      )
      const reply = await take(root, `${checks}/${target.checkId}`)
      expect(reply.status, reply.text).toBe(200)
      expect(await target.dial()).toBe(409)
    },
  )

  test('stays selected by an AllOf policy, because none of the role attributes in the policy can be removed from the check', async () => {
    const roles = (): string[] => [...byAttribute(), '#managed']
    const target = await guarded(permissions, roles, 'AllOf')
    const change = { typeId: 'MAC', roleAttributes: [`laptops-${serial}`] }
    const reply = await root.call('PATCH', `${checks}/${target.checkId}`, change)
    expect([reply.status, reply.body.error?.cause?.['field']]).toEqual([400, 'roleAttributes'])
    expect(await target.dial()).toBe(409)
  })

  test('can be changed and given other role attributes by holders of the permission posture-check.update', async () => {
    const target = await guarded(permissions, byAttribute)
    const roleAttributes = [`laptops-${serial}`, 'inventory']
    const change = { typeId: 'MAC', name: `renamed ${serial}`, roleAttributes }
    const reply = await target.attacker.call('PATCH', `${checks}/${target.checkId}`, change)
    expect(reply.status, reply.text).toBe(200)
    const check = await shown(root, `${checks}/${target.checkId}`)
    expect(check).toMatchObject({
      name: `renamed ${serial}`,
      roleAttributes: ['inventory', `laptops-${serial}`],
    })
  })

  test('can be removed from the policy by a holder of the permission service-policy.update, who could also change the policy', async () => {
    const target = await guarded([...permissions, 'service-policy.update'], byAttribute)
    await newCheck(
      `other of ${serial}`,
      byAttribute().map((role) => role.slice(1)),
    )
    const reply = await target.attacker.call('DELETE', `${checks}/${target.checkId}`)
    expect(reply.status, reply.text).toBe(200)
    expect(await target.dial()).toBe(409)
  })
})

test('A posture check that no policy selects can be deleted by holders of the permission posture-check.delete', async () => {
  const target = await guarded(['posture-check.delete'], byId)
  const free = await newCheck('free', ['unused'])
  const reply = await target.attacker.call('DELETE', `${checks}/${free}`)
  expect(reply.status, reply.text).toBe(200)
})
