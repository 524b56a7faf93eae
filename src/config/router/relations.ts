import { dirname, resolve } from 'node:path'

import type { ConfigReader } from '../engine/reader.ts'
import { controllerPlaceNames, type RouterConfig } from './table.ts'
import type { Address } from './values.ts'

/** The part of a reader that rules between keys use. */
export type RelationReader = Pick<
  ConfigReader,
  'fault' | 'warn' | 'isGiven' | 'isMissing' | 'isFaulty'
> & {
  readonly faults: readonly unknown[]
}

/**
 * Checks rules between values, and resolves keys with alternative locations.
 * @returns the configuration with each value in one canonical key.
 */
export function settleRelations(read: RouterConfig, reader: RelationReader): RouterConfig {
  // A faulty part was already reported and may have any shape, so each step is guarded.
  const config = guarded(read, (given) => withOneAddressing(given, reader), reader)
  checkEnrolls(reader)
  return [withCsr, withListeners, checkBackoffs, checkRateLimiter, checkWeb, checkFlows]
    .map((step) => (given: RouterConfig) => step(given, reader))
    .reduce((given, step) => guarded(given, step, reader), config)
}

/**
 * A step can throw on incomplete values. The fault that made them incomplete was already reported.
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
  for (const name of controllerPlaceNames) {
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
  } else if (isMissing('endpoint') && isMissing('endpoints')) {
    const problem =
      'one of endpoint and endpoints is missing; expected an address tls:<host>:<port>'
    reader.fault('ctrl', problem)
  } else if (settled.endpoint === null && settled.endpoints === null) {
    const name = isMissing('endpoint') ? 'endpoints' : 'endpoint'
    const keys = [`ctrl.${name}`, `ctrl.options.${name}`]
    if (keys.some((key) => reader.isFaulty(key))) return { ...config, ctrl: settled }
    reader.fault(`ctrl.${name}`, 'is empty; expected an address tls:<host>:<port>')
  }
  return { ...config, ctrl: settled }
}

/** Controller addresses of the configuration: `endpoint` takes precedence over `endpoints`. */
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

function withListeners(config: RouterConfig, reader: RelationReader): RouterConfig {
  const places = new Map<string, string>()
  const listeners = config.listeners.map((listener, at) => {
    const key = `listeners[${at}]`
    if (listener.binding === 'tunnel') {
      checkTunnel(listener, key, reader)
      return listener
    }
    const below = (listener.options['advertise'] ?? null) as typeof listener.advertise
    const isBoth = reader.isGiven(`${key}.advertise`) && reader.isGiven(`${key}.options.advertise`)
    if (isBoth) reader.warn(`${key}.options.advertise`, `is ignored in favour of ${key}.advertise`)
    const advertise = listener.advertise ?? below
    if (listener.bind === null && reader.isMissing(`${key}.bind`)) {
      reader.fault(`${key}.bind`, 'is missing; expected an address <protocol>:<host>:<port>')
    }
    const isUnsaid =
      reader.isMissing(`${key}.advertise`) && reader.isMissing(`${key}.options.advertise`)
    if (advertise === null && isUnsaid) {
      reader.fault(`${key}.advertise`, 'is missing; expected <host>:<port>')
    }
    if (listener.binding.startsWith('proxy') && listener.service === null) {
      reader.fault(`${key}.service`, 'is missing; expected the id or name of a service')
    }
    checkPlace(listener.bind, key, places, reader)
    return { ...listener, advertise }
  })
  for (const [at, { bind }] of (config.link?.listeners ?? []).entries()) {
    checkPlace(bind, `link.listeners[${at}]`, places, reader)
  }
  checkEdge(config, reader)
  return { ...config, listeners }
}

function checkPlace(
  bind: Address | null,
  key: string,
  places: Map<string, string>,
  reader: RelationReader,
): void {
  if (bind === null || bind.port === 0) return
  const isDatagram = /^(?:udp|dtls)/.test(bind.protocol)
  const place = `${isDatagram ? 'udp' : 'tcp'}:${bind.host}:${bind.port}`
  const other = places.get(place)
  if (other === undefined) places.set(place, key)
  else reader.fault(`${key}.bind`, `takes the same address as ${other}.bind (${bind.text})`)
}

const edgeProtocols: readonly string[] = ['tls', 'wss']

function checkEdge({ edge, listeners }: RouterConfig, reader: RelationReader): void {
  const at = listeners.findIndex(({ binding }) => binding === 'edge')
  if (edge !== null && at < 0) {
    reader.warn('edge', 'is enabled, and no listener has the binding edge: no client can connect')
  }
  if (edge === null && at >= 0) {
    const problem = 'has the binding edge without a section edge: no client can connect'
    reader.warn(`listeners[${at}]`, problem)
  }
  for (const [number, { binding, bind }] of listeners.entries()) {
    if (binding !== 'edge' || bind === null || edgeProtocols.includes(bind.protocol)) continue
    const problem = `the binding edge listens on ${edgeProtocols.join(' or ')}, and not on ${bind.protocol}`
    reader.fault(`listeners[${number}].bind`, problem)
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
      reader.warn(option, `has no effect in mode ${mode}: it is for ${needed}`)
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

/** Default: `endpoints.yml` in the folder of the configuration. */
export function withEndpointsFile(config: RouterConfig, file: string): RouterConfig {
  const endpointsFile = resolve(dirname(file), config.ctrl.endpointsFile)
  return { ...config, ctrl: { ...config.ctrl, endpointsFile } }
}
