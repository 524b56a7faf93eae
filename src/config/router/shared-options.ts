import { isIP } from 'node:net'

import { type SchemaFields, defineIgnoredSection, defineOption } from '../engine/schema.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../engine/units.ts'
import {
  booleanType,
  choiceType,
  durationType,
  integerType,
  millisecondsType,
  numberType,
  optionalType,
  textType,
  textOrTextsType,
} from '../engine/values.ts'
import { addressType, addressListType, advertisedAddressType, cidrType } from './values.ts'

const BYTES_MAX = 1024 * 1024 * 1024

export const addressProtocols = {
  controller: ['tls'],
  link: ['tls', 'dtls'],
  edge: ['tls', 'ws', 'wss'],
  stream: ['tcp', 'tls', 'ws', 'wss', 'dtls', 'udp'],
  datagram: ['udp', 'udp4', 'udp6', 'unixgram'],
} as const

/** Whether a string ends with a colon and a valid port, after at least one other character. */
function isPort(text: string): boolean {
  if (!/^.+:[0-9]{1,5}$/.test(text)) return false
  const port = Number(text.slice(text.lastIndexOf(':') + 1))
  return port > 0 && port <= 65_535
}

/**
 * Whether the string is a name server with an IP address, which can be reached without name
 * resolution. The port is optional.
 */
function isServer(text: string): boolean {
  const place = text.replace(/^udp:\/\//, '')
  const host = isPort(place) ? place.slice(0, place.lastIndexOf(':')) : place
  return isIP(host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host) !== 0
}

/** Options of a channel; `connectTimeoutMs` and `connectTimeout` are the same option. */
export const channelOptions = {
  outQueueSize: defineOption(integerType(0, 10_000), {
    default: 4,
    why: 'Maximum messages that wait to be sent.',
    hasEffect: false,
  }),
  maxQueuedConnects: defineOption(integerType(1, 5000), {
    default: 1,
    why: 'Maximum number of accepted connections that wait for processing of their hello.',
    hasEffect: false,
  }),
  maxOutstandingConnects: defineOption(integerType(1, 1000), {
    default: 16,
    why: 'Maximum number of connections from which a hello is awaited.',
    hasEffect: false,
  }),
  connectTimeoutMs: defineOption(millisecondsType(30, MINUTE_MS), {
    default: 5000,
    why: 'Maximum time to the end of the hello: from the start of the dial, or from the end of the TLS handshake of an accepted connection.',
  }),
  connectTimeout: defineOption(optionalType(durationType(30, MINUTE_MS)), {
    default: null,
    why: 'The same limit as `connectTimeoutMs`, as a duration with a unit. If both are set, `connectTimeout` applies.',
  }),
  writeTimeout: defineOption(optionalType(durationType(1, HOUR_MS)), {
    default: null,
    why: 'Timeout for sending one message, after which the channel is closed. Absent: no timeout.',
  }),
} as const

/** Channel options for links, where payloads and acknowledgments have separate queues. */
export const linkChannelOptions = {
  ...channelOptions,
  outQueueSize: defineOption(integerType(0, 10_000), {
    default: 64,
    why: 'Maximum number of waiting messages, in addition to those that `payloadSenderQueueSize` and `ackSenderQueueSize` allow.',
  }),
} as const

/**
 * @param closeAfterMs default time without a response after which the router closes the channel.
 */
export function heartbeatOptions(closeAfterMs: number) {
  return {
    sendInterval: defineOption(durationType(100, HOUR_MS), {
      default: 10_000,
      why: 'Interval of heartbeats.',
    }),
    checkInterval: defineOption(durationType(10, HOUR_MS), {
      default: 1000,
      why: 'Interval of the check whether a heartbeat or its response is due.',
    }),
    closeUnresponsiveTimeout: defineOption(durationType(1000, DAY_MS), {
      default: closeAfterMs,
      why: 'Silence after which the channel is closed and dialed again.',
    }),
  } as const
}

/** Options of every dialer and listener, for the flow control of a circuit endpoint (xgress). */
export const flowControlOptions = {
  mtu: defineOption(integerType(0, 65_535), {
    default: 0,
    why: 'Largest payload in bytes; 0: no limit.',
  }),
  randomDrops: defineOption(booleanType(), {
    default: false,
    why: 'Drops random payloads, to test retransmission.',
  }),
  drop1InN: defineOption(integerType(1, 1_000_000), {
    default: 100,
    why: 'With randomDrops: on average, one in this number of payloads is dropped.',
  }),
  txQueueSize: defineOption(integerType(1, 100_000), {
    default: 1,
    why: 'Maximum payloads that wait to be sent; at this number, the router reads nothing more from the application.',
  }),
  txPortalStartSize: defineOption(integerType(1, BYTES_MAX), {
    default: 4 * 1024 * 1024,
    why: 'Initial limit of unacknowledged bytes (bytes in flight).',
  }),
  txPortalMinSize: defineOption(integerType(1, BYTES_MAX), {
    default: 16 * 1024,
    why: 'Lower bound of the limit of bytes in flight.',
  }),
  txPortalMaxSize: defineOption(integerType(1, BYTES_MAX), {
    default: 4 * 1024 * 1024,
    why: 'Upper bound of the limit of bytes in flight.',
  }),
  txPortalIncreaseThresh: defineOption(integerType(1, 1_000_000), {
    default: 28,
    why: 'Number of acknowledgments after which the router raises the limit of bytes in flight.',
  }),
  txPortalIncreaseScale: defineOption(numberType(0, 1000), {
    default: 1,
    why: 'At an increase, the limit of bytes in flight grows by this factor times the bytes acknowledged since the limit was last reduced.',
  }),
  txPortalRetxThresh: defineOption(integerType(1, 1_000_000), {
    default: 64,
    why: 'Number of retransmitted payloads after which the router reduces the limit of bytes in flight.',
  }),
  txPortalRetxScale: defineOption(numberType(0, 1000), {
    default: 0.75,
    why: 'Factor by which the limit of bytes in flight is multiplied when `txPortalRetxThresh` is reached.',
  }),
  txPortalDupAckThresh: defineOption(integerType(1, 1_000_000), {
    default: 64,
    why: 'Number of duplicate acknowledgments after which the router waits longer before it retransmits a payload.',
  }),
  txPortalDupAckScale: defineOption(numberType(0, 1000), {
    default: 0.9,
    why: 'Factor for the limit of bytes in flight after duplicate acknowledgments. OpenZiti routers do not use this key either.',
    hasEffect: false,
  }),
  rxBufferSize: defineOption(integerType(1, BYTES_MAX), {
    default: 4 * 1024 * 1024,
    why: 'Maximum received bytes that wait for the application.',
  }),
  retxStartMs: defineOption(millisecondsType(0, HOUR_MS), {
    default: 200,
    why: 'Time after which a payload is retransmitted, used until the first round trip has been measured.',
  }),
  retxScale: defineOption(numberType(0, 1000), {
    default: 1.5,
    why: 'A payload is retransmitted after the measured round trip times this factor, plus `retxAddMs`.',
  }),
  retxAddMs: defineOption(millisecondsType(0, HOUR_MS), {
    default: 0,
    why: 'Time that is added to the measured round trip times `retxScale`.',
  }),
  retxMaxMs: defineOption(millisecondsType(0, HOUR_MS), {
    default: 10_000,
    why: 'Maximum time until a retransmission.',
  }),
  maxRttScale: defineOption(integerType(0, 1000), {
    default: 4,
    why: 'A measured round trip counts as at most this many times the running average of earlier ones; 1 acts as 2, and 0 means no limit.',
  }),
  maxCloseWaitMs: defineOption(millisecondsType(0, DAY_MS), {
    default: 30_000,
    why: 'How long a circuit that ends waits without progress for the other endpoint.',
  }),
  getCircuitTimeout: defineOption(durationType(1, HOUR_MS), {
    default: 30_000,
    why: 'Timeout of a circuit request to a controller.',
  }),
  circuitStartTimeout: defineOption(durationType(1, HOUR_MS), {
    default: 3 * MINUTE_MS,
    why: 'Maximum time until the other endpoint starts the circuit.',
  }),
  connectTimeout: defineOption(durationType(0, HOUR_MS), {
    default: 0,
    why: 'Timeout for connecting to a service; 0s: the timeout of the operating system.',
  }),
} as const

/**
 * Flow control options of a listener. `connectTimeout` has no effect, because a listener does not
 * connect to services. Only dialers do, and tunnels, which use the config of each service instead.
 */
const listenerFlow = {
  ...flowControlOptions,
  connectTimeout: { ...flowControlOptions.connectTimeout, hasEffect: false },
} as const

/**
 * Flow control options of a dialer. `getCircuitTimeout` has no effect, because a dialer requests no
 * circuits.
 */
export const dialerOptions = {
  ...flowControlOptions,
  getCircuitTimeout: { ...flowControlOptions.getCircuitTimeout, hasEffect: false },
} as const

/**
 * @param defaults of minRetryInterval and maxRetryInterval in ms, and of retryBackoffFactor.
 */
export function backoffOptions(defaults: { min: number; max: number; factor: number }) {
  const bounds = durationType(10, DAY_MS)
  return {
    minRetryInterval: defineOption(bounds, {
      default: defaults.min,
      why: 'Wait after the first failure.',
    }),
    maxRetryInterval: defineOption(bounds, { default: defaults.max, why: 'The longest wait.' }),
    retryBackoffFactor: defineOption(numberType(1, 100), {
      default: defaults.factor,
      why: 'Factor by which the wait grows with each failure.',
    }),
  } as const
}

export const linkGroupsOption = defineOption(textOrTextsType(), {
  default: ['default'],
  why: 'Groups of this dialer or listener. A dialer dials only listeners with which it has a group in common.',
})

/**
 * Addresses of the controllers and their connection options. `ctrl.options` accepts the same
 * fields.
 */
export const controllerAddressOptions = {
  endpoint: defineOption(optionalType(addressType(addressProtocols.controller, true)), {
    default: null,
    why: 'Address of a controller. If it is set, `endpoints` is ignored.',
  }),
  endpoints: defineOption(optionalType(addressListType(addressProtocols.controller, 64)), {
    default: null,
    why: 'Addresses of controllers. Once the router is connected, it follows the members of the cluster.',
  }),
  bind: defineOption(optionalType(textType('an interface name or one of its IP addresses')), {
    default: null,
    why: 'Local interface from which the router dials controllers.',
  }),
  defaultRequestTimeout: defineOption(durationType(1, HOUR_MS), {
    default: 5000,
    why: 'How long the router waits for the answer of a controller.',
  }),
} as const

const plain = (fields: SchemaFields): SchemaFields => fields

/** Marks all fields as having no effect in this version. */
function inert(fields: SchemaFields): SchemaFields {
  const entries = Object.entries(fields)
  return Object.fromEntries(entries.map(([name, node]) => [name, { ...node, hasEffect: false }]))
}

/** Fields of a listener's `options`, by the listener's binding. */
export const listenerOptions: Readonly<Record<string, SchemaFields>> = {
  edge: plain({
    advertise: defineOption(optionalType(advertisedAddressType(addressProtocols.edge)), {
      default: null,
      why: 'Address of the listener for clients, as `advertise` of the listener itself, which takes precedence.',
    }),
    lookupApiSessionTimeout: defineOption(durationType(0, HOUR_MS), {
      default: 5000,
      why: 'How long the router waits for a controller to report the API session of a connecting client.',
    }),
    lookupSessionTimeout: defineOption(durationType(0, HOUR_MS), {
      default: 5000,
      why: 'How long the router waits for a controller to report a service session.',
      hasEffect: false,
    }),
    getSessionTimeout: defineIgnoredSection(
      'configuration generators of OpenZiti write it, and no router reads it',
      {
        isQuiet: true,
      },
    ),
    ...flowControlOptions,
    ...channelOptions,
  }),
  tunnel: plain({
    mode: defineOption(
      textType('host, tproxy, tproxy:<program> or proxy', (mode) =>
        /^(?:host|proxy|tproxy(?::.+)?)$/.test(mode),
      ),
      {
        default: 'host',
        why: 'host: hosts the services that Bind policies grant. proxy: like host, and opens a listener for each of `services` and for each service with a config proxy.v1 that Dial policies grant. tproxy: like host, and intercepts connections from this host, and from hosts in the networks of `lanIf`, to addresses and names of the services that Dial policies grant; the program after the colon is not called.',
      },
    ),
    services: defineOption(
      textOrTextsType(
        'a list of <service name>:<port>, each with :tcp or :udp after it or neither',
        (service) => isPort(service.replace(/:(?:tcp|udp)$/, '')),
      ),
      {
        default: [],
        why: 'proxy: services for which the router opens a listener, as <service name>:<port> or <service name>:<port>:udp. The port is open on all addresses of the host, without log-in. A config proxy.v1 of the service takes precedence; its member binding names another address.',
      },
    ),
    resolver: defineOption(
      textOrTextsType(
        'udp://<IP address>:<port>',
        (url) => url.startsWith('udp://') && isPort(url) && isServer(url),
      ),
      {
        default: ['udp://127.0.0.1:53'],
        why: 'tproxy: address of the name server in the router, which answers this host and hosts in the networks of `lanIf`.',
      },
    ),
    dnsSvcIpRange: defineOption(cidrType(), {
      default: '100.64.0.1/10',
      why: 'tproxy: IPv4 network from which the router assigns addresses to DNS names of services.',
    }),
    dnsUpstream: defineOption(
      optionalType(textOrTextsType('<IP address> or udp://<IP address>:<port>', isServer)),
      {
        default: null,
        why: 'tproxy: name servers to which the router forwards queries for all other names.',
      },
    ),
    dnsUpstreamMode: defineOption(choiceType(['parallel', 'serial', 'failover', 'random']), {
      default: 'parallel',
      why: 'tproxy: order in which the router queries `dnsUpstream`. parallel: all at the same time. serial: one after the other. failover: first the server that answered last. random: first a random server.',
    }),
    dnsUnanswerable: defineOption(choiceType(['timeout', 'servfail', 'refused']), {
      default: 'refused',
      why: 'tproxy: answer to a query for another name if no `dnsUpstream` answers it.',
    }),
    lanIf: defineOption(optionalType(textOrTextsType()), {
      default: null,
      why: 'tproxy: interfaces; hosts in the networks of these interfaces may use services and names, in addition to this host.',
    }),
    ...inert({
      svcPollRate: defineOption(optionalType(durationType(1, DAY_MS)), {
        default: null,
        why: 'Former interval of polls for services.',
        deprecated: 'controllers send changes of services, so the router does not poll',
      }),
      udpCheckInterval: defineOption(durationType(0, DAY_MS), {
        default: 0,
        why: 'Interval of checks for idle UDP flows.',
      }),
    }),
    udpIdleTimeout: defineOption(durationType(0, DAY_MS), {
      default: 0,
      why: 'Silence after which a UDP flow ends; 0s: one minute.',
    }),
    ...listenerFlow,
  }),
  transport: withAdvertise(),
  transport_udp: withAdvertise(),
  proxy: withAdvertise(),
  proxy_udp: withAdvertise(),
}

function withAdvertise(): SchemaFields {
  return plain({
    advertise: defineOption(optionalType(advertisedAddressType(addressProtocols.stream)), {
      default: null,
      why: 'Accepted because OpenZiti reads `advertise` here, too.',
      hasEffect: false,
    }),
    ...listenerFlow,
  })
}

/** Valid bindings of a listener. */
export const listenerBindings = [
  'edge',
  'transport',
  'transport_udp',
  'tunnel',
  'proxy',
  'proxy_udp',
] as const

/** The protocols that this router can serve, for each binding that listens. */
export const listenerProtocols: Readonly<Record<string, readonly string[]>> = {
  edge: ['tls', 'wss'],
  transport: ['tcp', 'tls'],
  proxy: ['tcp', 'tls'],
  transport_udp: ['udp'],
  proxy_udp: ['udp'],
}

export const dialerBindings = ['proxy', 'proxy_udp', 'transport', 'transport_udp'] as const
