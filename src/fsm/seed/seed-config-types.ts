import type { JsonObject } from '../../lib/text/canonical-json.ts'

/**
 * A config type that every new cluster contains. After the creation of the cluster it is an
 * ordinary record.
 */
interface SeededConfigType {
  readonly id: string
  readonly name: string
  readonly target: 'service' | 'router'
  readonly schema: JsonObject
}

// The schemas have the same structure as in OpenZiti. OpenZiti's console generates its forms from
// the positions of `definitions`, `$ref` and `allOf`. If `type: array` replaced them, the console
// would insert an empty list that cannot be saved.

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const
const transport = { type: 'string', enum: ['tcp', 'udp'] } as const
/** Durations in the format of Go: `1h30m`, `1.5s`. */
const goDuration = '^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$'

function integer(minimum: number, maximum: number): JsonObject {
  return { type: 'integer', minimum, maximum }
}

function atLeast(minimum: number): JsonObject {
  return { type: 'integer', minimum }
}

function defined(name: string): JsonObject {
  return { $ref: `#/definitions/${name}` }
}

function listOf(items: JsonObject): JsonObject {
  return { type: 'array', items }
}

/** Schema of a list without duplicates and with at least one element. */
function setOf(name: string): JsonObject {
  return { allOf: [defined('inhabitedSet'), { items: defined(name) }] }
}

function closed(properties: JsonObject, rest: JsonObject = {}): JsonObject {
  return { type: 'object', additionalProperties: false, properties, ...rest }
}

function rootSchema(id: string, schema: JsonObject): JsonObject {
  return { $id: id, ...schema }
}

const edge = 'http://edge.openziti.org/schemas/'
const netfoundry = 'https://netfoundry.io/schemas/'
const hostSchemas = 'http://ziti-edge.netfoundry.io/schemas/'

const int16 = integer(0, 65_535)
/**
 * Host names, addresses, CIDRs and `*.` wildcards. The `format` only documents this; controllers do
 * not validate it.
 */
const address = { type: 'string', format: 'idn-hostname', not: { pattern: '^$' } } as const

const healthCheckDefinitions = {
  /** The pattern is not anchored: clients know it from OpenZiti, where it is not anchored. */
  duration: { type: 'string', pattern: '[0-9]+(h|m|s|ms)' },
  method: { type: 'string', enum: ['GET', 'POST', 'PUT', 'PATCH'] },
  action: closed(
    {
      trigger: { type: 'string', enum: ['fail', 'pass', 'change'] },
      action: {
        type: 'string',
        pattern: '(mark (un)?healthy|increase cost [0-9]+|decrease cost [0-9]+|send event)',
      },
      consecutiveEvents: int16,
      duration: defined('duration'),
    },
    { required: ['trigger', 'action'] },
  ),
  actionList: { ...listOf(defined('action')), minItems: 1, maxItems: 20 },
  portCheck: closed(
    {
      interval: defined('duration'),
      timeout: defined('duration'),
      address: text,
      actions: defined('actionList'),
    },
    { required: ['interval', 'timeout', 'address'] },
  ),
  httpCheck: closed(
    {
      url: text,
      method: defined('method'),
      body: text,
      interval: defined('duration'),
      timeout: defined('duration'),
      expectStatus: integer(100, 599),
      expectInBody: text,
      actions: defined('actionList'),
    },
    { required: ['interval', 'timeout', 'url'] },
  ),
  portCheckList: listOf(defined('portCheck')),
  httpCheckList: listOf(defined('httpCheck')),
} as const

const healthChecks = {
  portChecks: defined('portCheckList'),
  httpChecks: defined('httpCheckList'),
} as const

const tunnelDefinitions = {
  dialAddress: address,
  listenAddress: address,
  inhabitedSet: { type: 'array', minItems: 1, uniqueItems: true },
  portNumber: int16,
  portRange: closed(
    { low: defined('portNumber'), high: defined('portNumber') },
    { required: ['low', 'high'] },
  ),
  protocolName: transport,
  timeoutSeconds: integer(0, 2_147_483_647),
  proxyType: { type: 'string', enum: ['http'] },
  proxyConfiguration: {
    type: 'object',
    properties: { type: defined('proxyType'), address: text },
    required: ['type', 'address'],
  },
  ipv4AddressTranslation: translationOf('ipv4', 32),
  ipv6AddressTranslation: translationOf('ipv6', 128),
  /**
   * A value needs `from` or `to`, which distinguish the two formats. Without these members, it
   * would match both branches of `oneOf` and be refused.
   */
  addressTranslation: {
    oneOf: [defined('ipv4AddressTranslation'), defined('ipv6AddressTranslation')],
  },
} as const

function translationOf(format: 'ipv4' | 'ipv6', bits: number): JsonObject {
  const ip = { type: 'string', format }
  return closed({ from: ip, to: ip, prefixLength: integer(0, bits) })
}

const tunnelerClient = closed({ hostname: text, port: int16 }, { required: ['hostname', 'port'] })

const tunnelerServer = closed(
  {
    hostname: text,
    port: int16,
    protocol: { type: ['string', 'null'], enum: ['tcp', 'udp'] },
    ...healthChecks,
  },
  { definitions: healthCheckDefinitions, required: ['hostname', 'port'] },
)

const intercept = closed(
  {
    protocols: setOf('protocolName'),
    addresses: setOf('listenAddress'),
    portRanges: setOf('portRange'),
    dialOptions: closed({
      identity: text,
      connectTimeoutSeconds: defined('timeoutSeconds'),
    }),
    sourceIp: text,
    allowedSourceAddresses: setOf('listenAddress'),
  },
  { definitions: tunnelDefinitions, required: ['protocols', 'addresses', 'portRanges'] },
)

const listenOptions = closed({
  connectTimeoutSeconds: { ...defined('timeoutSeconds'), deprecated: true },
  connectTimeout: defined('duration'),
  maxConnections: atLeast(1),
  identity: text,
  bindUsingEdgeIdentity: flag,
  cost: int16,
  precedence: { type: 'string', enum: ['default', 'required', 'failed'] },
})

/**
 * If the `forward…` flag is true, the list of allowed values is required; otherwise, the plain
 * field is required.
 */
function forwarded(forward: string, allowed: string, plain: string): JsonObject {
  return {
    if: { properties: { [forward]: { const: true } }, required: [forward] },
    then: { required: [allowed] },
    else: { required: [plain] },
  }
}

const onlyTrue = { type: 'boolean', enum: [true] } as const

const terminator = {
  protocol: defined('protocolName'),
  forwardProtocol: onlyTrue,
  allowedProtocols: setOf('protocolName'),
  address: defined('dialAddress'),
  forwardAddress: onlyTrue,
  allowedAddresses: setOf('listenAddress'),
  forwardAddressTranslations: setOf('addressTranslation'),
  port: defined('portNumber'),
  forwardPort: onlyTrue,
  allowedPortRanges: setOf('portRange'),
  allowedSourceAddresses: setOf('listenAddress'),
  listenOptions,
  proxy: defined('proxyConfiguration'),
  ...healthChecks,
} as const

const host = closed(terminator, {
  allOf: [
    forwarded('forwardProtocol', 'allowedProtocols', 'protocol'),
    forwarded('forwardAddress', 'allowedAddresses', 'address'),
    forwarded('forwardPort', 'allowedPortRanges', 'port'),
  ],
})
const hostDefinitions = { ...healthCheckDefinitions, ...tunnelDefinitions }
const terminatorList = { ...listOf(defined('terminator')), minItems: 1 }

const hosts = closed(
  { terminators: defined('terminatorList') },
  {
    definitions: { ...hostDefinitions, terminator: host, terminatorList },
    required: ['terminators'],
  },
)

const interfaces = closed({ interfaces: listOf(text) }, { required: ['interfaces'] })

const proxied = closed(
  {
    port: { type: 'number', minimum: 1, maximum: 65_535 },
    protocols: { ...listOf(defined('protocol')), minItems: 1 },
    binding: text,
  },
  { definitions: { protocol: transport }, required: ['port', 'protocols'] },
)

const binding = { type: 'string', minLength: 1, default: 'transport' } as const

const routerLinkDefinitions = {
  duration: { type: 'string', pattern: goDuration },
  groups: { oneOf: [text, listOf(text)] },
  channelOptions: closed({
    outQueueSize: atLeast(0),
    maxQueuedConnects: integer(0, 5000),
    maxOutstandingConnects: integer(1, 1000),
    connectTimeout: defined('duration'),
    writeTimeout: defined('duration'),
  }),
  backoff: closed({
    retryBackoffFactor: { type: 'number', minimum: 1, maximum: 100 },
    minRetryInterval: defined('duration'),
    maxRetryInterval: defined('duration'),
  }),
  listener: closed(
    {
      bind: { type: 'string', minLength: 1 },
      binding,
      advertise: text,
      bindInterface: text,
      groups: defined('groups'),
      options: defined('channelOptions'),
    },
    { required: ['bind'] },
  ),
  dialer: closed({
    binding,
    maxDefaultConnections: integer(1, 100),
    maxAckConnections: integer(0, 100),
    startupDelay: defined('duration'),
    bindInterface: text,
    groups: defined('groups'),
    healthyDialBackoff: defined('backoff'),
    unhealthyDialBackoff: defined('backoff'),
    options: defined('channelOptions'),
  }),
  heartbeats: closed({
    sendInterval: defined('duration'),
    checkInterval: defined('duration'),
    closeUnresponsiveTimeout: defined('duration'),
  }),
} as const

const routerLink = closed(
  {
    listeners: listOf(defined('listener')),
    dialers: listOf(defined('dialer')),
    heartbeats: defined('heartbeats'),
    payloadSenderQueueSize: atLeast(1),
    ackSenderQueueSize: atLeast(1),
    gcMode: { type: 'string', enum: ['preserve', 'orphaned', 'changed'], default: 'preserve' },
  },
  { definitions: routerLinkDefinitions },
)

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
    schema: rootSchema(`${hostSchemas}host.v1.schema.json`, {
      ...host,
      definitions: hostDefinitions,
    }),
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
