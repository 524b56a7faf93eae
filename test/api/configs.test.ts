import { beforeAll, describe, expect, test } from 'vitest'
import { CallerOf, client, management } from './support/caller.ts'
import { startController } from './support/controller.ts'
import { controllerForFile } from './support/for-file.ts'
import type { ProposalInput } from '../../src/ports/proposer.ts'

const { controller, root } = await controllerForFile({ schemaMsMax: 700 })

type Detail = Readonly<Record<string, unknown>>
const types = `${management}/config-types`
const configs = `${management}/configs`
const services = `${management}/services`
let serial = 0

async function created(url: string, body: object): Promise<string> {
  const reply = await root.call('POST', url, body)
  expect(reply.status, reply.text).toBe(201)
  return (reply.body.data as { id: string }).id
}

function newType(fields: object = {}): Promise<string> {
  serial += 1
  return created(types, { name: `type ${serial}`, ...fields })
}

function newConfig(configTypeId: string, data: object = {}): Promise<string> {
  serial += 1
  return created(configs, { name: `config ${serial}`, configTypeId, data })
}

async function detail(url: string): Promise<Detail> {
  const reply = await root.get(url)
  expect(reply.status, reply.text).toBe(200)
  return reply.body.data as Detail
}

const withPort = {
  type: 'object',
  properties: { port: { type: 'integer' } },
  required: ['port'],
}

describe('a config type', () => {
  test('exists in a new cluster for each of the eight built-in types of OpenZiti', async () => {
    const listed = await root.get(`${types}?limit=100`)
    const names = (listed.body.data as Detail[]).map((row) => row['name']).sort()
    expect(names).toEqual([
      'host.v1',
      'host.v2',
      'intercept.v1',
      'interfaces.v1',
      'proxy.v1',
      'router.link.v1',
      'ziti-tunneler-client.v1',
      'ziti-tunneler-server.v1',
    ])
    expect(await detail(`${types}/g7cIWbcGg`)).toMatchObject({
      name: 'intercept.v1',
      target: 'service',
      schema: { $id: 'http://edge.openziti.org/schemas/intercept.v1.config.json' },
    })
    const found = await root.get(`${types}?filter=${encodeURIComponent('target = "router"')}`)
    expect(found.body.meta?.pagination?.totalCount).toBe(1)
  })

  test('can be created with or without a schema, replaced and patched; its target cannot change', async () => {
    const id = await newType()
    expect(await detail(`${types}/${id}`)).toMatchObject({
      schema: {},
      target: 'service',
      tags: {},
    })
    const other = await newType({ schema: withPort, target: 'router', tags: { a: 1 } })
    const url = `${types}/${other}`
    const patch = await root.call('PATCH', url, { name: 'patched type', target: 'service' })
    expect(patch.body.meta?.ignoredFields).toEqual(['target'])
    expect(await detail(url)).toMatchObject({
      name: 'patched type',
      schema: withPort,
      target: 'router',
      tags: { a: 1 },
    })
    expect((await root.call('PUT', url, { name: 'replaced type' })).status).toBe(200)
    expect(await detail(url)).toMatchObject({ schema: null, target: 'router', tags: {} })
    expect((await root.call('DELETE', url)).status).toBe(200)
    expect((await root.get(url)).status).toBe(404)
  })

  test.each([
    ['name', { name: 'all' }],
    ['name', { name: '' }],
    ['name', { name: 'host.v1' }],
    ['schema', { schema: { type: 'array' } }],
    ['schema', { schema: { type: 'object', properties: { a: { type: 'text' } } } }],
    ['schema', { schema: { type: 'object', $async: true } }],
    ['schema', { schema: [] }],
    ['target', { target: 'identity' }],
  ])('is refused because of an invalid %s: %j', async (field, fields) => {
    const count = controller.machine.count('configType')
    for (const [method, url] of [
      ['POST', types],
      ['PUT', `${types}/host.v2`],
    ] as const) {
      // The target is fixed at creation, so a replacement ignores it.
      if (method === 'PUT' && field === 'target') continue
      const reply = await root.call(method, url, { name: 'refused', ...fields })
      expect(reply.status, reply.text).toBe(400)
      expect(reply.body.error?.cause?.['field']).toBe(field)
    }
    expect(controller.machine.count('configType')).toBe(count)
  })

  test('cannot be deleted while it has configs', async () => {
    const id = await newType()
    const config = await newConfig(id)
    const listed = await root.get(`${types}/${id}/configs`)
    expect((listed.body.data as Detail[]).map((row) => row['id'])).toEqual([config])
    expect((await root.get(`${types}/nope/configs`)).body.data).toEqual([])
    const held = await root.call('DELETE', `${types}/${id}`)
    expect(held.status).toBe(409)
    expect(held.body.error?.code).toBe('CAN_NOT_DELETE_REFERENCED_ENTITY')
    await root.call('DELETE', `${configs}/${config}`)
    expect((await root.call('DELETE', `${types}/${id}`)).status).toBe(200)
  })
})

describe('a config', () => {
  test('is shown with its type, and can be replaced and patched; its type cannot change', async () => {
    const type = await newType({ schema: withPort })
    const other = await newType()
    const id = await newConfig(type, { port: 1 })
    const url = `${configs}/${id}`
    expect(await detail(url)).toMatchObject({
      configTypeId: type,
      configType: { id: type, entity: 'config-types' },
      data: { port: 1 },
    })
    const patch = await root.call('PATCH', url, {
      configTypeId: other,
      type: other,
      tags: { a: 1 },
    })
    expect(patch.status, patch.text).toBe(200)
    expect(patch.body.meta?.ignoredFields).toEqual(['configTypeId', 'type'])
    expect((await root.call('PATCH', url, { data: { port: 2 } })).status).toBe(200)
    expect(await detail(url)).toMatchObject({
      configTypeId: type,
      data: { port: 2 },
      tags: { a: 1 },
    })
    const put = await root.call('PUT', url, { name: 'replaced config', data: { port: 3 } })
    expect(put.status, put.text).toBe(200)
    expect(await detail(url)).toMatchObject({ configTypeId: type, data: { port: 3 }, tags: {} })
    const filter = encodeURIComponent(`type = "${type}"`)
    expect((await root.get(`${configs}?filter=${filter}`)).body.meta?.pagination?.totalCount).toBe(
      1,
    )
    expect((await root.get(`${configs}?filter=configTypeId%20%3D%20%22x%22`)).status).toBe(400)
  })

  test.each([
    ['name', { name: null }],
    ['data', { data: null }],
    ['data', { data: [] }],
    ['data', { data: 'text' }],
    ['(root)', { data: {} }],
    ['(root)', { data: { hostname: 'h', port: 1, more: 1 } }],
    ['port', { data: { hostname: 'h', port: 'x' } }],
    ['type', { configTypeId: 'nope' }],
    ['type', { configTypeId: '' }],
    ['configTypeId', { configTypeId: null }],
  ])('is refused, and the error names the field %s, for the body %j', async (field, fields) => {
    const body = {
      name: 'refused',
      configTypeId: 'f2dd2df0-9c04-4b84-a91e-71437ac229f1',
      data: { hostname: 'h', port: 1 },
      ...fields,
    }
    const proposals = controller.cluster.proposals.length
    const reply = await root.call('POST', configs, body)
    expect(reply.status, reply.text).toBe(400)
    expect(reply.body.error?.cause?.['field']).toBe(field)
    expect(controller.cluster.proposals.length).toBe(proposals)
  })

  test('that does not exist gets the response 404, whether the request contains data to validate or not', async () => {
    for (const [method, body] of [
      ['PATCH', { data: {} }],
      ['PATCH', { name: 'x' }],
      ['PUT', { name: 'x', data: {} }],
      ['DELETE', undefined],
    ] as const) {
      expect((await root.call(method, `${configs}/nope`, body)).status, method).toBe(404)
    }
  })

  test('accepts data up to the maximum body size and refuses data that is one byte larger', async () => {
    const type = await newType({
      schema: { type: 'object', properties: { text: { type: 'string' } } },
    })
    const body = { name: 'large', configTypeId: type, data: { text: '' } }
    const room = controller.parts.limits.bodyBytesMax - JSON.stringify(body).length
    body.data.text = 'x'.repeat(room)
    const id = await created(configs, body)
    expect((await detail(`${configs}/${id}`))['data']).toEqual(body.data)
    const more = { ...body, name: 'larger' }
    expect((await root.call('POST', configs, more)).status).toBe(413)
  })

  test('is refused within a time limit if the evaluation of its schema would never end', async () => {
    const schema = { type: 'object', properties: { name: { type: 'string', pattern: '^(a+)+$' } } }
    const type = await newType({ schema })
    const bomb = { name: 'bomb', configTypeId: type, data: { name: `${'a'.repeat(50)}!` } }
    const refused = root.call('POST', configs, bomb)
    // The controller answers other requests in the meantime.
    expect((await root.get(`${types}/host.v2`)).status).toBe(200)
    const reply = await refused
    expect(reply.status).toBe(400)
    expect(reply.body.error?.cause?.['field']).toBe('data')
    await newConfig(type, { name: 'aaa' })
  })

  test('is removed from its services when it is deleted', async () => {
    const config = await newConfig('interfaces.v1', { interfaces: [] })
    const service = await created(services, {
      name: 'configured',
      encryptionRequired: true,
      configs: [config],
    })
    const using = await root.get(`${configs}/${config}/services`)
    expect((using.body.data as Detail[]).map((row) => row['id'])).toEqual([service])
    const used = await root.get(`${services}/${service}/configs`)
    expect((used.body.data as Detail[]).map((row) => row['id'])).toEqual([config])
    expect((await root.call('DELETE', `${configs}/${config}`)).status).toBe(200)
    expect((await detail(`${services}/${service}`))['configs']).toBeNull()
  })
})

describe('a config whose type changes during validation', () => {
  /** Makes an event happen between the check of a request and its log entry, this many times. */
  function disturb(times: number, disturbance: () => Promise<void>): () => void {
    const { cluster } = controller
    const propose = cluster.propose.bind(cluster)
    let left = times
    cluster.propose = async (input: ProposalInput) => {
      if (input.judgedOn !== undefined && left > 0) {
        left -= 1
        await disturbance()
      }
      return propose(input)
    }
    return () => {
      cluster.propose = propose
    }
  }

  test('is validated again by the new schema, which refuses it', async () => {
    const type = await newType({ schema: withPort })
    const restore = disturb(1, async () => {
      const schema = { ...withPort, required: ['port', 'host'] }
      expect((await root.call('PATCH', `${types}/${type}`, { schema })).status).toBe(200)
    })
    const reply = await root.call('POST', configs, {
      name: 'raced',
      configTypeId: type,
      data: { port: 1 },
    })
    restore()
    expect(reply.status, reply.text).toBe(400)
    expect(reply.body.error?.cause?.['field']).toBe('(root)')
    expect(controller.machine.find('config', 'name', 'raced')).toBeUndefined()
  })

  test('is accepted after three changes of the type if its data matches the schema, and refused if the type changes during every validation', async () => {
    const type = await newType({ schema: withPort })
    const rename = async (): Promise<void> => {
      serial += 1
      await root.call('PATCH', `${types}/${type}`, { name: `renamed ${serial}` })
    }
    const body = { name: 'again', configTypeId: type, data: { port: 1 } }
    let restore = disturb(3, rename)
    expect((await root.call('POST', configs, body)).status).toBe(201)
    restore()
    restore = disturb(100, rename)
    const reply = await root.call('POST', configs, { ...body, name: 'never' })
    restore()
    expect(reply.status).toBe(409)
    expect(reply.body.error?.code).toBe('REVISION_MOVED')
  })

  test('is refused if its type was deleted', async () => {
    const type = await newType({ schema: withPort })
    const restore = disturb(1, async () => {
      await root.call('DELETE', `${types}/${type}`)
    })
    const body = { name: 'orphan', configTypeId: type, data: { port: 1 } }
    const reply = await root.call('POST', configs, body)
    restore()
    expect(reply.status).toBe(400)
    expect(reply.body.error?.cause).toMatchObject({ field: 'type', reason: 'invalid config type' })
  })
})

test('a config is not written if the validation takes longer than the request timeout', async () => {
  const judgement = Promise.withResolvers<null>()
  const validateData = (): Promise<null> => judgement.promise
  const { schemas } = controller.parts
  const slow = await startController({ handlerTimeoutMs: 30 }, undefined, {
    schemas: { ...schemas, validateData },
  })
  try {
    const caller = new CallerOf(slow)
    caller.token = slow.openSession('admin-id')
    const proposals = slow.cluster.proposals.length
    const body = { name: 'late', configTypeId: 'host.v2', data: {} }
    const reply = await caller.call('POST', configs, body)
    expect(reply.status).toBe(503)
    expect(reply.body.error?.code).toBe('TIMEOUT')
    judgement.resolve(null)
    await new Promise((resolve) => setImmediate(resolve))
    expect(slow.cluster.proposals.length).toBe(proposals)
    expect(slow.machine.count('config')).toBe(0)
  } finally {
    await slow.close()
  }
})

describe('the services that a caller sees', () => {
  let seen: string
  let hidden: string
  const caller = (): CallerOf => new CallerOf(controller)

  beforeAll(async () => {
    const ours = await newConfig('proxy.v1', { port: 1, protocols: ['tcp'] })
    const theirs = await newConfig('interfaces.v1', { interfaces: ['eth0'] })
    const body = { encryptionRequired: true, roleAttributes: ['seen'], configs: [ours, theirs] }
    seen = await created(services, { name: 'seen', ...body })
    hidden = await created(services, { name: 'hidden', encryptionRequired: true })
    await created(`${management}/service-policies`, {
      name: 'alice sees',
      type: 'Dial',
      semantic: 'AnyOf',
      identityRoles: ['@alice-id'],
      serviceRoles: ['#seen'],
    })
  })

  async function listedBy(who: CallerOf, query = ''): Promise<Detail[]> {
    const reply = await who.get(`${client}/services${query}`)
    expect(reply.status, reply.text).toBe(200)
    return reply.body.data as Detail[]
  }

  test('are the services that the caller’s policies grant, even for administrators, and are shown with the caller’s permissions', async () => {
    const alice = caller()
    alice.token = controller.openSession('alice-id')
    const rows = await listedBy(alice)
    expect(rows).toMatchObject([
      {
        id: seen,
        permissions: ['Dial'],
        config: {},
        postureQueries: [
          {
            policyId: 'dummy dial policy: no posture checks defined',
            policyType: 'Dial',
            isPassing: true,
            postureQueries: [],
          },
        ],
      },
    ])
    expect((await alice.get(`${client}/services/${hidden}`)).status).toBe(404)
    expect((await alice.get(`${client}/services/${seen}`)).status).toBe(200)
    expect(await listedBy(root)).toEqual([])
    expect((await root.get(`${client}/services/${seen}`)).status).toBe(404)
    for (const method of ['PUT', 'PATCH', 'DELETE']) {
      const body = method === 'DELETE' ? undefined : { name: 'mine' }
      const reply = await alice.call(method, `${client}/services/${seen}`, body)
      expect(reply.status, method).toBe(401)
    }
  })

  test('contain the config data that the caller requests by id or name, in one or several parameters, or for all types', async () => {
    const alice = caller()
    alice.token = controller.openSession('alice-id')
    const proxy = { 'proxy.v1': { port: 1, protocols: ['tcp'] } }
    const interfaces = { 'interfaces.v1': { interfaces: ['eth0'] } }
    const shown = async (query: string): Promise<unknown> =>
      (await listedBy(alice, query))[0]?.['config']
    expect(await shown('?configTypes=proxy.v1')).toEqual(proxy)
    expect(await shown('?configTypes=nope')).toEqual({})
    expect(await shown('?configTypes=proxy.v1&configTypes=interfaces.v1')).toEqual({
      ...interfaces,
      ...proxy,
    })
    expect(await shown('?configTypes=proxy.v1,interfaces.v1')).toEqual({ ...interfaces, ...proxy })
    expect(await shown('?configTypes=all')).toEqual({ ...interfaces, ...proxy })
    const many = Array.from({ length: 101 }, (_, i) => `t${i}`).join(',')
    expect((await alice.get(`${client}/services?configTypes=${many}`)).status).toBe(400)
  })

  test('contain the config types requested at log-in by default; types named in the request take precedence', async () => {
    const alice = caller()
    const user = { username: 'alice', password: 'a staple of alice' }
    const reply = await alice.call('POST', `${client}/authenticate?method=password`, {
      ...user,
      configTypes: ['proxy.v1', 'nope'],
    })
    alice.token = (reply.body.data as { token: string }).token
    const given = await newConfig('proxy.v1', { port: 9, protocols: ['udp'] })
    const url = `${management}/identities/alice-id/service-configs`
    const pairs = [{ serviceId: seen, configId: given }]
    expect((await root.call('POST', url, pairs)).status).toBe(200)
    const proxy = { 'proxy.v1': { port: 9, protocols: ['udp'] } }
    expect((await listedBy(alice))[0]?.['config']).toEqual(proxy)
    const one = await alice.get(`${client}/services/${seen}`)
    expect((one.body.data as Detail)['config']).toEqual(proxy)
    expect((await listedBy(alice, '?configTypes=interfaces.v1'))[0]?.['config']).toEqual({
      'interfaces.v1': { interfaces: ['eth0'] },
    })
  })

  test('can be listed by an administrator as another identity sees them, by name or id; the detail in the management API includes no config data', async () => {
    const query = `filter=${encodeURIComponent('name = "seen"')}&configTypes=all`
    const asRoot = await root.get(`${services}?${query}`)
    expect((asRoot.body.data as Detail[])[0]).toMatchObject({
      permissions: ['Invalid'],
      config: { 'proxy.v1': { port: 1 } },
    })
    for (const name of ['alice-id', 'Alice']) {
      const asAlice = await root.get(`${services}?${query}&asIdentity=${name}`)
      expect((asAlice.body.data as Detail[])[0]).toMatchObject({
        permissions: ['Dial'],
        config: { 'proxy.v1': { port: 9 } },
      })
    }
    expect((await root.get(`${services}?asIdentity=nobody`)).status).toBe(404)
    expect((await detail(`${services}/${seen}`))['config']).toEqual({})
  })

  test.each([
    [{ configs: ['nope'] }, 404, 'NOT_FOUND'],
    [{ configs: ['two of one type'] }, 400, 'COULD_NOT_VALIDATE'],
    [{ configs: ['for routers'] }, 400, 'COULD_NOT_VALIDATE'],
  ])(
    'cannot be created or changed with configs that do not exist, share a type or are for routers: %j',
    async ({ configs: [kind] }, status, code) => {
      const proxy = { port: 1, protocols: ['tcp'] }
      const ids =
        kind === 'nope'
          ? ['nope']
          : kind === 'for routers'
            ? [await newConfig('router.link.v1')]
            : [await newConfig('proxy.v1', proxy), await newConfig('proxy.v1', proxy)]
      for (const [method, url] of [
        ['POST', services],
        ['PUT', `${services}/${hidden}`],
        ['PATCH', `${services}/${hidden}`],
      ] as const) {
        const body = { name: 'refused', encryptionRequired: true, configs: ids }
        const reply = await root.call(method, url, body)
        expect(reply.status, reply.text).toBe(status)
        expect(reply.body.error?.code).toBe(code)
        if (status === 400) expect(reply.body.error?.cause?.['field']).toBe('configs')
      }
    },
  )
})

describe('a config for interception', () => {
  const interceptV1 = 'g7cIWbcGg'
  const good = { low: 443, high: 443 }
  const prefix = 'tunnels of Flotilla do not intercept all of this: '

  /** The warnings in the responses to the creation and to a patch with the same data. */
  const warningsOf = async (name: string, more: object): Promise<unknown[]> => {
    const data = { protocols: ['tcp'], portRanges: [good], ...more }
    const made = await root.call('POST', configs, { name, configTypeId: interceptV1, data })
    const { id } = made.body.data as { id: string }
    const patched = await root.call('PATCH', `${configs}/${id}`, { data })
    return [made.body.meta?.warnings, patched.body.meta?.warnings]
  }

  test.each<[string, object, readonly string[]]>([
    [
      'a valid and an invalid address',
      { addresses: ['good.example', 'http://other.example'] },
      ['http://other.example is no address, network, name or *.domain'],
    ],
    [
      'a wide port range for a large network',
      { addresses: ['10.0.0.0/8'], portRanges: [{ low: 50_000, high: 60_000 }] },
      [
        '10.0.0.0/8: its ports and addresses need more than 1024 ports to listen on, which is possible for names and for networks of at most 16 IPv4 addresses alone',
      ],
    ],
    [
      'an address of the client’s own host and allowed source addresses',
      { addresses: ['127.0.0.1'], allowedSourceAddresses: ['10.0.0.0/8'] },
      [
        'allowedSourceAddresses is not supported: clients of this host alone are served',
        '127.0.0.1/32 has addresses of this host, of its link, or of no single host',
      ],
    ],
  ])(
    'with %s returns a warning about the parts that tunnels do not intercept',
    async (name, more, expected) => {
      const warnings = expected.map((each) => prefix + each)
      expect(await warningsOf(name, more)).toEqual([warnings, warnings])
    },
  )

  test.each<[string, object]>([
    ['an internationalized name', { addresses: ['bücher.example'] }],
    [
      'a wide port range for a name',
      { addresses: ['media.example'], portRanges: [{ low: 50_000, high: 60_000 }] },
    ],
  ])('with %s returns no warning', async (name, more) => {
    expect(await warningsOf(name, more)).toEqual([undefined, undefined])
  })

  test('with thousands of invalid addresses returns warnings about the first ones and the number of the others', async () => {
    const addresses = Array.from({ length: 4000 }, (_, at) => `http://${at}.example`)
    const data = { protocols: ['tcp'], portRanges: [good], addresses }
    const made = await root.call('POST', configs, { name: 'many', configTypeId: interceptV1, data })
    expect(made.body.meta?.warnings?.length).toBe(17)
    expect(made.body.meta?.warnings?.at(-1)).toBe(`${prefix}and 3984 more`)
  })
})
