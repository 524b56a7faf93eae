import { isIP } from 'node:net'

import { type Fields, ignoredSection, option } from '../engine/schema.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../engine/units.ts'
import {
  boolean,
  choice,
  duration,
  integer,
  milliseconds,
  number,
  optional,
  text,
  textOrTexts,
} from '../engine/values.ts'
import { address, addresses, advertisedAddress, cidr } from './values.ts'

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

/** A name server with an IP address, so that it needs no name resolution. The port is optional. */
function isServer(text: string): boolean {
  const place = text.replace(/^udp:\/\//, '')
  const host = isPort(place) ? place.slice(0, place.lastIndexOf(':')) : place
  return isIP(host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host) !== 0
}

/** Options of a channel; `connectTimeoutMs` and `connectTimeout` are the same option. */
export const channelOptions = {
  outQueueSize: option(integer(0, 10_000), {
    default: 4,
    why: 'Maximum messages that wait to be sent.',
    hasEffect: false,
  }),
  maxQueuedConnects: option(integer(1, 5000), {
    default: 1,
    why: 'Accepted connections that may wait for their hello.',
    hasEffect: false,
  }),
  maxOutstandingConnects: option(integer(1, 1000), {
    default: 16,
    why: 'Maximum connections whose hello is awaited.',
    hasEffect: false,
  }),
  connectTimeoutMs: option(milliseconds(30, MINUTE_MS), {
    default: 5000,
    why: 'From the first packet to the end of the hello.',
  }),
  connectTimeout: option(optional(duration(30, MINUTE_MS)), {
    default: null,
    why: 'Like `connectTimeoutMs`, as a duration with a unit; takes precedence over it.',
  }),
  writeTimeout: option(optional(duration(1, HOUR_MS)), {
    default: null,
    why: 'Timeout for sending one message; then the channel is closed. Absent: none.',
  }),
} as const

/** The same options for links, where payloads and acknowledgements have separate queues. */
export const linkChannelOptions = {
  ...channelOptions,
  outQueueSize: option(integer(0, 10_000), {
    default: 64,
    why: 'Messages that may wait beside `payloadSenderQueueSize` and `ackSenderQueueSize`.',
  }),
} as const

/**
 * @param closeAfterMs default for the time without a response after which the channel is closed.
 */
export function heartbeatOptions(closeAfterMs: number) {
  return {
    sendInterval: option(duration(100, HOUR_MS), {
      default: 10_000,
      why: 'Interval of heartbeats.',
    }),
    checkInterval: option(duration(10, HOUR_MS), {
      default: 1000,
      why: 'Interval of the check whether a heartbeat or its response is due.',
    }),
    closeUnresponsiveTimeout: option(duration(1000, DAY_MS), {
      default: closeAfterMs,
      why: 'Silence after which the channel is closed and dialed again.',
    }),
  } as const
}

/** Options of every dialer and listener, for the flow control of a circuit endpoint (xgress). */
export const flowOptions = {
  mtu: option(integer(0, 65_535), { default: 0, why: 'Largest payload in bytes; 0: no limit.' }),
  randomDrops: option(boolean(), {
    default: false,
    why: 'Drops random payloads, to test retransmission.',
  }),
  drop1InN: option(integer(1, 1_000_000), {
    default: 100,
    why: 'With randomDrops: one payload in this many is dropped.',
  }),
  txQueueSize: option(integer(1, 100_000), {
    default: 1,
    why: 'Maximum payloads that wait to be sent.',
  }),
  txPortalStartSize: option(integer(1, BYTES_MAX), {
    default: 4 * 1024 * 1024,
    why: 'Initial limit of unacknowledged bytes (bytes in flight).',
  }),
  txPortalMinSize: option(integer(1, BYTES_MAX), {
    default: 16 * 1024,
    why: 'Lower bound of the limit of bytes in flight.',
  }),
  txPortalMaxSize: option(integer(1, BYTES_MAX), {
    default: 4 * 1024 * 1024,
    why: 'Upper bound of the limit of bytes in flight.',
  }),
  txPortalIncreaseThresh: option(integer(1, 1_000_000), {
    default: 28,
    why: 'Acknowledgments after which the bytes in flight increase.',
  }),
  txPortalIncreaseScale: option(number(0, 1000), {
    default: 1,
    why: 'Share of the bytes acknowledged since the last increase by which the bytes in flight increase.',
  }),
  txPortalRetxThresh: option(integer(1, 1_000_000), {
    default: 64,
    why: 'Retransmitted payloads after which the bytes in flight decrease.',
  }),
  txPortalRetxScale: option(number(0, 1000), {
    default: 0.75,
    why: 'Factor for the bytes in flight after `txPortalRetxThresh`.',
  }),
  txPortalDupAckThresh: option(integer(1, 1_000_000), {
    default: 64,
    why: 'Duplicate acknowledgments after which the bytes in flight decrease.',
  }),
  txPortalDupAckScale: option(number(0, 1000), {
    default: 0.9,
    why: 'Factor for the bytes in flight after `txPortalDupAckThresh`.',
    hasEffect: false,
  }),
  rxBufferSize: option(integer(1, BYTES_MAX), {
    default: 4 * 1024 * 1024,
    why: 'Maximum received bytes that wait for the application.',
  }),
  retxStartMs: option(milliseconds(0, HOUR_MS), {
    default: 200,
    why: 'Time after which a payload is retransmitted, until the round trip was measured.',
  }),
  retxScale: option(number(0, 1000), {
    default: 1.5,
    why: 'Factor for the measured round trip that gives the time until a retransmission.',
  }),
  retxAddMs: option(milliseconds(0, HOUR_MS), { default: 0, why: 'Time added to that product.' }),
  retxMaxMs: option(milliseconds(0, HOUR_MS), {
    default: 10_000,
    why: 'Maximum time until a retransmission.',
  }),
  maxRttScale: option(integer(0, 1000), {
    default: 4,
    why: 'A measured round trip counts as at most this many times the previous one; 0: no limit.',
  }),
  maxCloseWaitMs: option(milliseconds(0, DAY_MS), {
    default: 30_000,
    why: 'How long a closing circuit waits for data in flight.',
  }),
  getCircuitTimeout: option(duration(1, HOUR_MS), {
    default: 30_000,
    why: 'Timeout of a circuit request to a controller.',
  }),
  circuitStartTimeout: option(duration(1, HOUR_MS), {
    default: 3 * MINUTE_MS,
    why: 'Maximum time until the first payload of a circuit.',
  }),
  connectTimeout: option(duration(0, HOUR_MS), {
    default: 0,
    why: 'Timeout for connecting to a service; 0s: the timeout of the operating system.',
  }),
} as const

/**
 * `connectTimeout` has no effect here, because listeners do not connect to services. Dialers do,
 * and so does a tunnel, with the config of each service.
 */
const listenerFlow = {
  ...flowOptions,
  connectTimeout: { ...flowOptions.connectTimeout, hasEffect: false },
} as const

/** `getCircuitTimeout` has no effect here, because dialers request no circuits. */
export const dialerOptions = {
  ...flowOptions,
  getCircuitTimeout: { ...flowOptions.getCircuitTimeout, hasEffect: false },
} as const

/**
 * @param both defaults of minRetryInterval and maxRetryInterval in ms, and of the backoff factor.
 */
export function backoffOptions(both: { min: number; max: number; factor: number }) {
  const bounds = duration(10, DAY_MS)
  return {
    minRetryInterval: option(bounds, { default: both.min, why: 'Wait after the first failure.' }),
    maxRetryInterval: option(bounds, { default: both.max, why: 'The longest wait.' }),
    retryBackoffFactor: option(number(1, 100), {
      default: both.factor,
      why: 'By which the wait grows with each failure.',
    }),
  } as const
}

export const groups = option(textOrTexts(), {
  default: ['default'],
  why: 'A dialer dials the listeners that it shares a group with.',
})

/**
 * Addresses of the controllers and their connection options. `ctrl.options` accepts the same
 * fields.
 */
export const controllerAddressing = {
  endpoint: option(optional(address(addressProtocols.controller, true)), {
    default: null,
    why: 'Address of a controller. With it `endpoints` is ignored.',
  }),
  endpoints: option(optional(addresses(addressProtocols.controller, 64)), {
    default: null,
    why: 'Addresses of controllers. Once connected, the set follows the members of the cluster.',
  }),
  bind: option(optional(text('an interface name or one of its IP addresses')), {
    default: null,
    why: 'Local interface that controllers are dialed from.',
  }),
  defaultRequestTimeout: option(duration(1, HOUR_MS), {
    default: 5000,
    why: 'Wait for the answer of a controller.',
  }),
} as const

const plain = (fields: Fields): Fields => fields

/** Marks all fields as having no effect in this version. */
function inert(fields: Fields): Fields {
  const entries = Object.entries(fields)
  return Object.fromEntries(entries.map(([name, node]) => [name, { ...node, hasEffect: false }]))
}

/** Fields of a listener's `options`, by the listener's binding. */
export const listenerOptions: Readonly<Record<string, Fields>> = {
  edge: plain({
    advertise: option(optional(advertisedAddress(addressProtocols.edge)), {
      default: null,
      why: 'Other place of `advertise`.',
    }),
    lookupApiSessionTimeout: option(duration(0, HOUR_MS), {
      default: 5000,
      why: 'Wait for an API session that is not known yet.',
    }),
    lookupSessionTimeout: option(duration(0, HOUR_MS), {
      default: 5000,
      why: 'The same for a session of a service.',
      hasEffect: false,
    }),
    getSessionTimeout: ignoredSection('generators write it, and no router reads it', {
      isQuiet: true,
    }),
    ...flowOptions,
    ...channelOptions,
  }),
  tunnel: plain({
    mode: option(
      text('host, tproxy, tproxy:<program> or proxy', (mode) =>
        /^(?:host|proxy|tproxy(?::.+)?)$/.test(mode),
      ),
      {
        default: 'host',
        why: 'host: reverse-proxies services by Bind policies. proxy: listeners for `services`, and includes host. tproxy: takes over connections of this host to addresses and names of services by Dial policies, and includes host; the program after the colon is not called.',
      },
    ),
    services: option(
      textOrTexts(
        'a list of <service name>:<port>, each with :tcp or :udp after it or neither',
        (service) => isPort(service.replace(/:(?:tcp|udp)$/, '')),
      ),
      {
        default: [],
        why: 'proxy: a listener for each, as <service name>:<port> or <service name>:<port>:udp. A config proxy.v1 of a service counts before it.',
      },
    ),
    resolver: option(
      textOrTexts(
        'udp://<IP address>:<port>',
        (url) => url.startsWith('udp://') && isPort(url) && isServer(url),
      ),
      {
        default: ['udp://127.0.0.1:53'],
        why: 'tproxy: address of the name server; it answers clients of this host, and of `lanIf`.',
      },
    ),
    dnsSvcIpRange: option(cidr(), {
      default: '100.64.0.1/10',
      why: 'tproxy: addresses given to DNS names of services; a network of IPv4.',
    }),
    dnsUpstream: option(
      optional(textOrTexts('<IP address> or udp://<IP address>:<port>', isServer)),
      {
        default: null,
        why: 'tproxy: name servers asked for other names.',
      },
    ),
    dnsUpstreamMode: option(choice(['parallel', 'serial', 'failover', 'random']), {
      default: 'parallel',
      why: 'tproxy: all at once, one after the other, the last that has answered first, or any first.',
    }),
    dnsUnanswerable: option(choice(['timeout', 'servfail', 'refused']), {
      default: 'refused',
      why: 'tproxy: answer to other names that no `dnsUpstream` answers.',
    }),
    lanIf: option(optional(textOrTexts()), {
      default: null,
      why: 'tproxy: interfaces whose networks may use services and names, other than this host.',
    }),
    ...inert({
      svcPollRate: option(optional(duration(1, DAY_MS)), {
        default: null,
        why: 'How often services were polled.',
        deprecated: 'services are pushed; it has no effect',
      }),
      udpCheckInterval: option(duration(0, DAY_MS), { default: 0, why: 'Interval of the check.' }),
    }),
    udpIdleTimeout: option(duration(0, DAY_MS), {
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

function withAdvertise(): Fields {
  return plain({
    advertise: option(optional(advertisedAddress(addressProtocols.stream)), {
      default: null,
      why: 'Alternative place for `advertise`; the router does not publish it.',
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

/** For each binding that listens: the protocols that this router serves. */
export const listenerProtocols: Readonly<Record<string, readonly string[]>> = {
  edge: ['tls', 'wss'],
  transport: ['tcp', 'tls'],
  proxy: ['tcp', 'tls'],
  transport_udp: ['udp'],
  proxy_udp: ['udp'],
}

export const dialerBindings = ['proxy', 'proxy_udp', 'transport', 'transport_udp'] as const
