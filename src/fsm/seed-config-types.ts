import type { JsonObject } from '../lib/canonical-json.ts'

/** A config type that every cluster begins with; an ordinary record from then on. */
export interface SeededConfigType {
  readonly id: string
  readonly name: string
  readonly target: 'service' | 'router'
  readonly schema: JsonObject
}

// Schemas are those of the public API family: clients of it read the data that fits them.

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const
const int16 = { type: 'integer', minimum: 0, maximum: 65_535 } as const
const count32 = { type: 'integer', minimum: 0, maximum: 2_147_483_647 } as const
const transport = { type: 'string', enum: ['tcp', 'udp'] } as const
/** Unanchored, as clients know it. */
const duration = { type: 'string', pattern: '[0-9]+(h|m|s|ms)' } as const
/** As Go writes spans of time: `1h30m`, `1.5s`. */
const goDuration = {
  type: 'string',
  pattern: '^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$',
} as const

function closed(properties: JsonObject, rest: JsonObject = {}): JsonObject {
  return { type: 'object', additionalProperties: false, properties, ...rest }
}

/** At least one, each once. */
function some(items: JsonObject): JsonObject {
  return { type: 'array', items, minItems: 1, uniqueItems: true }
}

function rootSchema(id: string, schema: JsonObject): JsonObject {
  return { $id: id, ...schema }
}

const edge = 'http://edge.openziti.org/schemas/'
const netfoundry = 'https://netfoundry.io/schemas/'
const hostSchemas = 'http://ziti-edge.netfoundry.io/schemas/'

/** Host names, addresses, CIDRs and `*.` wildcards: the format is a word to readers, not a rule. */
const address = { type: 'string', format: 'idn-hostname', not: { pattern: '^$' } } as const
const addresses = some(address)
const portRange = closed({ low: int16, high: int16 }, { required: ['low', 'high'] })
const portRanges = some(portRange)

const action = closed(
  {
    trigger: { type: 'string', enum: ['fail', 'pass', 'change'] },
    action: {
      type: 'string',
      pattern: '(mark (un)?healthy|increase cost [0-9]+|decrease cost [0-9]+|send event)',
    },
    consecutiveEvents: int16,
    duration,
  },
  { required: ['trigger', 'action'] },
)
const actions = { type: 'array', items: action, minItems: 1, maxItems: 20 } as const

const healthChecks = {
  portChecks: {
    type: 'array',
    items: closed(
      { interval: duration, timeout: duration, address: text, actions },
      { required: ['interval', 'timeout', 'address'] },
    ),
  },
  httpChecks: {
    type: 'array',
    items: closed(
      {
        url: text,
        method: { type: 'string', enum: ['GET', 'POST', 'PUT', 'PATCH'] },
        body: text,
        interval: duration,
        timeout: duration,
        expectStatus: { type: 'integer', minimum: 100, maximum: 599 },
        expectInBody: text,
        actions,
      },
      { required: ['url', 'interval', 'timeout'] },
    ),
  },
} as const

const tunnelerClient = closed({ hostname: text, port: int16 }, { required: ['hostname', 'port'] })

const tunnelerServer = closed(
  {
    hostname: text,
    port: int16,
    protocol: { type: ['string', 'null'], enum: ['tcp', 'udp'] },
    ...healthChecks,
  },
  { required: ['hostname', 'port'] },
)

const intercept = closed(
  {
    protocols: some(transport),
    addresses,
    portRanges,
    dialOptions: closed({ identity: text, connectTimeoutSeconds: count32 }),
    sourceIp: text,
    allowedSourceAddresses: addresses,
  },
  { required: ['protocols', 'addresses', 'portRanges'] },
)

const translation = {
  type: 'object',
  oneOf: [translationOf('ipv4', 32), translationOf('ipv6', 128)],
} as const

/** One of `from` and `to` at the least tells which family it is of. */
function translationOf(format: 'ipv4' | 'ipv6', bits: number): JsonObject {
  const ip = { type: 'string', format }
  return closed(
    { from: ip, to: ip, prefixLength: { type: 'integer', minimum: 0, maximum: bits } },
    { anyOf: [{ required: ['from'] }, { required: ['to'] }] },
  )
}

const listenOptions = closed({
  connectTimeoutSeconds: count32,
  connectTimeout: duration,
  maxConnections: { type: 'integer', minimum: 1 },
  identity: text,
  bindUsingEdgeIdentity: flag,
  cost: int16,
  precedence: { type: 'string', enum: ['default', 'required', 'failed'] },
})

const proxy = {
  type: 'object',
  properties: { type: { type: 'string', enum: ['http'] }, address: text },
  required: ['type', 'address'],
} as const

/** `forward…: true` needs the list of what may come through; else the plain field is needed. */
function forwarded(forward: string, allowed: string, plain: string): JsonObject {
  return {
    if: { properties: { [forward]: { const: true } }, required: [forward] },
    then: { required: [allowed] },
    else: { required: [plain] },
  }
}

const onlyTrue = { type: 'boolean', enum: [true] } as const

const terminator = {
  protocol: transport,
  forwardProtocol: onlyTrue,
  allowedProtocols: some(transport),
  address: text,
  forwardAddress: onlyTrue,
  allowedAddresses: addresses,
  forwardAddressTranslations: { type: 'array', items: translation },
  port: int16,
  forwardPort: onlyTrue,
  allowedPortRanges: portRanges,
  allowedSourceAddresses: addresses,
  listenOptions,
  proxy,
  ...healthChecks,
} as const

const host = closed(terminator, {
  allOf: [
    forwarded('forwardProtocol', 'allowedProtocols', 'protocol'),
    forwarded('forwardAddress', 'allowedAddresses', 'address'),
    forwarded('forwardPort', 'allowedPortRanges', 'port'),
  ],
})

const hosts = closed(
  { terminators: { type: 'array', items: host, minItems: 1 } },
  { required: ['terminators'] },
)

const interfaces = closed(
  { interfaces: { type: 'array', items: text } },
  { required: ['interfaces'] },
)

const proxied = closed(
  {
    port: { type: 'number', minimum: 1, maximum: 65_535 },
    protocols: { type: 'array', items: transport, minItems: 1 },
    binding: text,
  },
  { required: ['port', 'protocols'] },
)

const binding = { type: 'string', minLength: 1, default: 'transport' } as const
const groups = { anyOf: [text, { type: 'array', items: text }] } as const
const linkOptions = closed({
  outQueueSize: { type: 'integer', minimum: 0 },
  maxQueuedConnects: { type: 'integer', minimum: 0, maximum: 5000 },
  maxOutstandingConnects: { type: 'integer', minimum: 1, maximum: 1000 },
  connectTimeout: goDuration,
  writeTimeout: goDuration,
})
const backoff = closed({
  retryBackoffFactor: { type: 'number', minimum: 1, maximum: 100 },
  minRetryInterval: goDuration,
  maxRetryInterval: goDuration,
})

const routerLink = closed({
  listeners: {
    type: 'array',
    items: closed(
      {
        bind: { type: 'string', minLength: 1 },
        binding,
        advertise: text,
        bindInterface: text,
        groups,
        options: linkOptions,
      },
      { required: ['bind'] },
    ),
  },
  dialers: {
    type: 'array',
    items: closed({
      binding,
      maxDefaultConnections: { type: 'integer', minimum: 1, maximum: 100 },
      maxAckConnections: { type: 'integer', minimum: 0, maximum: 100 },
      startupDelay: goDuration,
      bindInterface: text,
      groups,
      healthyDialBackoff: backoff,
      unhealthyDialBackoff: backoff,
      options: linkOptions,
    }),
  },
  heartbeats: closed({
    sendInterval: goDuration,
    checkInterval: goDuration,
    closeUnresponsiveTimeout: goDuration,
  }),
  payloadSenderQueueSize: { type: 'integer', minimum: 1 },
  ackSenderQueueSize: { type: 'integer', minimum: 1 },
  gcMode: { type: 'string', enum: ['preserve', 'orphaned', 'changed'], default: 'preserve' },
})

export const seededConfigTypes: readonly SeededConfigType[] = [
  {
    id: 'f2dd2df0-9c04-4b84-a91e-71437ac229f1',
    name: 'ziti-tunneler-client.v1',
    target: 'service',
    schema: rootSchema(`${edge}ziti-tunneler-client.v1.config.json`, tunnelerClient),
  },
  {
    id: 'cea49285-6c07-42cf-9f52-09a9b115c783',
    name: 'ziti-tunneler-server.v1',
    target: 'service',
    schema: rootSchema(`${edge}ziti-tunneler-server.v1.config.json`, tunnelerServer),
  },
  {
    id: 'g7cIWbcGg',
    name: 'intercept.v1',
    target: 'service',
    schema: rootSchema(`${edge}intercept.v1.config.json`, intercept),
  },
  {
    id: 'NH5p4FpGR',
    name: 'host.v1',
    target: 'service',
    schema: rootSchema(`${hostSchemas}host.v1.schema.json`, host),
  },
  {
    id: 'host.v2',
    name: 'host.v2',
    target: 'service',
    schema: rootSchema(`${hostSchemas}host.v2.schema.json`, hosts),
  },
  {
    id: 'interfaces.v1',
    name: 'interfaces.v1',
    target: 'service',
    schema: rootSchema(`${netfoundry}interfaces.v1.config.json`, interfaces),
  },
  {
    id: 'proxy.v1',
    name: 'proxy.v1',
    target: 'service',
    schema: rootSchema(`${netfoundry}proxy.v1.config.json`, proxied),
  },
  {
    id: 'router.link.v1',
    name: 'router.link.v1',
    target: 'router',
    schema: rootSchema(`${netfoundry}router.link.v1.config.json`, routerLink),
  },
]
