import { describe, expect, onTestFinished, test } from 'vitest'
import { noRouterStatuses } from '../../src/ports/router-status.ts'
import { CallerOf, fabric, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { claimsOf, listed, made, newIdentity, newService, shown } from './support/network.ts'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const minute = 60_000

const { controller, root } = await controllerForFile({ routerEnrollmentMs: 90 * minute })

const edgeRouters = `${management}/edge-routers`
const newRouter = (name: string, rest: object = {}): Promise<string> =>
  made(root, edgeRouters, { name, ...rest })

describe('a new edge router', () => {
  test('shows its enrollment token, signed by this controller', async () => {
    const nowMs = controller.clock.nowMs()
    const id = await newRouter('gate', { cost: null, isTunnelerEnabled: false })
    const detail = await shown(root, `${edgeRouters}/${id}`)
    const { enrollmentToken, enrollmentJwt, enrollmentExpiresAt } = detail
    const expiresAt = new Date(nowMs + 90 * minute).toISOString()
    expect(enrollmentToken).toMatch(uuid)
    expect(detail).toMatchObject({
      enrollmentCreatedAt: new Date(nowMs).toISOString(),
      enrollmentExpiresAt: expiresAt,
      isVerified: false,
    })
    expect(await controller.parts.jwt.verify(String(enrollmentJwt))).toEqual({
      iss: 'https://localhost:1280',
      sub: id,
      aud: [''],
      exp: Math.floor(Date.parse(String(enrollmentExpiresAt)) / 1000),
      jti: enrollmentToken,
      em: 'erott',
      ctrls: ['tls:localhost:1380', 'tls:outside.example:443'],
    })
    const [enrollment] = await listed(
      root,
      `${management}/enrollments?filter=edgeRouter%3D%22${id}%22`,
    )
    expect(enrollment).toMatchObject({
      method: 'erott',
      token: enrollmentToken,
      jwt: enrollmentJwt,
      expiresAt,
      edgeRouterId: id,
      edgeRouter: { entity: 'edge-routers', id, name: 'gate' },
      ca: null,
    })
    expect(enrollment).not.toHaveProperty('identity')
  })

  test('accepts a listener without link groups: with an empty list or null', async () => {
    const ctrlChanListeners = { 'tls:one:6262': null, 'tls:two:6262': [], 'tls:three:6262': ['a'] }
    const id = await newRouter('listening', { ctrlChanListeners })
    const known = { ...ctrlChanListeners, 'tls:one:6262': [] }
    expect(await shown(root, `${edgeRouters}/${id}`)).toMatchObject({ ctrlChanListeners: known })
    const patch = { ctrlChanListeners: { 'tls:four:6262': null } }
    expect((await root.call('PATCH', `${edgeRouters}/${id}`, patch)).status).toBe(200)
    expect(await shown(root, `${edgeRouters}/${id}`)).toMatchObject({
      ctrlChanListeners: { 'tls:four:6262': [] },
    })
  })

  test('is created in one log entry together with its enrollment', async () => {
    const before = controller.cluster.proposals.length
    await newRouter('one entry')
    expect(controller.cluster.proposals.length).toBe(before + 1)
  })

  test('shows an unset field as null or as empty, or omits it, as OpenZiti does', async () => {
    const id = await newRouter('fields')
    const { enrollmentToken, enrollmentJwt, enrollmentCreatedAt, enrollmentExpiresAt, ...rest } =
      await shown(root, `${edgeRouters}/${id}`)
    const { createdAt, updatedAt, ...detail } = rest
    expect(detail).toEqual({
      _links: {
        self: { href: `./edge-routers/${id}` },
        'edge-router-policies': { href: `./edge-routers/${id}/edge-router-policies` },
      },
      id,
      name: 'fields',
      cost: 0,
      noTraversal: false,
      disabled: false,
      configs: null,
      allowedNames: [],
      certificateNames: [],
      interfaces: null,
      isVerified: false,
      isOnline: false,
      onlineSince: null,
      offlineSince: null,
      isTunnelerEnabled: false,
      roleAttributes: null,
      tags: {},
      certPem: null,
      unverifiedCertPem: null,
      unverifiedFingerprint: null,
      hostname: '',
      supportedProtocols: {},
      syncStatus: 'SYNC_UNKNOWN',
      appData: {},
      capabilities: [],
      capabilitiesMask: 0,
      versionInfo: { arch: '', buildDate: '', os: '', revision: '', version: '' },
    })
  })

  test('accepts all writable fields, and an empty value clears them', async () => {
    const body = {
      appData: { zone: 'a' },
      cost: 65_535,
      ctrlChanListeners: { 'tls:ctrl:6262': ['default'] },
      noTraversal: true,
      disabled: true,
      roleAttributes: ['b', 'a'],
      tags: { t: 1 },
    }
    const id = await newRouter('said', body)
    const url = `${edgeRouters}/${id}`
    expect(await shown(root, url)).toMatchObject({ ...body, roleAttributes: ['a', 'b'] })
    const cleared = await root.call('PATCH', url, { ctrlChanListeners: {}, appData: {} })
    expect(cleared.status).toBe(200)
    const detail = await shown(root, url)
    expect(detail).not.toHaveProperty('ctrlChanListeners')
    expect(detail).toHaveProperty('appData', {})
    expect(detail).toMatchObject({ cost: 65_535, noTraversal: true })
  })

  test.each([
    ['name', {}],
    ['name', { name: '' }],
    ['cost', { name: 'refused', cost: 65_536 }],
    ['roleAttributes', { name: 'refused', roleAttributes: ['#a'] }],
    ['ctrlChanListeners.a', { name: 'refused', ctrlChanListeners: { a: 'x' } }],
  ])('is refused because of an invalid %s: %j', async (field, body) => {
    const reply = await root.call('POST', edgeRouters, body)
    expect(reply.status, reply.text).toBe(400)
    expect(reply.body.error).toMatchObject({ code: 'COULD_NOT_VALIDATE', cause: { field } })
  })

  test('ignores fields that are set only by an enrollment', async () => {
    const forged = { isVerified: true, fingerprint: 'ab', certPem: 'x', isEdge: false }
    const reply = await root.call('POST', edgeRouters, { name: 'forged', ...forged })
    expect(reply.body.meta?.ignoredFields).toEqual(Object.keys(forged))
    const { id } = reply.body.data as { id: string }
    expect(await shown(root, `${edgeRouters}/${id}`)).toMatchObject({
      isVerified: false,
      certPem: null,
    })
  })
})

describe.each(['edge-routers', 'routers', 'transit-routers'])(
  'the configs of a router at the path %s',
  (collection) => {
    const url = `${management}/${collection}`
    const newConfig = (name: string, configTypeId: string, data: object): Promise<string> =>
      made(root, `${management}/configs`, { name: `${collection} ${name}`, configTypeId, data })

    test('must be of a type that targets routers, with at most one per type, and can be removed with an empty list', async () => {
      const link = await newConfig('link', 'router.link.v1', {})
      const again = await newConfig('again', 'router.link.v1', {})
      const host = await newConfig('host', 'proxy.v1', { port: 1, protocols: ['tcp'] })
      const name = `${collection} configured`
      const id = await made(root, url, { name, configs: [link] })
      expect(await shown(root, `${url}/${id}`)).toMatchObject({ configs: [link] })
      for (const configs of [[host], [link, again]]) {
        const reply = await root.call('PATCH', `${url}/${id}`, { configs })
        expect(reply.status).toBe(400)
        expect(reply.body.error?.cause).toMatchObject({ field: 'configs' })
      }
      expect((await root.call('PUT', `${url}/${id}`, { name, configs: [] })).status).toBe(200)
      expect(await shown(root, `${url}/${id}`)).toMatchObject({ configs: null })
    })
  },
)

test('the list of edge routers can be filtered by roles, and omits routers of other kinds', async () => {
  const id = await newRouter('filtered', { roleAttributes: ['north'] })
  await made(root, `${management}/routers`, { name: 'not edge' })
  const north = await listed(root, `${edgeRouters}?roleFilter=%23north`)
  expect(north.map((router) => router['id'])).toEqual([id])
  const all = await listed(root, `${edgeRouters}?limit=500`)
  expect(all.map(({ name }) => name)).not.toContain('not edge')
  const none = await listed(root, `${edgeRouters}?filter=online%20or%20isVerified%20or%20connected`)
  expect(none).toEqual([])
})

describe('an edge router with an enabled tunneler', () => {
  const identityUrl = (id: string): string => `${management}/identities/${id}`

  test('has an identity with the type Router, which cannot be created in another way', async () => {
    const id = await newRouter('tunneler', { isTunnelerEnabled: true })
    expect(await shown(root, identityUrl(id))).toMatchObject({
      name: 'tunneler',
      typeId: 'Router',
      isAdmin: false,
      enrollment: {},
    })
    expect(await shown(root, `${management}/edge-router-policies/${id}`)).toMatchObject({
      name: `edge-router-${id}-system`,
      isSystem: true,
    })
    const policies = await listed(root, `${edgeRouters}/${id}/edge-router-policies`)
    expect(policies.map((policy) => policy['id'])).toEqual([id])
    const body = { name: 'tunneler', isAdmin: false }
    const put = (type: string) => root.call('PUT', identityUrl(id), { ...body, type })
    expect((await put('Router')).status).toBe(200)
    const refused = await put('Device')
    expect(refused.body.error?.cause).toMatchObject({
      field: 'type',
      reason: 'may not change type of router identities',
    })
    const other = await newIdentity(root, 'no router')
    const turned = await root.call('PATCH', identityUrl(other), { type: 'Router' })
    expect(turned.status).toBe(400)
    expect(turned.body.error?.cause).toMatchObject({ reason: 'may not change type to router' })
    const created = await root.call('POST', `${management}/identities`, { ...body, type: 'Router' })
    expect(created.body.error?.cause).toMatchObject({
      field: 'type',
      reason: 'may not create identities with given typeId',
    })
  })

  test('is refused if an identity has the same name, and the refused request creates no enrollment', async () => {
    await newIdentity(root, 'taken by one')
    const before = controller.machine.count('enrollment')
    const reply = await root.call('POST', edgeRouters, {
      name: 'taken by one',
      isTunnelerEnabled: true,
    })
    expect(reply.status).toBe(400)
    expect(reply.body.error?.cause).toMatchObject({
      field: 'name',
      reason: `duplicate value 'taken by one' in unique index on identities store`,
    })
    expect(controller.machine.count('enrollment')).toBe(before)
  })

  test('is deleted together with its identity, policy, terminators and enrollment', async () => {
    const id = await newRouter('going', { isTunnelerEnabled: true })
    const service = await newService(root, 'hosted there')
    const terminator = await made(root, `${management}/terminators`, {
      service,
      router: id,
      binding: 'transport',
      address: 'tcp:host:80',
    })
    expect((await root.call('DELETE', identityUrl(id))).body.error?.code).toBe(
      'ENTITY_CAN_NOT_BE_DELETED',
    )
    expect((await root.call('DELETE', `${edgeRouters}/${id}`)).status).toBe(200)
    const gone = [
      `identities/${id}`,
      `edge-router-policies/${id}`,
      `terminators/${terminator}`,
      `edge-routers/${id}`,
    ]
    for (const path of gone) {
      expect((await root.get(`${management}/${path}`)).status, path).toBe(404)
    }
    expect(controller.machine.findAll('enrollment', 'edgeRouterId', id)).toEqual([])
  })
})

describe('The re-enrollment of an edge router', () => {
  test('requires a new enrollment with a new token, invalidates every earlier token, and keeps the role attributes and the cost', async () => {
    const id = await newRouter('again', { roleAttributes: ['x'], cost: 3 })
    const url = `${edgeRouters}/${id}`
    const tokens = [(await shown(root, url))['enrollmentToken']]
    for (let times = 0; times < 2; times += 1) {
      expect((await root.call('POST', `${url}/re-enroll`)).status).toBe(200)
      const detail = await shown(root, url)
      expect(tokens).not.toContain(detail['enrollmentToken'])
      tokens.push(detail['enrollmentToken'])
      expect(claimsOf(detail['enrollmentJwt'])).toMatchObject({
        jti: detail['enrollmentToken'],
        sub: id,
      })
      expect(detail).toMatchObject({ roleAttributes: ['x'], cost: 3, isVerified: false })
      expect(controller.machine.findAll('enrollment', 'edgeRouterId', id)).toHaveLength(1)
    }
  })

  test('returns 404 for an unknown router and for a router that is not an edge router', async () => {
    const transit = await made(root, `${management}/transit-routers`, { name: 'transit only' })
    for (const id of ['nowhere', transit]) {
      expect((await root.call('POST', `${edgeRouters}/${id}/re-enroll`)).status).toBe(404)
    }
  })
})

describe.each(['routers', 'transit-routers'])('the API path /%s', (collection) => {
  const url = `${management}/${collection}`
  const other = collection === 'routers' ? 'transit-routers' : 'routers'

  test('creates routers that enroll by the method trott; they are shown at /routers and at /transit-routers', async () => {
    const body = { name: `${collection} one`, cost: 5, noTraversal: true, disabled: true }
    const id = await made(root, url, body)
    for (const path of [collection, other]) {
      const detail = await shown(root, `${management}/${path}/${id}`)
      expect(detail).toMatchObject({
        ...body,
        _links: { self: { href: `./${path}/${id}` } },
        isVerified: false,
        isOnline: false,
        fingerprint: null,
        unverifiedCertPem: null,
        unverifiedFingerprint: null,
        interfaces: null,
      })
      expect(detail['enrollmentToken']).toMatch(uuid)
      expect(claimsOf(detail['enrollmentJwt'])).toMatchObject({ em: 'trott', sub: id })
    }
    const enrollments = await listed(root, `${management}/enrollments?limit=500`)
    expect(enrollments).toContainEqual(
      expect.objectContaining({
        transitRouterId: id,
        transitRouter: expect.objectContaining({ entity: 'transit-routers', id }),
      }),
    )
    expect((await root.get(`${edgeRouters}/${id}`)).status).toBe(404)
  })

  test('patches, replaces and deletes a router that was created at this path', async () => {
    const id = await made(root, url, { name: `${collection} two`, cost: 5 })
    const patch = await root.call('PATCH', `${url}/${id}`, { noTraversal: true, disabled: true })
    expect(patch.status).toBe(200)
    expect(await shown(root, `${url}/${id}`)).toMatchObject({
      cost: 5,
      noTraversal: true,
      disabled: true,
    })
    expect((await root.call('PUT', `${url}/${id}`, { name: `${collection} 2` })).status).toBe(200)
    const replaced = await shown(root, `${url}/${id}`)
    expect(replaced).toMatchObject({ name: `${collection} 2`, cost: 0, noTraversal: false })
    expect(replaced['enrollmentToken']).toMatch(uuid)
    expect((await root.call('DELETE', `${url}/${id}`)).status).toBe(200)
    expect(controller.machine.findAll('enrollment', 'transitRouterId', id)).toEqual([])
  })

  test('lists every router; routers of other kinds are shown as verified, without a token, and cannot be changed', async () => {
    const edge = await newRouter(`${collection} edge`)
    const core = `${collection}-core`
    const body = { id: core, name: core, cost: 0, noTraversal: false }
    await made(root, `${fabric}/routers`, body)
    const all = await listed(root, `${url}?limit=500`)
    for (const id of [edge, core]) {
      const row = all.find((router) => router['id'] === id)
      expect(row).toMatchObject({ isVerified: true })
      expect(row).not.toHaveProperty('enrollmentToken')
      for (const [method, change] of [
        ['PUT', { name: 'changed' }],
        ['PATCH', { cost: 2 }],
      ] as const) {
        const reply = await root.call(method, `${url}/${id}`, change)
        expect(reply.status, reply.text).toBe(409)
        expect(reply.body.error?.code).toBe('CAN_NOT_UPDATE_ROUTER')
      }
    }
  })
})

describe('the fabric API', () => {
  const routers = `${fabric}/routers`

  test('shows the interfaces of a connected router in its record and in the identity of its tunneler, and the addresses of its link listeners', async () => {
    const id = await made(root, `${management}/edge-routers`, {
      name: 'with interfaces',
      isTunnelerEnabled: true,
    })
    const lan = { name: 'eth0', hardwareAddress: '02:00:00:00:00:01', mtu: 1500, index: 2 }
    const linkListeners = [{ address: 'tls:lan.test:6000', protocol: 'tls' }]
    const before = controller.machine.routers
    controller.machine.routers = {
      ...noRouterStatuses,
      of: (other) =>
        other === id
          ? {
              hostname: 'lan.test',
              protocols: {},
              version: { version: 'v1', revision: '', buildDate: '', os: '', arch: '' },
              capabilities: [],
              linkListeners,
              interfaces: [{ ...lan, flags: 1 + 2 + 16, addresses: ['10.0.0.2/24'] }],
            }
          : null,
    }
    onTestFinished(() => {
      controller.machine.routers = before
    })
    const interfaces = [
      {
        ...lan,
        addresses: ['10.0.0.2/24'],
        isBroadcast: true,
        isLoopback: false,
        isMulticast: true,
        isRunning: false,
        isUp: true,
      },
    ]
    const inFabric = await shown(root, `${routers}/${id}`)
    expect(inFabric).toMatchObject({ interfaces, listenerAddresses: linkListeners })
    for (const collection of ['edge-routers', 'identities']) {
      expect(await shown(root, `${management}/${collection}/${id}`)).toMatchObject({ interfaces })
    }
  })

  test('creates routers with the given id', async () => {
    const body = {
      id: 'core.1',
      name: 'core 1',
      cost: 1,
      noTraversal: false,
      fingerprint: 'AB:cd:01',
      ctrlChanListeners: { 'tls:a:1': [] },
    }
    expect(await made(root, routers, body)).toBe('core.1')
    expect(await shown(root, `${routers}/core.1`)).toMatchObject({
      _links: { terminators: { href: './routers/core.1/terminators' } },
      fingerprint: 'abcd01',
      connected: false,
      listenerAddresses: null,
      interfaces: null,
      ctrlChanListeners: { 'tls:a:1': [] },
    })
    const again = await root.call('POST', routers, { ...body, name: 'core 1b', fingerprint: '' })
    expect(again.body.error?.cause).toMatchObject({ field: 'id', reason: 'id must be unique' })
    const same = await root.call('POST', routers, { ...body, id: 'core.2', name: 'core 2' })
    expect(same.body.error?.cause).toMatchObject({ field: 'fingerprint' })
  })

  test.each([
    ['id', { name: 'n', cost: 0, noTraversal: false }],
    ['id', { id: 'a/b', name: 'n', cost: 0, noTraversal: false }],
    ['id', { id: 'x'.repeat(129), name: 'n', cost: 0, noTraversal: false }],
    ['cost', { id: 'n', name: 'n', noTraversal: false }],
    ['noTraversal', { id: 'n', name: 'n', cost: 0 }],
    ['fingerprint', { id: 'n', name: 'n', cost: 0, noTraversal: true, fingerprint: 'no hex' }],
  ])('refuses a router because of its %s: %j', async (field, body) => {
    const reply = await root.call('POST', routers, body)
    expect(reply.status, reply.text).toBe(400)
    expect(reply.body.error?.cause).toMatchObject({ field })
  })

  test('replaces a router and keeps its fingerprint if the request contains none', async () => {
    const body = { name: 'core 9', cost: 1, noTraversal: false }
    await made(root, routers, { id: 'core.9', ...body, fingerprint: '0909' })
    expect((await root.call('PUT', `${routers}/core.9`, { ...body, cost: 2 })).status).toBe(200)
    expect(await shown(root, `${routers}/core.9`)).toMatchObject({ cost: 2, fingerprint: '0909' })
    await root.call('PATCH', `${routers}/core.9`, { fingerprint: '' })
    expect(await shown(root, `${routers}/core.9`)).toMatchObject({ cost: 2, fingerprint: null })
    expect((await root.call('DELETE', `${routers}/core.9`)).status).toBe(200)
    expect((await root.get(`${routers}/core.9`)).status).toBe(404)
  })

  test('creates services that only the fabric API shows', async () => {
    const services = `${fabric}/services`
    const id = await made(root, services, { name: 'inner', maxIdleTimeMillis: 7 })
    expect(await shown(root, `${services}/${id}`)).toMatchObject({
      name: 'inner',
      terminatorStrategy: 'smartrouting',
      maxIdleTimeMillis: 7,
    })
    expect((await root.get(`${management}/services/${id}`)).status).toBe(404)
    const outer = await newService(root, 'outer')
    const names = (await listed(root, `${services}?limit=500`)).map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['inner', 'outer']))
    const edge = await listed(root, `${management}/services?limit=500`)
    expect(edge.map(({ name }) => name)).not.toContain('inner')
    const clash = await root.call('POST', services, { name: 'outer' })
    expect(clash.body.error?.cause).toMatchObject({ field: 'name', reason: 'name must be unique' })
    expect((await root.call('PATCH', `${services}/${outer}`, { name: 'renamed' })).status).toBe(200)
    expect(await shown(root, `${management}/services/${outer}`)).toMatchObject({
      name: 'renamed',
      encryptionRequired: true,
    })
    expect((await root.call('DELETE', `${services}/${id}`)).status).toBe(200)
  })

  test('shows no links and circuits before a router is connected', async () => {
    for (const kind of ['links', 'circuits']) {
      const list = await root.get(`${fabric}/${kind}?limit=9999&offset=-4`)
      expect(list.body.data).toEqual([])
      expect(list.body.meta?.pagination).toEqual({ limit: 500, offset: 0, totalCount: 0 })
      expect((await root.get(`${fabric}/${kind}/x`)).status).toBe(404)
      expect((await root.call('DELETE', `${fabric}/${kind}/x`)).status).toBe(404)
    }
    expect((await root.call('PATCH', `${fabric}/links/x`, { down: true })).status).toBe(404)
    expect((await root.call('PATCH', `${fabric}/links/x`, { down: 'yes' })).status).toBe(400)
  })

  test('is not accessible without a session or to an identity without permissions', async () => {
    const alice = new CallerOf(controller)
    alice.token = controller.openSession('alice-id')
    for (const kind of ['routers', 'services', 'terminators', 'links', 'circuits']) {
      expect((await alice.get(`${fabric}/${kind}`)).status, kind).toBe(401)
      expect((await new CallerOf(controller).get(`${fabric}/${kind}`)).status, kind).toBe(401)
    }
  })
})
