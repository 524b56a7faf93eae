import { dirname, resolve } from 'node:path'

import type { HttpProxy } from '../../lib/runtime/http-proxy.ts'
import type { ConfigReader } from '../engine/reader.ts'
import { nearestWord } from '../engine/nearest-word.ts'
import { dialerBindings, listenerBindings, listenerProtocols } from './shared-options.ts'
import { controllerKeyLocations, type RouterConfig } from './table.ts'
import type { Address } from './values.ts'

/** The part of a configuration reader that the rules between keys need. */
export type RelationReader = Pick<
  ConfigReader,
  'fault' | 'warn' | 'isGiven' | 'isMissing' | 'isFaulty'
> & {
  readonly faults: readonly unknown[]
}

/**
 * Checks rules between values, and merges keys that the file may contain in several locations.
 * @returns the configuration, with each value under its canonical key.
 */
export function checkRouterRelations(read: RouterConfig, reader: RelationReader): RouterConfig {
  // Each step is guarded, because a section with faults may have any structure; its faults are
  // already reported.
  const config = guarded(read, (given) => withOneAddressing(given, reader), reader)
  checkEnrolls(reader)
  return [
    withCsr,
    withLinkAddresses,
    withListeners,
    checkPlaces,
    checkServerCertificate,
    checkProxy,
    checkBackoffs,
    checkRateLimiter,
    checkWeb,
    checkFlows,
    withKnownDialers,
  ]
    .map((step) => (given: RouterConfig) => step(given, reader))
    .reduce((given, step) => guarded(given, step, reader), config)
}

/**
 * Runs a step that may throw on incomplete values. Ignores its error if faults were already
 * reported.
 */
function guarded(
  config: RouterConfig,
  step: (config: RouterConfig) => RouterConfig,
  reader: RelationReader,
): RouterConfig {
  try {
    return step(config)
  } catch (error) {
    if (reader.faults.length > 0) return config
    throw error
  }
}

function checkEnrolls(reader: RelationReader): void {
  if (!reader.isGiven('listeners')) return
  if (!reader.isMissing('csr') || !reader.isMissing('edge.csr')) return
  reader.warn('listeners', 'without csr the router can neither enroll nor renew its certificates')
}

function withOneAddressing(config: RouterConfig, reader: RelationReader): RouterConfig {
  if (reader.isFaulty('ctrl')) return config
  const { ctrl } = config
  const merged: Record<string, unknown> = { ...ctrl }
  for (const name of controllerKeyLocations) {
    const other = `ctrl.options.${name}`
    if (!reader.isGiven(other)) continue
    if (reader.isGiven(`ctrl.${name}`)) reader.warn(other, `is ignored in favour of ctrl.${name}`)
    else merged[name] = ctrl.options[name]
  }
  const settled = merged as unknown as RouterConfig['ctrl']
  const isMissing = (name: string): boolean =>
    reader.isMissing(`ctrl.${name}`) && reader.isMissing(`ctrl.options.${name}`)
  if (settled.endpoint !== null && settled.endpoints !== null) {
    reader.warn('ctrl.endpoints', 'is ignored: ctrl.endpoint is given')
  } else if (settled.endpoint === null && settled.endpoints === null) {
    // A configuration with neither key is valid: `router enroll` uses the addresses in the
    // enrollment token.
    if (isMissing('endpoint') && isMissing('endpoints')) return { ...config, ctrl: settled }
    const name = isMissing('endpoint') ? 'endpoints' : 'endpoint'
    const keys = [`ctrl.${name}`, `ctrl.options.${name}`]
    if (keys.some((key) => reader.isFaulty(key))) return { ...config, ctrl: settled }
    reader.fault(`ctrl.${name}`, 'is empty; expected an address tls:<host>:<port>')
  }
  return { ...config, ctrl: settled }
}

/** Controller addresses in the configuration: `endpoint` takes precedence over `endpoints`. */
export function configuredEndpoints({ ctrl }: RouterConfig): readonly Address[] {
  return ctrl.endpoint === null ? (ctrl.endpoints ?? []) : [ctrl.endpoint]
}

function withCsr(config: RouterConfig, reader: RelationReader): RouterConfig {
  const older = config.edge?.csr ?? null
  if (older !== null && config.csr !== null) {
    reader.warn('edge.csr', 'is ignored in favour of csr at the top level')
  }
  const csr = config.csr ?? older
  const names = csr === null ? 1 : Object.values(csr.sans).flat().length
  const opens = config.listeners.length + (config.link?.listeners.length ?? 0) > 0
  if (names === 0 && opens) {
    const key = config.csr === null ? 'edge.csr' : 'csr'
    reader.warn(
      key,
      'names no SAN: clients and routers accept no connection to this router without one',
    )
  }
  return { ...config, csr }
}

/**
 * A link listener without an advertised address advertises the address that it binds. A wildcard
 * address or port 0 is then a fault.
 */
function withLinkAddresses(config: RouterConfig, reader: RelationReader): RouterConfig {
  if (config.link === null) return config
  const listeners = config.link.listeners.map((listener, at) => {
    const { bind, advertise } = listener
    const key = `link.listeners[${at}]`
    if (bind.protocol === 'dtls') {
      reader.warn(`${key}.bind`, 'dtls is not supported: this listener is not opened')
    }
    if (advertise !== null || !reader.isMissing(`${key}.advertise`)) return listener
    if (bind.port === 0 || anyAddresses.has(bind.host)) {
      const problem = `is missing; expected <host>:<port>, because ${bind.text} is no address that other routers can dial`
      reader.fault(`${key}.advertise`, problem)
    }
    return { ...listener, advertise: { host: bind.host, port: bind.port } }
  })
  return { ...config, link: { ...config.link, listeners } }
}

const anyAddresses: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

function withListeners(config: RouterConfig, reader: RelationReader): RouterConfig {
  const listeners = config.listeners.map((listener, at) => {
    const key = `listeners[${at}]`
    if (!checkBinding(`${key}.binding`, listener.binding, listenerBindings, reader)) return listener
    if (listener.binding === 'tunnel') {
      checkTunnel(listener, key, reader)
      return listener
    }
    const below = (listener.options['advertise'] ?? null) as typeof listener.advertise
    const isBoth = reader.isGiven(`${key}.advertise`) && reader.isGiven(`${key}.options.advertise`)
    if (isBoth) reader.warn(`${key}.options.advertise`, `is ignored in favour of ${key}.advertise`)
    const advertise = listener.advertise ?? below
    checkAddress(listener, key, reader)
    const isUnsaid =
      reader.isMissing(`${key}.advertise`) && reader.isMissing(`${key}.options.advertise`)
    if (listener.binding === 'edge' && advertise === null && isUnsaid) {
      reader.fault(`${key}.advertise`, 'is missing; expected <host>:<port>')
    }
    if (listener.binding.startsWith('proxy') && listener.service === null) {
      reader.fault(`${key}.service`, 'is missing; expected the id or name of a service')
    }
    return { ...listener, advertise }
  })
  checkEdge(config, reader)
  return { ...config, listeners }
}

function checkAddress(
  { binding, bind }: RouterConfig['listeners'][number],
  key: string,
  reader: RelationReader,
): void {
  const protocols = listenerProtocols[binding] ?? []
  if (bind === null) {
    if (!reader.isMissing(`${key}.bind`)) return
    reader.fault(`${key}.bind`, 'is missing; expected an address <protocol>:<host>:<port>')
  } else if (!protocols.includes(bind.protocol)) {
    const problem = `the binding ${binding} listens on ${protocols.join(' or ')}, and not on ${bind.protocol}`
    reader.fault(`${key}.bind`, problem)
  }
}

/**
 * Checks the name of a binding. A misspelled binding is a fault. Any other unknown binding is a
 * warning, because its entry is skipped and the other entries work.
 * @returns whether this router has the binding.
 */
function checkBinding(
  key: string,
  binding: string,
  known: readonly string[],
  reader: RelationReader,
): boolean {
  if (known.includes(binding)) return true
  const near = nearestWord(binding, known)
  if (near !== null) reader.fault(key, `unknown binding ${binding}; did you mean ${near}?`)
  else {
    const hint = bindingHints[binding] ?? `known bindings: ${known.join(', ')}`
    reader.warn(key, `this router has no binding ${binding}, and skips the entry; ${hint}`)
  }
  return false
}

/**
 * Hints for unknown bindings: those of OpenZiti's routers or other versions, and bindings of
 * listeners in `dialers`.
 */
const bindingHints: Readonly<Record<string, string>> = {
  udp: 'transport_udp is the binding for datagrams',
  edge: 'terminators of clients need no entry',
  tunnel: 'services of the tunnel need no entry',
  edge_transport: 'transport is the binding for connections to servers',
}

function withKnownDialers(config: RouterConfig, reader: RelationReader): RouterConfig {
  const dialers = config.dialers.filter(({ binding }, at) =>
    checkBinding(`dialers[${at}].binding`, binding, dialerBindings, reader),
  )
  return { ...config, dialers }
}

/**
 * An address on which a listener listens, with the TLS application protocols that the listener uses
 * there.
 */
interface UsedAddress {
  readonly key: string
  /** Null if no other listener may use the address. */
  readonly protocols: readonly string[] | null
}

/** Two listeners may share an address if their TLS application protocols (ALPN) differ. */
function checkPlaces(config: RouterConfig, reader: RelationReader): RouterConfig {
  const places = new Map<string, UsedAddress[]>()
  const check = (bind: Address | null, key: string, protocols: UsedAddress['protocols']): void => {
    if (bind === null || bind.port === 0) return
    const isDatagram = /^(?:udp|dtls)/.test(bind.protocol)
    const place = `${isDatagram ? 'udp' : 'tcp'}:${bind.host}:${bind.port}`
    const others = places.get(place) ?? []
    const other = others.find((one) => !canShare(one.protocols, protocols))
    if (other === undefined) places.set(place, [...others, { key, protocols }])
    else reader.fault(`${key}.bind`, `takes the same address as ${other.key}.bind (${bind.text})`)
  }
  for (const [at, { binding, bind }] of config.listeners.entries()) {
    if (!Object.hasOwn(listenerProtocols, binding)) continue
    const protocols = binding === 'edge' && bind !== null ? edgeProtocolsOf(bind) : null
    check(bind, `listeners[${at}]`, protocols)
  }
  for (const [at, { bind }] of (config.link?.listeners ?? []).entries()) {
    check(bind, `link.listeners[${at}]`, bind.protocol === 'tls' ? ['ziti-link'] : null)
  }
  return config
}

function canShare(some: UsedAddress['protocols'], others: UsedAddress['protocols']): boolean {
  if (some === null || others === null) return false
  return !some.some((protocol) => others.includes(protocol))
}

function edgeProtocolsOf({ protocol }: Address): readonly string[] | null {
  if (protocol === 'wss') return ['http/1.1']
  return protocol === 'tls' ? ['ziti-edge'] : null
}

function checkProxy(config: RouterConfig, reader: RelationReader): RouterConfig {
  const { proxy } = config
  if (proxy?.type === 'http' && proxy.address === null && reader.isMissing('proxy.address')) {
    reader.fault('proxy.address', 'is missing; expected <host>:<port>')
  }
  if (proxy?.type === 'none' && proxy.address !== null) {
    reader.warn('proxy.address', 'has no effect with type none')
  }
  return config
}

/**
 * The HTTP proxy for connections to controllers and other routers; null if the router connects
 * directly.
 */
export function configuredProxy({ proxy }: RouterConfig): HttpProxy | null {
  if (proxy?.type !== 'http' || proxy.address === null) return null
  const { address, username, password } = proxy
  const credentials = username === null ? null : { username, password: password ?? '' }
  return { ...address, credentials }
}

function checkServerCertificate(config: RouterConfig, reader: RelationReader): RouterConfig {
  const { identity, listeners, link, web } = config
  if (identity.server_cert !== null || !reader.isMissing('identity.server_cert')) return config
  const links = (link?.listeners ?? []).findIndex(({ bind }) => bind.protocol === 'tls')
  const clients = listeners.findIndex(
    ({ binding, bind }) =>
      (binding === 'edge' || bind?.protocol === 'tls') &&
      (binding !== 'edge' || config.edge !== null),
  )
  const servers = web.findIndex((server) => server.identity === null)
  const needing = [
    links < 0 ? [] : [`link.listeners[${links}]`],
    clients < 0 ? [] : [`listeners[${clients}]`],
    servers < 0 ? [] : [`web[${servers}]`],
  ].flat()
  const [first] = needing
  if (first !== undefined) {
    reader.fault('identity.server_cert', `is missing; ${first} needs a server certificate`)
  }
  return config
}

function checkEdge({ edge, listeners }: RouterConfig, reader: RelationReader): void {
  const at = listeners.findIndex(({ binding }) => binding === 'edge')
  if (edge !== null && at < 0) {
    reader.warn('edge', 'is enabled, and no listener has the binding edge: no client can connect')
  }
  if (edge === null && at >= 0) {
    const problem = 'has the binding edge without a section edge: no client can connect'
    reader.warn(`listeners[${at}]`, problem)
  }
}

function checkTunnel(
  { options }: RouterConfig['listeners'][number],
  key: string,
  reader: RelationReader,
): void {
  const mode = String(options['mode'])
  if (mode.startsWith('tproxy:')) {
    reader.warn(`${key}.options.mode`, 'the program after tproxy: is not called: routes are enough')
  }
  const of = {
    services: 'proxy',
    resolver: 'tproxy',
    dnsSvcIpRange: 'tproxy',
    dnsUpstream: 'tproxy',
    dnsUpstreamMode: 'tproxy',
    dnsUnanswerable: 'tproxy',
    lanIf: 'tproxy',
  } as const
  for (const [name, needed] of Object.entries(of)) {
    const option = `${key}.options.${name}`
    if (reader.isGiven(option) && mode.split(':')[0] !== needed) {
      const isDefault = needed === 'tproxy' && reader.isMissing(`${key}.options.mode`)
      const hint = isDefault ? ', which is the default here' : ''
      reader.warn(option, `has no effect in mode ${mode}${hint}: it is for ${needed}`)
    }
  }
}

function checkBackoffs(config: RouterConfig, reader: RelationReader): RouterConfig {
  for (const [at, dialer] of (config.link?.dialers ?? []).entries()) {
    for (const name of ['healthyDialBackoff', 'unhealthyDialBackoff'] as const) {
      const { minRetryInterval, maxRetryInterval } = dialer[name]
      const key = `link.dialers[${at}].${name}`
      const isFaulty =
        reader.isFaulty(`${key}.minRetryInterval`) || reader.isFaulty(`${key}.maxRetryInterval`)
      if (isFaulty || minRetryInterval <= maxRetryInterval) continue
      reader.fault(`${key}.minRetryInterval`, 'must not exceed maxRetryInterval')
    }
  }
  return config
}

function checkRateLimiter(config: RouterConfig, reader: RelationReader): RouterConfig {
  const limiter = config.ctrl.rateLimiter
  if (limiter !== null && limiter.minSize > limiter.maxSize) {
    reader.fault('ctrl.rateLimiter.minSize', 'must not exceed maxSize')
  }
  return config
}

function checkFlows(config: RouterConfig, reader: RelationReader): RouterConfig {
  const named = [
    ...config.dialers.map(({ options }, at) => [`dialers[${at}]`, options] as const),
    ...config.listeners.map(({ options }, at) => [`listeners[${at}]`, options] as const),
  ]
  for (const [key, options] of named) {
    const { txPortalMinSize: min, txPortalMaxSize: max } = options as Record<string, unknown>
    if (typeof min === 'number' && typeof max === 'number' && min > max) {
      reader.fault(`${key}.options.txPortalMinSize`, 'must not exceed txPortalMaxSize')
    }
  }
  return config
}

function checkWeb(config: RouterConfig, reader: RelationReader): RouterConfig {
  for (const [at, { options }] of config.web.entries()) {
    if (options.minTLSVersion > options.maxTLSVersion) {
      reader.fault(`web[${at}].options.minTLSVersion`, 'must not exceed maxTLSVersion')
    }
  }
  return config
}

/**
 * Makes the path of the endpoints file absolute; a relative path starts at the configuration's
 * folder.
 */
export function withEndpointsFile(config: RouterConfig, file: string): RouterConfig {
  const endpointsFile = resolve(dirname(file), config.ctrl.endpointsFile)
  return { ...config, ctrl: { ...config.ctrl, endpointsFile } }
}
