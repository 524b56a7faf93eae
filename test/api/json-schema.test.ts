import { describe, expect, test } from 'vitest'
import { dataFault, schemaFault } from '../../src/api/schemas/json-schema.ts'
import { seededConfigTypes } from '../../src/fsm/seed/seed-config-types.ts'
import type { Json, JsonObject } from '../../src/lib/text/canonical-json.ts'

describe('the JSON schema of a config type', () => {
  test.each([
    {},
    { type: 'object' },
    { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object' },
    { $schema: 'http://json-schema.org/schema#', type: 'object' },
    { $id: 'http://x/same', type: 'object', definitions: { a: { type: 'string' } } },
    { $id: 'http://x/same', type: 'object', properties: { a: { format: 'idn-hostname' } } },
    { type: 'object', if: { required: ['a'] }, then: { required: ['b'] } },
    { type: 'object', properties: { a: { pattern: '\\-[a-z]\\_' } } },
  ] as JsonObject[])('is accepted if it is usable: %j', (schema) => {
    expect(schemaFault(schema)).toBeNull()
  })

  test.each([
    { type: 'array' },
    { properties: {} },
    { type: ['object'] },
    { type: 'object', properties: { a: { type: 'text' } } },
    { type: 'object', required: 'a' },
    { type: 'object', properties: { a: { $ref: 'http://elsewhere/schema' } } },
    { type: 'object', properties: { a: { $ref: '#/definitions/none' } } },
    { type: 'object', properties: { a: { pattern: '(' } } },
    { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object' },
    { $schema: 7, type: 'object' },
    { $async: true, type: 'object', required: ['a'] },
    { type: 'object', properties: { a: { $async: true, type: 'string' } } },
  ] as JsonObject[])(
    'is refused with an error that names the field schema if it is not a usable schema: %j',
    (schema) => {
      const fault = schemaFault(schema)
      expect(fault?.field).toBe('schema')
      expect(fault?.reason).toMatch(/^schema is invalid: ./)
    },
  )
})

describe('config data', () => {
  const schema: JsonObject = {
    type: 'object',
    additionalProperties: false,
    required: ['a'],
    properties: {
      a: { type: 'integer' },
      b: { type: 'object', properties: { c: { type: 'string', format: 'ipv4' } } },
      list: { type: 'array', items: { type: 'boolean' } },
    },
  }
  test.each([
    [{}, '(root)'],
    [{ a: 1, z: 1 }, '(root)'],
    [{ a: 'x' }, 'a'],
    [{ a: 1, b: { c: 'x' } }, 'b.c'],
    [{ a: 1, list: [1] }, 'list.0'],
    [[], '(root)'],
  ] as [Json, string][])('that is %j is invalid at the field %s', (data, field) => {
    expect(dataFault(schema, data)?.field).toBe(field)
  })

  test('is accepted if it matches the schema; an empty schema accepts all data', () => {
    expect(dataFault(schema, { a: 1, b: { c: '10.0.0.1' }, list: [true] })).toBeNull()
    expect(dataFault({}, { anything: [1] })).toBeNull()
  })

  test('is refused, without a crash, if the schema recurses endlessly', () => {
    const loop: JsonObject = { type: 'object', allOf: [{ $ref: '#' }] }
    expect(dataFault(loop, {})).toMatchObject({ field: 'data' })
  })

  test('appears in an error message only up to a maximum length', () => {
    const fault = dataFault(schema, { a: 'x'.repeat(10_000) })
    expect(String(fault?.value).length).toBeLessThanOrEqual(128)
    expect(JSON.stringify(dataFault(schema, { a: ['x'.repeat(10_000)] })).length).toBeLessThan(1000)
  })
})

describe('a config type of a new cluster', () => {
  const schemaOf = (name: string): JsonObject =>
    seededConfigTypes.find((type) => type.name === name)?.schema ?? {}
  const interceptable = {
    protocols: ['tcp'],
    addresses: ['*.example.org', '10.0.0.0/8', 'db.example.org'],
    portRanges: [{ low: 80, high: 443 }],
  }
  const plainHost = { protocol: 'tcp', address: 'localhost', port: 80 }

  test.each(seededConfigTypes.map((type) => [type.name, type] as const))(
    'has a usable schema: %s',
    (_name, { schema }) => {
      expect(schemaFault(schema)).toBeNull()
      expect(Object.keys(schema).length).toBeGreaterThan(2)
    },
  )

  test.each(['host.v1', 'intercept.v1'])(
    'declares lists in the way from which OpenZiti’s console generates its input fields: %s',
    (name) => {
      const { properties, definitions } = schemaOf(name) as Readonly<Record<string, JsonObject>>
      const lists = Object.values(properties ?? {}).filter((one) => 'allOf' in (one as JsonObject))
      expect(lists.length).toBeGreaterThan(3)
      for (const list of lists as unknown as { readonly allOf: readonly JsonObject[] }[]) {
        const [whole, items] = list.allOf
        expect(whole).toEqual({ $ref: '#/definitions/inhabitedSet' })
        expect(items).toHaveProperty('items')
      }
      expect(definitions?.['inhabitedSet']).toMatchObject({ type: 'array', minItems: 1 })
      for (const one of Object.values(properties ?? {})) expect(one).not.toHaveProperty('minItems')
    },
  )

  test.each([
    ['ziti-tunneler-client.v1', { hostname: 'h', port: 80 }],
    ['ziti-tunneler-server.v1', { hostname: 'h', port: 80, protocol: 'udp' }],
    ['intercept.v1', interceptable],
    ['intercept.v1', { ...interceptable, dialOptions: { connectTimeoutSeconds: 5 } }],
    ['host.v1', plainHost],
    [
      'host.v1',
      {
        forwardProtocol: true,
        allowedProtocols: ['tcp', 'udp'],
        forwardAddress: true,
        allowedAddresses: ['10.0.0.0/8'],
        forwardPort: true,
        allowedPortRanges: [{ low: 1, high: 2 }],
        forwardAddressTranslations: [{ from: '10.0.0.0', to: '192.168.0.0', prefixLength: 24 }],
        listenOptions: { precedence: 'required', cost: 7, maxConnections: 1 },
        proxy: { type: 'http', address: 'p:1', more: 1 },
        portChecks: [
          {
            interval: '5s',
            timeout: '100ms',
            address: 'a:1',
            actions: [{ trigger: 'fail', action: 'mark unhealthy', consecutiveEvents: 2 }],
          },
        ],
        httpChecks: [{ url: 'http://x', interval: '5s', timeout: '1s', expectStatus: 200 }],
      },
    ],
    ['host.v2', { terminators: [plainHost, plainHost] }],
    ['interfaces.v1', { interfaces: [] }],
    ['proxy.v1', { port: 8080, protocols: ['tcp'] }],
    ['router.link.v1', {}],
    [
      'router.link.v1',
      {
        listeners: [
          { bind: 'tls:0.0.0.0:6000', groups: 'a', options: { connectTimeout: '1h30m' } },
        ],
        dialers: [{ groups: ['a'], healthyDialBackoff: { retryBackoffFactor: 1.5 } }],
        gcMode: 'changed',
      },
    ],
  ] as [string, Json][])('named %s accepts the data %j', (name, data) => {
    expect(dataFault(schemaOf(name), data)).toBeNull()
  })

  test('gives a readable reason if a `not` in its schema excludes a value', () => {
    const empty = dataFault(schemaOf('intercept.v1'), { ...interceptable, addresses: [''] })
    expect(empty).toMatchObject({
      field: 'addresses.0',
      reason: 'addresses.0 is invalid: must not be empty',
    })
    const other = { type: 'object', properties: { a: { not: { enum: [1] } } } }
    expect(dataFault(other, { a: 1 })?.reason).toBe('a is invalid: must not match {"enum":[1]}')
  })

  test.each([
    ['ziti-tunneler-client.v1', { hostname: 'h' }],
    ['ziti-tunneler-client.v1', { hostname: 'h', port: 65_536 }],
    ['ziti-tunneler-client.v1', { hostname: 'h', port: 1, more: 1 }],
    ['ziti-tunneler-server.v1', { hostname: 'h', port: 1, protocol: null }],
    ['intercept.v1', { ...interceptable, protocols: [] }],
    ['intercept.v1', { ...interceptable, addresses: [''] }],
    ['intercept.v1', { ...interceptable, portRanges: [{ low: 1 }] }],
    ['host.v1', { protocol: 'tcp', address: 'localhost' }],
    ['host.v1', { ...plainHost, forwardPort: false }],
    ['host.v1', { protocol: 'tcp', address: 'a', forwardPort: true }],
    ['host.v1', { ...plainHost, forwardAddressTranslations: [] }],
    ['host.v1', { ...plainHost, forwardAddressTranslations: [{}] }],
    ['host.v1', { ...plainHost, forwardAddressTranslations: [{ prefixLength: 8 }] }],
    ['host.v1', { ...plainHost, proxy: { type: 'socks', address: 'a' } }],
    ['host.v2', { terminators: [] }],
    ['host.v2', { terminators: [{ protocol: 'tcp' }] }],
    ['interfaces.v1', {}],
    ['proxy.v1', { port: 0, protocols: ['tcp'] }],
    ['router.link.v1', { listeners: [{}] }],
    ['router.link.v1', { dialers: [{ startupDelay: 'soon' }] }],
  ] as [string, Json][])('named %s refuses the data %j', (name, data) => {
    expect(dataFault(schemaOf(name), data)).not.toBeNull()
  })
})
