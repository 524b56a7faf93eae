import { expect, test } from 'vitest'
import { createApi } from '../../src/api/server.ts'
import { entityOperations } from '../../src/entities/operations.ts'
import { entities } from '../../src/entities/registry.ts'
import { CallerOf, client, fabric, management } from './support/caller.ts'
import { admin } from './support/controller.ts'
import { controllerForFile } from './support/for-file.ts'

const { controller, root, sessionOf } = await controllerForFile()
const alice = sessionOf('alice-id')
const anonymous = new CallerOf(controller)

const apiVersion = (path: string): object => ({
  v1: { path, apiBaseUrls: [`https://localhost:1280${path}`], version: 'v1' },
})

test('the version is public at every base path and alias, and contains the addresses of the APIs', async () => {
  const paths = [client, management, fabric].flatMap((base) => [
    base,
    `${base}/`,
    `${base}/version`,
  ])
  for (const path of [
    ...paths,
    '/',
    '/version',
    '/edge/v1/version',
    '/edge/client/v1///version',
    '/version?x=1',
  ]) {
    const reply = await anonymous.get(path)
    expect(reply.status, path).toBe(200)
    expect(reply.body.data).toEqual({
      apiVersions: {
        edge: apiVersion(client),
        'edge-client': apiVersion(client),
        'edge-oidc': apiVersion('/oidc'),
        'edge-management': apiVersion(management),
        fabric: apiVersion(fabric),
        'health-checks': apiVersion('/health-checks/v1'),
      },
      buildDate: '2026-01-02T03:04:05.000Z',
      capabilities: ['OIDC_AUTH', 'HA_CONTROLLER'],
      revision: '0123456789ab',
      runtimeVersion: 'node test',
      version: 'v1.2.3',
    })
    expect(reply.headers['server']).toBe('ziti-controller/v1.2.3')
    expect(reply.headers['ziti-instance-id']).toBe('test-instance')
    expect(reply.body.meta).toEqual({ apiEnrollmentVersion: '0.0.1', apiVersion: '0.0.1' })
  }
})

test('OIDC is announced and served once the feature level shows that every member supports it', async () => {
  const bindings = { 'edge-client': ['https://c:1'], 'edge-oidc': ['https://c:1'] }
  const { state } = controller.parts
  const levels = { featureLevel: 1 }
  const atLevel = new Proxy(state, {
    get: (from, name) => {
      if (name === 'featureLevel') return levels.featureLevel
      const value = Reflect.get(from, name, from) as unknown
      return typeof value === 'function' ? (value.bind(from) as unknown) : value
    },
  })
  const app = createApi({ ...controller.parts, bindings, state: atLevel }).listener({
    apis: ['client', 'oidc'],
    https: null,
  })
  const version = async () => {
    const answer = await app.inject({ url: `${client}/version`, headers: { host: 'c:1' } })
    return answer.json<{ data: Record<string, unknown> }>().data
  }
  const authorize = async () => {
    const answer = await app.inject({ url: '/oidc/authorize', headers: { host: 'c:1' } })
    return answer.statusCode
  }
  const before = await version()
  expect(before['capabilities']).toEqual([])
  expect(before['apiVersions']).not.toHaveProperty('edge-oidc')
  expect(await authorize()).toBe(404)
  levels.featureLevel = 2
  const since = await version()
  expect(since['capabilities']).toEqual(['OIDC_AUTH', 'HA_CONTROLLER'])
  const oidc = { apiBaseUrls: ['https://c:1/oidc'], path: '/oidc', version: 'v1' }
  expect(since['apiVersions']).toMatchObject({ 'edge-oidc': { v1: oidc } })
  expect(await authorize()).toBe(400)
  await app.close()
})

test('the version lists only capabilities that the JVM SDK can parse', async () => {
  // Versions 0.30 to 0.33 of the JVM SDK refuse a controller with any other capability.
  const jvmSdk = ['OIDC_AUTH', 'HA_CONTROLLER']
  const { body } = await anonymous.get(`${client}/version`)
  const announced = (body.data as { capabilities: string[] }).capabilities
  expect(announced.filter((name) => !jvmSdk.includes(name))).toEqual([])
})

test('a public operation ignores session tokens, even invalid ones', async () => {
  const reply = await anonymous.get(`${client}/version`, { 'zt-session': 'nonsense' })
  expect(reply.status).toBe(200)
  expect(reply.headers['www-authenticate']).toBeUndefined()
})

test('the operations capabilities, protocols and specs are public', async () => {
  const capabilities = await anonymous.get(`${client}/enumerated-capabilities`)
  expect(capabilities.body.data).toEqual(['OIDC_AUTH', 'HA_CONTROLLER', 'OIDC_AUTH_WITH_CSR'])
  const ofRouters = await anonymous.get(`${management}/enumerated-router-capabilities`)
  expect(ofRouters.body.data).toContain('MULTI_CHANNEL')
  const protocols = await anonymous.get(`${client}/protocols`)
  expect(protocols.body.data).toEqual({ https: { address: 'localhost:1280' } })
  const specs = await anonymous.get(`${management}/specs`)
  expect((specs.body.data as { id: string }[]).map(({ id }) => id)).toEqual(['edge-client'])
  expect((await anonymous.get(`${client}/specs/edge-management`)).status).toBe(200)
  expect((await anonymous.get(`${client}/specs/other`)).status).toBe(404)
  const text = await anonymous.get(`${client}/specs/edge-management/spec`)
  expect(text.text).toBe((await anonymous.get(`${management}/openapi.json`)).text)
  const yaml = await anonymous.get(`${client}/specs/edge-client/spec`, { accept: 'text/yaml' })
  expect(yaml.headers['content-type']).toBe('text/yaml')
})

test('the served OpenAPI documents list every operation of the descriptors, each with a unique id', async () => {
  for (const [api, base] of [
    ['client', client],
    ['management', management],
  ] as const) {
    const document = JSON.parse((await anonymous.get(`${base}/openapi.json`)).text) as {
      openapi: string
      paths: Record<string, Record<string, { operationId: string; security: unknown[] }>>
    }
    expect(document.openapi).toBe('3.1.0')
    for (const operation of entities.flatMap(entityOperations).filter((one) => one.api === api)) {
      const described = document.paths[operation.path]?.[operation.method.toLowerCase()]
      expect(described?.operationId, operation.path).toBe(operation.operationId)
      expect(described?.security).toHaveLength(2)
    }
    const ids = Object.values(document.paths).flatMap((item) =>
      Object.values(item).map(({ operationId }) => operationId),
    )
    expect(new Set(ids).size).toBe(ids.length)
  }
})

test('any session can read the summary, which has 25 counts, and a caller without a session cannot', async () => {
  const reply = await root.get(`${management}/summary`)
  expect((await alice.get(`${management}/summary`)).body.data).toEqual(reply.body.data)
  expect((await anonymous.get(`${management}/summary`)).status).toBe(401)
  expect(reply.body.data).toMatchObject({
    apiSessions: 2,
    authPolicies: 1,
    controllers: 2,
    identities: 3,
    identityTypes: 5,
    services: 0,
    'routers.edge': 0,
  })
  expect(Object.keys(reply.body.data as object)).toHaveLength(25)
})

test('controllers are listed with their online status; the client API does not show how they reach each other', async () => {
  const all = await root.get(`${management}/controllers`)
  expect(all.body.data).toMatchObject([
    {
      id: 'ctrl1',
      name: 'ctrl1',
      isOnline: true,
      ctrlAddress: 'localhost:1480',
      lastJoinedAt: '2026-01-02T03:04:05.670Z',
    },
    { id: 'ctrl2', isOnline: false },
  ])
  const filter = encodeURIComponent('isOnline = true')
  const online = await root.get(`${management}/controllers?filter=${filter}`)
  expect(online.body.meta?.pagination?.totalCount).toBe(1)
  const seen = await alice.get(`${client}/controllers?sort=name%20desc&limit=1`)
  expect(seen.body.data).toMatchObject([{ id: 'ctrl2' }])
  const [row] = seen.body.data as Record<string, unknown>[]
  expect(row).not.toHaveProperty('ctrlAddress')
  expect(Object.keys(row?.['apiAddresses'] as object)).toEqual(['edge-client'])
  const guess = encodeURIComponent('ctrlAddress contains "1480"')
  expect((await alice.get(`${client}/controllers?filter=${guess}`)).status).toBe(400)
})

test('any session lists controllers on the management API; a caller with controllers.read also sees how the controllers reach each other', async () => {
  const guess = encodeURIComponent('ctrlAddress contains "1480"')
  const url = `${management}/controllers`
  expect((await anonymous.get(url)).status).toBe(401)
  const seen = await alice.get(url)
  expect(seen.body.data).toMatchObject([{ id: 'ctrl1' }, { id: 'ctrl2' }])
  for (const row of seen.body.data as object[]) expect(row).not.toHaveProperty('ctrlAddress')
  expect(seen.body.meta?.filterableFields).not.toContain('ctrlAddress')
  expect((await alice.get(`${url}?filter=${guess}`)).status).toBe(400)
  const permissions = ['controllers.read']
  const body = { name: 'reader', type: 'User', isAdmin: false, permissions }
  const made = await root.call('POST', `${management}/identities`, body)
  const reader = sessionOf((made.body.data as { id: string }).id)
  expect((await reader.get(`${url}?filter=${guess}`)).body.data).toMatchObject([
    { id: 'ctrl1', ctrlAddress: 'localhost:1480' },
  ])
})

test('cluster members are listed in OpenZiti’s form, without meta, and leadership is transferred on request', async () => {
  const reply = await root.get(`${fabric}/cluster/list-members`)
  expect(JSON.parse(reply.text)).toEqual({
    data: [
      {
        id: 'ctrl1',
        address: 'https://localhost:1280',
        ctrlAddress: 'localhost:1480',
        voter: true,
        leader: true,
        connected: true,
        version: 'v1.2.3',
        readOnly: false,
        preferredLeader: false,
      },
      {
        id: 'ctrl2',
        address: 'https://localhost:1281',
        ctrlAddress: 'localhost:1481',
        voter: true,
        leader: false,
        connected: false,
        version: 'v1.2.3',
        readOnly: true,
        preferredLeader: false,
      },
    ],
  })
  const url = `${fabric}/cluster/transfer-leadership`
  expect((await root.call('POST', url, { newLeaderId: 'nobody' })).status).toBe(404)
  expect((await root.call('POST', url, { newLeaderId: 'ctrl2' })).status).toBe(200)
  expect((await root.call('POST', url)).status).toBe(200)
  expect(controller.transfers).toEqual(['ctrl2', null])
})

const bareCheck = () => ({
  healthy: true,
  lastCheckTime: new Date(controller.clock.nowMs()).toISOString(),
  lastCheckDuration: '0s',
})

test('the health checks are also served at OpenZiti’s path', async () => {
  for (const caller of [anonymous, root]) {
    const [ours, theirs] = [
      await caller.get('/health-checks'),
      await caller.get('/health-checks/v1'),
    ]
    expect(theirs.status).toBe(200)
    expect(theirs.body).toEqual(ours.body)
  }
  controller.isHealthy = false
  expect((await anonymous.get('/health-checks/v1')).status).toBe(503)
  controller.isHealthy = true
})

test('each health check shows its time and duration', async () => {
  const check = async () => {
    const { body } = await root.get('/health-checks/v1')
    return (body.data as { checks: Record<string, unknown>[] }).checks[0]
  }
  const first = await check()
  expect(first).toEqual({ id: 'store', detail: 'kept inside', ...bareCheck() })
  controller.clock.advance(5000)
  const second = await check()
  expect(second).toEqual({ id: 'store', detail: 'kept inside', ...bareCheck() })
  expect(second?.['lastCheckTime']).not.toBe(first?.['lastCheckTime'])
})

test('the public health checks contain no details, and get the status 503 if one of them fails', async () => {
  const well = await anonymous.get('/health-checks')
  expect(well.status).toBe(200)
  expect(well.body.data).toEqual({ healthy: true, checks: [{ id: 'store', ...bareCheck() }] })
  controller.isHealthy = false
  const ill = await anonymous.get('/health-checks')
  controller.isHealthy = true
  expect(ill.status).toBe(503)
  expect(ill.body.data).toMatchObject({ healthy: false })
})

test('an administrator sees all details of the health checks; a caller without permissions or with an invalid token sees only the public part', async () => {
  const full = await root.get('/health-checks')
  expect(full.status).toBe(200)
  expect(full.body.data).toMatchObject({
    checks: [{ id: 'store', detail: 'kept inside' }],
    node: { id: 'ctrl1', nextRisk: 'losing one more voter stops writes' },
  })
  for (const caller of [alice, anonymous]) {
    const headers = caller === anonymous ? { 'net-session': 'nonsense' } : {}
    const bare = await caller.get('/health-checks', headers)
    expect(bare.status).toBe(200)
    expect(bare.body.data).toEqual({ healthy: true, checks: [{ id: 'store', ...bareCheck() }] })
    expect(bare.headers['www-authenticate']).toBeUndefined()
  }
})

test('a controller is ready if it may serve requests and has a leader; its health checks succeed without a leader', async () => {
  const ready = async () => {
    const { status, body } = await anonymous.get('/health-checks/ready')
    return [status, (body.data as { ready: boolean }).ready]
  }
  expect(await ready()).toEqual([200, true])
  controller.cluster.hasLeader = false
  expect(await ready()).toEqual([503, false])
  expect((await anonymous.get('/health-checks')).status).toBe(200)
  controller.cluster.hasLeader = true
  controller.refusal = 'NODE_QUARANTINED'
  expect(await ready()).toEqual([503, false])
  controller.refusal = null
  expect(await ready()).toEqual([200, true])
})

test('the metrics count requests by operation and status, and include figures of Raft, the log, the mesh and the threads', async () => {
  await root.get(`${management}/service-policies?limit=x`)
  const reply = await root.get('/metrics')
  expect(reply.status).toBe(200)
  expect(reply.headers['content-type']).toMatch(/^text\/plain/)
  expect(reply.text).toMatch(
    /flotilla_http_requests_total\{operation="listServicePolicies",status="400"\} 1\n/,
  )
  expect(reply.text).toMatch(/flotilla_raft_is_leader 1\n/)
  expect(reply.text).toMatch(/flotilla_raft_role\{role="leader"\} 1\n/)
  expect(reply.text).toMatch(/flotilla_raft_elections_total 3\n/)
  expect(reply.text).toMatch(/flotilla_wal_fsync_duration_seconds_bucket\{le="0.00025"\} 2\n/)
  expect(reply.text).toMatch(/flotilla_wal_fsync_duration_seconds_bucket\{le="\+Inf"\} 2\n/)
  expect(reply.text).toMatch(/flotilla_mesh_queued_bytes 77\n/)
  expect(reply.text).toMatch(/flotilla_loop_delay_p99_seconds\{thread="raft"\} 0.004\n/)
  expect(reply.text).toContain('process_resident_memory_bytes')
  expect(reply.text).toMatch(/flotilla_thread_heap_used_bytes\{thread="main"\} [1-9]\d{6,}\n/)
  expect(reply.text).toMatch(/flotilla_thread_external_bytes\{thread="raft"\} 55\n/)
  expect(reply.text).toMatch(/flotilla_log_kept_bytes 66\n/)
  expect(reply.text).toMatch(/flotilla_request_ids 0\n/)
})

test('cross-origin requests are allowed with the known headers and methods', async () => {
  const reply = await anonymous.get(`${client}/version`, { origin: 'https://console.example' })
  expect(reply.headers['access-control-allow-origin']).toBe('*')
  expect(reply.headers['access-control-allow-credentials']).toBe('true')
  expect(
    (await anonymous.get(`${client}/version`)).headers['access-control-allow-origin'],
  ).toBeUndefined()
  const ask = (method: string, headers = '') =>
    anonymous.call('OPTIONS', `${management}/services`, undefined, {
      origin: 'https://console.example',
      ...(method === '' ? {} : { 'access-control-request-method': method }),
      ...(headers === '' ? {} : { 'access-control-request-headers': headers }),
    })
  const patch = await ask('PATCH', 'Content-Type, zt-session, net-session')
  expect(patch.status).toBe(200)
  expect(patch.headers['access-control-allow-methods']).toBe('PATCH')
  expect(patch.headers['access-control-allow-headers']).toBe(
    'content-type, zt-session, net-session',
  )
  expect((await ask('GET')).headers['access-control-allow-methods']).toBeUndefined()
  expect((await ask('')).status).toBe(400)
  expect((await ask('TRACE')).status).toBe(405)
  expect((await ask('GET', 'x-other')).status).toBe(403)
})

test('if OIDC is disabled, it is neither announced nor served, and the REST log-in still works', async () => {
  const { 'edge-oidc': _oidc, ...bindings } = controller.parts.bindings
  const app = createApi({ ...controller.parts, bindings }).listener({
    apis: ['client'],
    https: null,
  })
  const version = await app.inject(`${client}/version`)
  const { data } = version.json<{ data: Record<string, object> }>()
  expect(data['capabilities']).toEqual(['HA_CONTROLLER'])
  expect(data['apiVersions']).not.toHaveProperty('edge-oidc')
  expect((await app.inject('/oidc/.well-known/openid-configuration')).statusCode).toBe(404)
  const asked = await app.inject(`${client}/current-identity`)
  expect(asked.headers['www-authenticate']).not.toContain('openziti-oidc')
  const payload = { ...admin }
  const url = `${client}/authenticate?method=password`
  expect((await app.inject({ method: 'POST', url, payload })).statusCode).toBe(200)
  await app.close()
})
