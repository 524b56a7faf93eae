import { decodeJwt, decodeProtectedHeader } from 'jose'
import { expect, test } from 'vitest'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import { LogWriter } from '../fsm/support/log.ts'
import { CallerOf, client, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { anySystem } from '../support/commands.ts'

const { controller, root, sessionOf } = await controllerForFile()
const alice = sessionOf('alice-id')

interface Row {
  readonly id: string
  readonly name: string
  readonly [key: string]: unknown
}

async function created(collection: string, body: unknown): Promise<string> {
  controller.clock.advance(10)
  const reply = await root.call('POST', `${management}/${collection}`, body)
  expect(reply.status, reply.text).toBe(201)
  return (reply.body.data as Row).id
}

async function removed(collection: string, id: string): Promise<void> {
  controller.clock.advance(10)
  const reply = await root.call('DELETE', `${management}/${collection}/${id}`)
  expect(reply.status, reply.text).toBe(200)
}

const service = (name: string, roleAttributes: readonly string[] = []) =>
  created('services', { name, encryptionRequired: true, roleAttributes })
const router = (name: string, roleAttributes: readonly string[] = []) =>
  created('edge-routers', { name, roleAttributes })
const grant = (name: string, type: string, serviceRoles: readonly string[], rest: object = {}) =>
  created('service-policies', {
    name,
    type,
    semantic: 'AnyOf',
    identityRoles: ['#staff'],
    serviceRoles,
    ...rest,
  })

async function names(caller: CallerOf, url: string): Promise<string[]> {
  const reply = await caller.get(url)
  expect(reply.status, reply.text).toBe(200)
  return (reply.body.data as Row[]).map(({ name }) => name).sort()
}

async function lastChangeAt(caller: CallerOf = alice): Promise<string> {
  const reply = await caller.get(`${client}/current-api-session/service-updates`)
  expect(reply.status, reply.text).toBe(200)
  return (reply.body.data as { lastChangeAt: string }).lastChangeAt
}

test('router policies give the same result in the lists of identities, services and edge routers, whichever record the caller starts from', async () => {
  const printer = await service('printer', ['office'])
  const east = await router('east', ['east'])
  const west = await router('west', ['west'])
  const policies = [
    await created('edge-router-policies', {
      name: 'staff east',
      semantic: 'AnyOf',
      identityRoles: ['#staff'],
      edgeRouterRoles: ['#east', `@${west}`],
    }),
    await created('service-edge-router-policies', {
      name: 'office west',
      semantic: 'AnyOf',
      serviceRoles: ['#office'],
      edgeRouterRoles: ['#west'],
    }),
  ]
  expect(await names(root, `${management}/identities/alice-id/edge-routers`)).toEqual([
    'east',
    'west',
  ])
  expect(await names(root, `${management}/services/${printer}/edge-routers`)).toEqual(['west'])
  expect(await names(root, `${management}/edge-routers/${east}/identities`)).toEqual(['Alice'])
  expect(await names(root, `${management}/edge-routers/${east}/services`)).toEqual([])
  expect(await names(root, `${management}/edge-routers/${west}/services`)).toEqual(['printer'])
  const filtered = encodeURIComponent('name = "east"')
  const list = `${management}/identities/alice-id/edge-routers?filter=${filtered}`
  expect(await names(root, list)).toEqual(['east'])

  for (const [path, status] of [
    ['identities/none/edge-routers', 404],
    ['edge-routers/none/identities', 404],
    ['edge-routers/none/services', 404],
    ['services/none/edge-routers', 200],
  ] as const) {
    expect((await root.get(`${management}/${path}`)).status, path).toBe(status)
  }

  const advice = await root.get(`${management}/identities/alice-id/policy-advice/${printer}`)
  expect(advice.body.data).toMatchObject({
    identityId: 'alice-id',
    identity: { name: 'Alice', entity: 'identities' },
    serviceId: printer,
    isBindAllowed: false,
    isDialAllowed: false,
    identityRouterCount: 2,
    serviceRouterCount: 1,
    commonRouters: [{ id: west, name: 'west', entity: 'edge-routers', isOnline: false }],
  })
  for (const pair of ['none/policy-advice/' + printer, 'alice-id/policy-advice/none']) {
    expect((await root.get(`${management}/identities/${pair}`)).status).toBe(404)
  }

  const adviceFor = async (...permissions: readonly string[]): Promise<unknown[]> => {
    const name = `adviser with ${permissions.join(', ')}`
    const body = { name, type: 'User', isAdmin: false, permissions }
    const adviser = sessionOf(await created('identities', body))
    const path = `${management}/identities/alice-id/policy-advice/${printer}`
    const { data } = (await adviser.get(path)).body
    const { identity, service, commonRouters } = data as Record<'identity' | 'service', Row> & {
      readonly commonRouters: readonly Row[]
    }
    return [identity.name, service.name, commonRouters.map((router) => router.name)]
  }
  expect(await adviceFor('service.read')).toEqual(['', 'printer', ['']])
  expect(await adviceFor('service.read', 'identity.read')).toEqual(['Alice', 'printer', ['']])
  expect(await adviceFor('service.read', 'router.read')).toEqual(['', 'printer', ['west']])
  await removed('edge-router-policies', policies[0] ?? '')
  await removed('service-edge-router-policies', policies[1] ?? '')
  for (const id of [east, west]) await removed('edge-routers', id)
  await removed('services', printer)
})

test('a service session is refused without a policy, then because of a failed posture check, then because no edge router is available; once it is opened, it lists its routers', async () => {
  const wiki = await service('wiki', ['wiki'])
  const open = (type?: string, serviceId = wiki) =>
    alice.call('POST', `${client}/sessions`, { serviceId, ...(type === undefined ? {} : { type }) })
  const refusal = async (type?: string, serviceId = wiki) => {
    const { status, body } = await open(type, serviceId)
    return [status, body.error?.code]
  }
  expect(await refusal()).toEqual([404, 'NOT_FOUND'])
  expect(await refusal('Dial', 'none')).toEqual([404, 'NOT_FOUND'])

  const check = await created('posture-checks', { name: 'mfa', typeId: 'MFA' })
  const dial = await grant('dial wiki', 'Dial', ['#wiki'], { postureCheckRoles: [`@${check}`] })
  const wrongType = await open('Bind')
  expect(wrongType.status).toBe(400)
  expect(wrongType.body.error).toMatchObject({
    code: 'COULD_NOT_VALIDATE',
    cause: { field: 'ServiceId', reason: 'service not found' },
  })
  expect((await open('Invalid')).status).toBe(400)

  const posture = await open('Dial')
  expect(posture.status).toBe(409)
  expect(posture.body.error).toMatchObject({
    code: 'INVALID_POSTURE',
    cause: { data: { [dial]: [{ id: check, typeId: 'MFA', isPassing: false }] } },
  })
  const other = await grant('dial wiki anyway', 'Dial', ['#wiki'])
  expect(await refusal('Dial')).toEqual([400, 'NO_EDGE_ROUTERS_AVAILABLE'])

  const edge = await router('edge', ['edge'])
  await created('edge-router-policies', {
    name: 'all edge',
    semantic: 'AnyOf',
    identityRoles: ['#all'],
    edgeRouterRoles: ['#all'],
  })
  await created('service-edge-router-policies', {
    name: 'every service',
    semantic: 'AnyOf',
    serviceRoles: ['#all'],
    edgeRouterRoles: ['#all'],
  })
  const made = await open()
  expect(made.status, made.text).toBe(201)
  const session = made.body.data as Row & { readonly token: string }
  expect(session).toMatchObject({
    type: 'Dial',
    serviceId: wiki,
    identityId: 'alice-id',
    service: { id: wiki, name: 'wiki' },
    edgeRouters: [{ name: 'edge', urls: {}, isOnline: false, appData: {} }],
  })
  expect(decodeProtectedHeader(session.token).alg).toBe('ES256')
  expect(decodeJwt(session.token)).toMatchObject({
    iss: 'https://localhost:1280',
    sub: wiki,
    aud: ['openziti'],
    jti: session.id,
    z_iid: 'alice-id',
    z_asid: session['apiSessionId'],
    z_st: 'Dial',
    z_t: 's',
    z_leg: true,
  })
  const again = await open('Dial')
  expect(again.status).toBe(201)
  expect((again.body.data as Row).id).toBe(session.id)

  const shown = await alice.get(`${client}/sessions/${session.id}`)
  expect(shown.body.data).toMatchObject({ id: session.id, token: session.id })
  expect((await root.get(`${client}/sessions/${session.id}`)).status).toBe(404)
  expect((await root.call('DELETE', `${client}/sessions/${session.id}`)).status).toBe(404)
  const managed = await root.get(`${management}/sessions/${session.id}`)
  expect(managed.body.data).toMatchObject({
    servicePolicies: [{ id: dial }, { id: other }].sort(byId),
  })
  const path = await root.get(`${management}/sessions/${session.id}/route-path`)
  expect(path.body.data).toEqual({ routePath: [] })
  for (const [createdAt, routerIds] of [
    [2000, ['er1', 'er2']],
    [1000, ['er3']],
  ] as const) {
    const ends = { id: `circuit ${createdAt}`, ingress: 'in', egress: 'out' }
    const of = { clientId: 'alice-id', serviceId: wiki, terminatorId: 't1', createdAt }
    const live = { ...of, sessionId: session.id }
    const host = {
      hostId: 'i2',
      instanceId: '',
      isOfTunnel: false,
      isHostedByTunnel: false,
      turn: 0,
    }
    const path = { routerIds, links: [], cost: 1 }
    controller.live.circuits.set(ends.id, { live, ends, ...host, path })
  }
  const used = await root.get(`${management}/sessions/${session.id}/route-path`)
  expect(used.body.data).toEqual({ routePath: ['er1', 'er2'] })
  expect((await root.get(`${management}/sessions/none/route-path`)).status).toBe(404)
  const filter = encodeURIComponent(`service = "${wiki}" and type = "Dial"`)
  for (const [caller, api, total] of [
    [alice, client, 1],
    [root, client, 1],
    [root, management, 1],
  ] as const) {
    const list = await caller.get(`${api}/sessions?filter=${filter}`)
    expect(list.body.meta?.pagination?.totalCount).toBe(total)
  }
  expect((await alice.get(`${management}/sessions`)).status).toBe(401)

  const routersUrl = `${client}/services/${wiki}/edge-routers`
  const routers = await alice.call('GET', routersUrl, undefined, { 'session-token': session.token })
  expect(routers.status, routers.text).toBe(200)
  expect(routers.body.data).toMatchObject({ edgeRouters: [{ name: 'edge' }] })
  expect((await alice.get(routersUrl)).status).toBe(200)
  expect((await root.get(routersUrl)).status).toBe(404)
  expect((await alice.get(`${client}/services/none/edge-routers`)).status).toBe(404)
  for (const bad of ['nonsense', `${session.token}x`, alice.token ?? '']) {
    const reply = await alice.call('GET', routersUrl, undefined, { 'session-token': bad })
    expect(reply.status).toBe(401)
  }

  // The identity may use a service as long as any policy permits it; removing the last such policy
  // ends the access.
  await removed('service-policies', dial)
  expect((await alice.get(`${client}/sessions/${session.id}`)).status).toBe(200)
  await removed('service-policies', other)
  expect((await alice.get(`${client}/sessions/${session.id}`)).status).toBe(404)
  const stale = await alice.call('GET', routersUrl, undefined, { 'session-token': session.token })
  expect(stale.status).toBe(404)
  await removed('edge-routers', edge)
  await removed('posture-checks', check)
})

function byId(a: { readonly id: string }, b: { readonly id: string }): number {
  return a.id < b.id ? -1 : 1
}

test('the token of a service session is valid only for its API session and its service, even after the service session is deleted', async () => {
  const [mail, chat] = [await service('mail'), await service('chat')]
  await grant('mail and chat', 'Dial', [`@${mail}`, `@${chat}`])
  await router('any')
  const open = async (caller: CallerOf, serviceId: string) => {
    const reply = await caller.call('POST', `${client}/sessions`, { serviceId })
    expect(reply.status, reply.text).toBe(201)
    return reply.body.data as Row & { readonly token: string }
  }
  const ask = async (caller: CallerOf, serviceId: string, token: string) => {
    const url = `${client}/services/${serviceId}/edge-routers`
    return (await caller.call('GET', url, undefined, { 'session-token': token })).status
  }
  const session = await open(alice, mail)
  expect(await ask(alice, mail, session.token)).toBe(200)
  expect(await ask(alice, chat, session.token)).toBe(401)
  const elsewhere = new CallerOf(controller)
  elsewhere.token = controller.openSession('alice-id')
  expect(await ask(elsewhere, mail, session.token)).toBe(401)
  expect((await alice.call('DELETE', `${client}/sessions/${session.id}`)).status).toBe(200)
  expect(await ask(alice, mail, session.token)).toBe(200)
  expect((await alice.call('DELETE', `${client}/sessions/${session.id}`)).status).toBe(404)

  // The end of the API session also ends its service sessions.
  const last = await open(elsewhere, chat)
  expect((await elsewhere.call('DELETE', `${client}/current-api-session`)).status).toBe(200)
  expect((await root.get(`${management}/sessions/${last.id}`)).status).toBe(404)
})

test('the service-updates time (lastChangeAt) of a client changes exactly when the services that the client sees change', async () => {
  const start = await lastChangeAt()
  expect(start).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  expect(await lastChangeAt()).toBe(start)
  const onManagement = await alice.get(`${management}/current-api-session/service-updates`)
  expect(onManagement.body.data).toEqual({ lastChangeAt: start })

  const seen = await service('seen', ['shared'])
  expect(await lastChangeAt()).toBe(start)
  await grant('see it', 'Dial', ['#shared'])
  const granted = await lastChangeAt()
  expect(granted > start).toBe(true)

  const second = await grant('see it twice', 'Dial', ['#shared'])
  await service('unseen', ['hidden'])
  await removed('service-policies', second)
  expect(await lastChangeAt()).toBe(granted)

  controller.clock.advance(1)
  await root.call('PATCH', `${management}/services/${seen}`, { tags: { floor: 3 } })
  const written = await lastChangeAt()
  expect(written > granted).toBe(true)

  const hosted = await grant('host it', 'Bind', ['#shared'])
  const hosting = await lastChangeAt()
  expect(hosting > written).toBe(true)
  await removed('service-policies', hosted)
  expect((await lastChangeAt()) > hosting).toBe(true)

  // No service changes after this time, so lastChangeAt of a later session is the time at which the
  // session was created.
  controller.clock.advance(5)
  const late = new CallerOf(controller)
  late.token = controller.openSession('alice-id')
  const session = await late.get(`${client}/current-api-session`)
  expect(await lastChangeAt(late)).toBe((session.body.data as Row)['createdAt'])
})

test('a config change updates the service-updates time (lastChangeAt) of identities that use the config, but not of identities that override the config', async () => {
  const seen = await service('configured', ['shared'])
  const type = await created('config-types', { name: 'test.v1' })
  const [theirs, own] = await Promise.all(
    ['theirs', 'own'].map((name) =>
      created('configs', { name, configTypeId: type, data: { name } }),
    ),
  )
  const change = async (id: string | undefined, data: object) => {
    controller.clock.advance(1)
    const before = await lastChangeAt()
    const reply = await root.call('PATCH', `${management}/configs/${id ?? ''}`, data)
    expect(reply.status, reply.text).toBe(200)
    return (await lastChangeAt()) > before
  }
  expect(await change(theirs, { data: { port: 1 } })).toBe(false)
  await root.call('PATCH', `${management}/services/${seen}`, { configs: [theirs] })
  expect(await change(theirs, { data: { port: 2 } })).toBe(true)
  expect(await change(theirs, { name: 'called otherwise' })).toBe(false)
  const renamed = await root.call('PATCH', `${management}/config-types/${type}`, {
    name: 'test.v2',
  })
  expect(renamed.status).toBe(200)
  const overrides = `${management}/identities/alice-id/service-configs`
  controller.clock.advance(1)
  const before = await lastChangeAt()
  await root.call('POST', overrides, [{ serviceId: seen, configId: own }])
  expect((await lastChangeAt()) > before).toBe(true)
  expect(await change(theirs, { data: { port: 3 } })).toBe(false)
  expect(await change(own, { data: { port: 4 } })).toBe(true)
})

test('a change that the controller refuses leaves the service-updates time (lastChangeAt) of a client unchanged', async () => {
  const before = await lastChangeAt()
  controller.clock.advance(10)
  const body = { name: 'seen', encryptionRequired: true, roleAttributes: ['shared'] }
  expect((await root.call('POST', `${management}/services`, body)).status).toBe(400)
  expect(await lastChangeAt()).toBe(before)
})

test('a caller sees the enrolled routers that its policies allow; an administrator sees all enrolled routers', async () => {
  const url = `${client}/current-identity/edge-routers`
  const none = (await alice.get(url)).body
  expect(none.data).toEqual([])
  expect(none.meta?.pagination, 'the whole list').toEqual({ limit: 0, offset: 0, totalCount: 0 })
  const own = await router('own', ['own'])
  const other = await router('other')
  const listed = await root.get(`${management}/edge-router-policies?filter=limit%20none`)
  for (const { id } of listed.body.data as Row[]) await removed('edge-router-policies', id)
  await created('edge-router-policies', {
    name: 'own',
    semantic: 'AnyOf',
    identityRoles: ['#staff'],
    edgeRouterRoles: ['#own'],
  })
  expect(await names(alice, url)).toEqual([])
  expect(await names(root, url)).toEqual([])
  for (const id of [own, other]) {
    const { outcome } = await controller.cluster.propose({
      kind: CommandKind.ENTITY_PATCH,
      payload: LogWriter.write('edgeRouter', id, { isVerified: true }),
      actor: anySystem,
    })
    expect(outcome.ok).toBe(true)
  }
  expect(await names(alice, url)).toEqual(['own'])
  expect(await names(root, url)).toEqual(['other', 'own'])
  const { meta } = (await root.get(url)).body
  expect(meta?.pagination).toEqual({ limit: 2, offset: 0, totalCount: 2 })
})

interface Usage {
  readonly roleAttribute: string
  readonly usage: Readonly<Record<string, { readonly count: number; readonly ids: unknown }>>
}

test('role attributes can be filtered, sorted and paged, and are listed with the records that have them', async () => {
  const id = await service('with attributes', ['zeta', 'eta', 'theta'])
  const policy = await grant('names another', 'Dial', ['#theta', '#unheld'])
  const list = async (query: string) => {
    const reply = await root.get(`${management}/service-role-attributes${query}`)
    expect(reply.status, reply.text).toBe(200)
    return reply.body
  }
  const whole = await list('')
  const all = whole.data as string[]
  expect(all).toEqual([...all].sort())
  expect(all).toEqual(expect.arrayContaining(['eta', 'theta', 'zeta']))
  expect(all).not.toContain('unheld')
  expect(whole.meta?.pagination).toEqual({
    limit: -1,
    offset: 0,
    totalCount: all.length,
  })
  const filter = encodeURIComponent('id contains "eta" sort by id desc')
  expect((await list(`?filter=${filter}`)).data).toEqual(['zeta', 'theta', 'eta'])
  const paged = await list(`?filter=${filter}&limit=1&offset=1`)
  expect(paged.data).toEqual(['theta'])
  expect(paged.meta?.pagination).toEqual({ limit: 1, offset: 1, totalCount: 3 })
  const asked = await list('?limit=100&offset=0&sort=name%20asc')
  expect(asked.data, 'as the OpenZiti console requests it').toEqual(all)
  expect((await list('?sort=id%20desc')).data).toEqual([...all].reverse())
  expect((await list('?sort=name%20desc')).data).toEqual([...all].reverse())
  for (const bad of ['title = "x"', 'id = ']) {
    const reply = await root.get(
      `${management}/service-role-attributes?filter=${encodeURIComponent(bad)}`,
    )
    expect(reply.body.error?.code).toBe('INVALID_FILTER')
  }
  for (const kind of ['identity', 'edge-router', 'posture-check']) {
    const sorted = `${management}/${kind}-role-attributes?limit=100&offset=0&sort=name%20asc`
    expect((await root.get(sorted)).status).toBe(200)
    expect((await root.get(`${management}/${kind}-role-attributes`)).status).toBe(200)
    expect((await alice.get(`${management}/${kind}-role-attributes`)).status).toBe(401)
  }

  const usage = async (query: string) => {
    const reply = await root.get(`${management}/service-role-attribute-usage${query}`)
    expect(reply.status, reply.text).toBe(200)
    return new Map((reply.body.data as Usage[]).map((row) => [row.roleAttribute, row.usage]))
  }
  const counts = await usage('')
  expect(counts.get('unheld')).toEqual({
    services: { count: 0, ids: null },
    serviceEdgeRouterPolicies: { count: 0, ids: null },
    servicePolicies: { count: 1, ids: null },
  })
  expect(counts.has('all')).toBe(false)
  const named = await usage('?withIds=true')
  expect(named.get('theta')).toMatchObject({
    services: { count: 1, ids: [id] },
    servicePolicies: { count: 1, ids: [policy] },
  })
  const identities = await root.get(`${management}/identity-role-attribute-usage`)
  expect(identities.body.data).toContainEqual({
    roleAttribute: 'staff',
    usage: expect.objectContaining({ identities: { count: 1, ids: null } }) as unknown,
  })
})
