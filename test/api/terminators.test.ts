import { beforeEach, describe, expect, test } from 'vitest'
import { CallerOf, client, fabric, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { listed, made, newService, shown } from './support/network.ts'

const { controller, root, sessionOf } = await controllerForFile()
const alice = sessionOf('alice-id')
let serial = 0
let service = ''
let router = ''

beforeEach(async () => {
  serial += 1
  service = await newService(root, `service ${serial}`)
  router = await made(root, `${management}/edge-routers`, { name: `router ${serial}` })
})

const terminators = `${management}/terminators`

function hosted(changes: object = {}): Promise<string> {
  const body = { service, router, binding: 'transport', address: 'tcp:host:80', ...changes }
  return made(root, terminators, body)
}

describe('a terminator', () => {
  test('is shown with its service and its router, but without its secret', async () => {
    const identitySecret = Buffer.from('kept').toString('base64')
    const id = await hosted({
      identity: 'host-1',
      identitySecret,
      cost: 4,
      precedence: 'required',
      tags: { a: 1 },
    })
    const { createdAt, updatedAt, ...detail } = await shown(root, `${terminators}/${id}`)
    expect(detail).toMatchObject({
      _links: { self: { href: `./terminators/${id}` } },
      id,
      serviceId: service,
      service: { entity: 'services', id: service },
      routerId: router,
      router: { entity: 'transit-routers', id: router, name: `router ${serial}` },
      binding: 'transport',
      address: 'tcp:host:80',
      identity: 'host-1',
      cost: 4,
      precedence: 'required',
      dynamicCost: 0,
      tags: { a: 1 },
    })
    expect(JSON.stringify(detail)).not.toContain(identitySecret)
    expect(controller.machine.get('terminator', id)).toMatchObject({
      instanceSecret: identitySecret,
    })
  })

  test.each([
    ['udp:host:53', 'udp'],
    ['tcp:host:53', 'transport'],
  ])(
    'that is created at %s with an empty binding gets the binding %s',
    async (address, binding) => {
      const id = await hosted({ address, binding: '' })
      expect(await shown(root, `${terminators}/${id}`)).toMatchObject({ binding })
      await root.call('PATCH', `${terminators}/${id}`, { binding: 'other' })
      await root.call('PATCH', `${terminators}/${id}`, { binding: '' })
      expect(await shown(root, `${terminators}/${id}`)).toMatchObject({ binding })
    },
  )

  test('keeps its service and identity; only its router, address, binding, cost and precedence can change', async () => {
    const id = await hosted({ identity: 'host-1' })
    const url = `${terminators}/${id}`
    const other = await newService(root, `other ${serial}`)
    const next = await made(root, `${management}/routers`, { name: `next ${serial}` })
    const patch = await root.call('PATCH', url, { service: other, identity: 'x', cost: 9 })
    expect(patch.status).toBe(200)
    expect(patch.body.meta?.ignoredFields).toEqual(['identity'])
    expect(await shown(root, url)).toMatchObject({
      serviceId: service,
      routerId: router,
      identity: 'host-1',
      cost: 9,
    })
    const body = { service: other, router: next, binding: 'edge', address: 'x' }
    expect((await root.call('PUT', url, { ...body, precedence: 'failed' })).status).toBe(200)
    expect(await shown(root, url)).toMatchObject({
      serviceId: service,
      routerId: next,
      binding: 'edge',
      address: 'x',
      identity: 'host-1',
      cost: 0,
      precedence: 'failed',
    })
    for (const name of ['service', 'router', 'binding', 'address']) {
      const reply = await root.call('PUT', url, { ...body, [name]: null })
      expect(reply.body.error?.cause, name).toMatchObject({ field: name })
    }
  })

  test.each([
    [404, 'service', 'nowhere'],
    [404, 'router', 'nowhere'],
    [404, 'service', ''],
    [400, 'address', ''],
    [400, 'binding', null],
    [400, 'cost', 65_536],
    [400, 'precedence', 'never'],
    [400, 'identitySecret', 'no base64!'],
  ])('is refused with status %i for %s = %j', async (status, name, value) => {
    const body = { service, router, binding: '', address: 'a', [name]: value }
    const reply = await root.call('POST', terminators, body)
    expect(reply.status, reply.text).toBe(status)
    if (status === 400) expect(reply.body.error?.cause).toMatchObject({ field: name })
  })

  test('can be filtered by its service and its router', async () => {
    const id = await hosted({ identity: 'host-1' })
    await made(root, `${management}/routers`, { name: `empty ${serial}` })
    for (const filter of [
      `service="${service}"`,
      `router="${router}" and instanceId="host-1"`,
      `service="${service}" and identity="host-1"`,
    ]) {
      const rows = await listed(root, `${terminators}?filter=${encodeURIComponent(filter)}`)
      expect(rows.map((row) => row['id'])).toEqual([id])
    }
    const [row] = await listed(root, `${management}/services/${service}/terminators`)
    expect(row).toMatchObject({ id, address: 'tcp:host:80' })
    expect(await listed(root, `${management}/services/nowhere/terminators`)).toEqual([])
    for (const path of [`services/${service}`, `routers/${router}`]) {
      const rows = await listed(root, `${fabric}/${path}/terminators`)
      expect(rows).toMatchObject([
        {
          id,
          instanceId: 'host-1',
          hostId: '',
          service: { entity: 'services', id: service },
          router: { entity: 'routers', id: router },
        },
      ])
    }
  })

  test('can be filtered by the current names of its service and its router', async () => {
    const id = await hosted()
    const found = async (filter: string): Promise<unknown[]> => {
      const url = `${terminators}?limit=500&filter=${encodeURIComponent(filter)}`
      return (await listed(root, url)).map((row) => row['id'])
    }
    expect(await found(`service.name = "service ${serial}"`)).toEqual([id])
    expect(await found(`router.name = "router ${serial}" and service.name != null`)).toEqual([id])
    expect(await found(`router.name contains "er ${serial}" and id = "${id}"`)).toEqual([id])
    expect(await found('router.name = "nowhere"')).toEqual([])
    await root.call('PATCH', `${management}/services/${service}`, { name: `renamed ${serial}` })
    expect(await found(`service.name = "service ${serial}"`)).toEqual([])
    expect(await found(`service.name = "renamed ${serial}"`)).toEqual([id])
    const ofFabric = `${fabric}/terminators?filter=${encodeURIComponent(`router.name = "router ${serial}"`)}`
    expect(await listed(root, ofFabric)).toMatchObject([{ id }])
  })

  test.each(['service.name', 'router.name desc'])(
    'cannot be sorted by %s, which is a field of another record',
    async (sort) => {
      const reply = await root.get(`${terminators}?sort=${encodeURIComponent(sort)}`)
      expect(reply.status).toBe(400)
      expect(reply.body.error?.code).toBe('INVALID_SORT_IDENTIFIER')
    },
  )
})

describe('the terminators of a service on the client API', () => {
  const url = (id: string): string => `${client}/services/${id}/terminators`

  test('are not visible to a caller who may not use the service, even if the caller is an administrator', async () => {
    await hosted()
    for (const caller of [alice, root]) {
      expect((await caller.get(url(service))).status).toBe(404)
    }
    expect((await alice.get(url('nowhere'))).status).toBe(404)
    expect((await new CallerOf(controller).get(url(service))).status).toBe(401)
  })

  test('show no address and no cost, and cannot be filtered by these fields', async () => {
    const id = await hosted({ identity: 'host-1', address: 'tcp:10.0.0.1:80' })
    await made(root, `${management}/service-policies`, {
      name: `policy ${serial}`,
      type: 'Dial',
      semantic: 'AnyOf',
      identityRoles: ['@alice-id'],
      serviceRoles: [`@${service}`],
    })
    const reply = await alice.get(`${url(service)}?limit=1`)
    expect(reply.status, reply.text).toBe(200)
    expect(reply.body.meta?.pagination).toMatchObject({ limit: 1, totalCount: 1 })
    const [row] = reply.body.data as Record<string, unknown>[]
    expect(Object.keys(row ?? {}).sort()).toEqual([
      '_links',
      'createdAt',
      'id',
      'identity',
      'routerId',
      'service',
      'serviceId',
      'tags',
      'updatedAt',
    ])
    expect(row).toMatchObject({ id, identity: 'host-1', routerId: router, serviceId: service })
    const filter = encodeURIComponent('address contains "10"')
    const probed = await alice.get(`${url(service)}?filter=${filter}`)
    expect(probed.status).toBe(400)
    expect(probed.body.error?.code).toBe('INVALID_FILTER')
  })
})

describe('a terminator of the fabric API', () => {
  test('may belong to a fabric-only service', async () => {
    const inner = await made(root, `${fabric}/services`, { name: `inner ${serial}` })
    const body = {
      service: inner,
      router,
      binding: 'edge',
      address: 'a',
      instanceId: 'i',
      hostId: 'h',
    }
    const id = await made(root, `${fabric}/terminators`, body)
    expect(await shown(root, `${fabric}/terminators/${id}`)).toMatchObject({
      serviceId: inner,
      instanceId: 'i',
      hostId: 'h',
    })
    expect((await root.get(`${terminators}/${id}`)).status).toBe(404)
    const known = await listed(root, `${terminators}?limit=500`)
    expect(known.map((row) => row['id'])).not.toContain(id)
    const edge = await root.call('POST', terminators, { ...body })
    expect(edge.status).toBe(404)
    expect((await root.call('DELETE', `${fabric}/terminators/${id}`)).status).toBe(200)
  })
})
