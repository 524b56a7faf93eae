import { describe, expect, test } from 'vitest'
import { noRouterStatuses } from '../../src/ports/router-status.ts'
import { CallerOf, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { made, newIdentity, newService } from './support/network.ts'

const { controller, root, sessionOf } = await controllerForFile()

interface Piece {
  readonly code: string
  readonly message: string
  readonly records: readonly { readonly id: string; readonly name: string }[]
}
interface Right {
  readonly isGranted: boolean
  readonly isReachable: boolean
  readonly policiesCount: number | null
  readonly policies: readonly Readonly<Record<string, unknown>>[] | null
  readonly missing: readonly Piece[]
}
interface Row {
  readonly identity: { readonly id: string; readonly name: string }
  readonly service: { readonly id: string; readonly name: string }
  readonly dial: Right
  readonly bind: Right
  readonly routers: Readonly<Record<string, unknown>> | null
  readonly terminators: Readonly<Record<string, unknown>> | null
  readonly sessions: Readonly<Record<string, unknown>> | null
  readonly configs: readonly unknown[] | null
  readonly withheld: readonly string[]
}

const path = `${management}/access/explain`
const online = new Set<string>()
/** Routers that have reported no edge listener. */
const closed = new Set<string>()
controller.machine.routers = {
  ...noRouterStatuses,
  of: (id) =>
    online.has(id)
      ? {
          hostname: id,
          protocols: closed.has(id) ? {} : { tls: `tls://${id}:3022` },
          version: { version: 'v1', revision: '', buildDate: '', os: '', arch: '' },
          capabilities: [],
          linkListeners: [],
          interfaces: [],
        }
      : null,
}

async function rows(query: string, caller = root): Promise<readonly Row[]> {
  const reply = await caller.get(`${path}?${query}`)
  expect(reply.status, reply.text).toBe(200)
  return reply.body.data as readonly Row[]
}

async function explained(identity: string, service: string, caller = root): Promise<Row> {
  const [row] = await rows(`identity=${identity}&service=${service}`, caller)
  if (row === undefined) throw new Error('a pair has an explanation')
  return row
}

const codes = ({ missing }: Right): string[] => missing.map(({ code }) => code)
const policy = (collection: string, body: object) =>
  made(root, `${management}/${collection}`, { semantic: 'AnyOf', ...body })
const router = (name: string, roleAttributes: readonly string[] = []) =>
  made(root, `${management}/edge-routers`, { name, roleAttributes })

test('an explanation lists every condition that is still missing for access, until access is complete', async () => {
  const identity = await newIdentity(root, 'laptop', { roleAttributes: ['sales'] })
  const service = await newService(root, 'crm', { roleAttributes: ['crm'] })
  const dial = async (): Promise<Right> => (await explained(identity, service)).dial

  expect(codes(await dial())).toEqual([
    'NO_LOG_IN',
    'NO_POLICY_OF_IDENTITY',
    'NO_POLICY_OF_SERVICE',
    'NO_ROUTER_OF_IDENTITY',
    'NO_ROUTER_OF_SERVICE',
    'NO_TERMINATOR',
  ])
  expect((await dial()).missing[1]?.message).toBe(
    'No Dial policy includes the identity (its role attributes: #sales)',
  )
  controller.openSession(identity)

  const ofIdentity = { name: 'a', type: 'Dial', identityRoles: ['#sales'], serviceRoles: ['#wiki'] }
  await policy('service-policies', ofIdentity)
  expect(codes(await dial())[0]).toBe('NO_POLICY_OF_SERVICE')
  const ofService = { name: 'b', type: 'Dial', identityRoles: ['#admins'], serviceRoles: ['#crm'] }
  await policy('service-policies', ofService)
  const [apart] = (await dial()).missing
  expect(apart?.code).toBe('NO_SHARED_POLICY')
  expect(apart?.message).toBe(
    '1 Dial policy includes the identity and 1 includes the service, but none includes both',
  )
  expect(apart?.records.map(({ name }) => name)).toEqual(['a', 'b'])

  const granting = await policy('service-policies', {
    name: 'sales dial crm',
    type: 'Dial',
    semantic: 'AllOf',
    identityRoles: ['#sales'],
    serviceRoles: ['#crm', `@${service}`],
  })
  expect(codes(await dial())[0]).toBe('NO_ROUTER_OF_IDENTITY')
  const west = await router('west', ['west'])
  const east = await router('east', ['east'])
  await policy('edge-router-policies', {
    name: 'sales west',
    identityRoles: ['#sales'],
    edgeRouterRoles: ['#west'],
  })
  expect(codes(await dial())[0]).toBe('NO_ROUTER_OF_SERVICE')
  const services = { name: 'crm east', serviceRoles: ['#all'], edgeRouterRoles: ['#east'] }
  const apartPolicy = await policy('service-edge-router-policies', services)
  expect((await dial()).missing[0]).toMatchObject({
    code: 'NO_COMMON_ROUTER',
    message:
      'The identity and the service have no edge router in common (1 of the identity, 1 of the service)',
  })
  const both = { ...services, edgeRouterRoles: ['#east', '#west'] }
  const url = `${management}/service-edge-router-policies/${apartPolicy}`
  expect((await root.call('PUT', url, { semantic: 'AnyOf', ...both })).status).toBe(200)
  expect((await dial()).missing[0]).toMatchObject({
    code: 'NO_ROUTER_ONLINE',
    records: [{ id: west, name: 'west' }],
  })
  online.add(west)
  closed.add(west)
  expect((await dial()).missing[0]).toEqual({
    code: 'NO_EDGE_LISTENER',
    message:
      'No edge router that they have in common and that is online has an edge listener, so clients cannot connect to it',
    records: [expect.objectContaining({ id: west, name: 'west' })],
  })
  closed.delete(west)
  expect(codes(await dial())).toEqual(['NO_TERMINATOR'])
  const terminator = { address: 'tcp:10.0.0.1:80', binding: 'transport', service, router: east }
  await made(root, `${management}/terminators`, terminator)
  expect(codes(await dial())).toEqual(['NO_TERMINATOR_ONLINE'])
  online.add(east)

  const row = await explained(identity, service)
  expect(row.dial).toMatchObject({
    isGranted: true,
    isReachable: true,
    policiesCount: 1,
    missing: [],
  })
  expect(row.dial.policies).toMatchObject([
    {
      id: granting,
      name: 'sales dial crm',
      semantic: 'AllOf',
      identityRoles: ['#sales'],
      serviceRoles: ['#crm', `@${service}`],
      checks: [],
      checksCount: 0,
    },
  ])
  expect(row.routers).toMatchObject({
    identityCount: 1,
    serviceCount: 2,
    commonCount: 1,
    onlineCount: 1,
    common: [{ id: west, isOnline: true }],
    identityPolicies: [
      { name: 'sales west', identityRoles: ['#sales'], edgeRouterRoles: ['#west'] },
    ],
    servicePolicies: [{ name: 'crm east', serviceRoles: ['#all'], edgeRouterRoles: ['#west'] }],
  })
  expect(row.terminators).toMatchObject({
    totalCount: 1,
    onlineCount: 1,
    items: [{ address: 'tcp:10.0.0.1:80', router: { name: 'east' }, isOnline: true }],
  })
  expect(codes(row.bind)[0]).toBe('NO_POLICY_OF_IDENTITY')
  expect(row.withheld).toEqual([])

  const byName = await explained('laptop', 'crm')
  expect(byName).toEqual(row)
  await root.call('POST', `${management}/identities/${identity}/disable`, { durationMinutes: 0 })
  expect(codes(await dial())[0]).toBe('IDENTITY_DISABLED')
  online.clear()
})

test('an explanation lists a posture check as failed only if the identity has sessions and none of them passes it', async () => {
  const identity = await newIdentity(root, 'phone')
  const service = await newService(root, 'mail')
  const check = await made(root, `${management}/posture-checks`, {
    name: 'in the office',
    typeId: 'DOMAIN',
    domains: ['office.example'],
  })
  await policy('service-policies', {
    name: 'mail',
    type: 'Dial',
    identityRoles: [`@${identity}`],
    serviceRoles: [`@${service}`],
    postureCheckRoles: [`@${check}`],
  })
  const looked = async (): Promise<readonly unknown[]> => {
    const { dial, sessions } = await explained(identity, service)
    const [first] = dial.policies ?? []
    const [state] = (first?.['checks'] ?? []) as readonly { state: string; passing: number }[]
    const isRefused = codes(dial).includes('POSTURE_FAILS')
    return [state?.state, state?.passing, isRefused, sessions?.['totalCount']]
  }
  expect(await looked()).toEqual(['unknown', 0, false, 0])
  const phone = sessionOf(identity)
  expect(await looked()).toEqual(['fails', 0, true, 1])
  const told = { id: check, typeId: 'DOMAIN', domain: 'office.example' }
  const reply = await phone.call('POST', '/edge/client/v1/posture-response', told)
  expect(reply.status, reply.text).toBe(201)
  expect(await looked()).toEqual(['passes', 1, false, 1])
})

test('the admin socket serves explanations and previews to the host user without a session', async () => {
  const host = new CallerOf(controller)
  host.isAtSocket = true
  const [row] = await rows('identity=admin-id&limit=1', host)
  expect(row?.identity.id).toBe('admin-id')
  expect(row?.withheld).toEqual([])
  const changes = [{ action: 'patch', kind: 'identity', id: 'alice-id', data: {} }]
  const reply = await host.call('POST', `${management}/access/preview`, { changes })
  expect(reply.status, reply.text).toBe(200)
})

describe('an explanation of one identity or one service', () => {
  test('lists the services of the identity or the identities of the service: all of them, those that match a filter, or those with access', async () => {
    const identity = await newIdentity(root, 'reader', { roleAttributes: ['readers'] })
    const names = ['book 1', 'book 2', 'book 3']
    for (const name of names) await newService(root, name, { roleAttributes: ['books'] })
    const filter = encodeURIComponent('name contains "book"')
    const found = await rows(`identity=${identity}&filter=${filter}&sort=name&limit=2&offset=1`)
    expect(found.map(({ service }) => service.name)).toEqual(['book 2', 'book 3'])
    expect(await rows(`identity=${identity}&granted=true`)).toEqual([])
    const [first] = found
    await policy('service-policies', {
      name: 'books',
      type: 'Bind',
      identityRoles: ['#readers'],
      serviceRoles: [`@${first?.service.id ?? ''}`],
    })
    const granted = await root.get(`${path}?identity=${identity}&granted=true`)
    expect(granted.body.meta?.pagination).toMatchObject({ totalCount: 1 })
    const [one] = granted.body.data as readonly Row[]
    expect([one?.service.name, one?.bind.isGranted, one?.dial.isGranted]).toEqual([
      'book 2',
      true,
      false,
    ])
    const [other] = await rows(`service=${first?.service.id ?? ''}&granted=true`)
    expect(other?.identity.name).toBe('reader')
    const whole = await rows(`service=${first?.service.id ?? ''}&limit=-1`)
    expect(whole.length).toBeGreaterThan(3)
  })

  test('is refused with 400 if neither is given, and with 404 if the identity or the service is unknown', async () => {
    expect((await root.get(path)).status).toBe(400)
    expect((await root.get(`${path}?identity=nobody`)).status).toBe(404)
    expect((await root.get(`${path}?identity=admin-id&service=none`)).status).toBe(404)
  })
})

test('the explanation of an identity and a service lists the parts of the service’s configs that tunnels cannot intercept', async () => {
  const identity = await newIdentity(root, 'bookworm')
  const config = await made(root, `${management}/configs`, {
    name: 'books',
    configTypeId: 'g7cIWbcGg',
    data: {
      protocols: ['tcp'],
      addresses: ['books.example', 'http://other.example'],
      portRanges: [{ low: 443, high: 443 }],
    },
  })
  const service = await newService(root, 'books', { configs: [config] })
  expect((await explained(identity, service)).configs).toEqual([
    expect.objectContaining({
      id: config,
      source: 'service',
      notIntercepted: ['http://other.example is no address, network, name or *.domain'],
    }),
  ])
})

test('an explanation names the policy for which the identity and the service lack the fewest role attributes, and lists these attributes', async () => {
  const identity = await newIdentity(root, 'near', { roleAttributes: ['phones', 'people'] })
  const service = await newService(root, 'near wiki', { roleAttributes: ['near-docs'] })
  const nearest = async (): Promise<unknown> => {
    const { dial } = await explained(identity, service)
    const { nearestPolicy } = dial as { nearestPolicy?: Readonly<Record<string, unknown>> | null }
    if (nearestPolicy === null || nearestPolicy === undefined) return nearestPolicy
    const { name, identityLacks, serviceLacks } = nearestPolicy
    return { name, identityLacks, serviceLacks }
  }
  const dial = (name: string, semantic: string, identityRoles: string[], serviceRoles: string[]) =>
    policy('service-policies', { name, type: 'Dial', semantic, identityRoles, serviceRoles })
  expect(await nearest()).toBeNull()
  await dial('far', 'AllOf', ['#phones', '#staff', '#berlin'], ['#near-docs'])
  expect(await nearest()).toEqual({
    name: 'far',
    identityLacks: ['berlin', 'staff'],
    serviceLacks: [],
  })
  await dial('near', 'AnyOf', ['#people'], ['#internal', '#public'])
  expect(await nearest()).toEqual({ name: 'near', identityLacks: [], serviceLacks: ['internal'] })
  // This policy is not suggested: it selects identities by ID, and only a caller who may change the
  // policy can add an ID to it.
  await dial('named', 'AnyOf', [`@${await newIdentity(root, 'another')}`], ['#near-docs'])
  expect(await nearest()).toEqual({ name: 'near', identityLacks: [], serviceLacks: ['internal'] })
  await dial('as near', 'AnyOf', ['#engineers'], ['#near-docs'])
  // With equally many attributes, a change of the identity grants less than one of the service.
  expect(await nearest()).toEqual({
    name: 'as near',
    identityLacks: ['engineers'],
    serviceLacks: [],
  })
  await dial('granting', 'AnyOf', ['#people'], ['#near-docs'])
  expect(await nearest()).toBeNull()
})
