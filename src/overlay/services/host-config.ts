import { parseJsonOrNull } from '../../lib/text/json-value.ts'
import type { Precedence } from '../../channel/messages/terminators.ts'
import { serviceLimits } from './limits.ts'
import { AddressRules } from './address-rules.ts'
import { ServiceConfigReader, PORT_MAX, type PortRange } from './service-config-reader.ts'
import { type IpNetwork, createIpNetwork } from '../../lib/text/networks.ts'

export type TunnelProtocol = 'tcp' | 'udp'

/**
 * Action after one or more equal results of a health check: a change of the terminator, or an
 * event.
 */
export interface HealthAction {
  readonly trigger: 'pass' | 'fail' | 'change'
  readonly consecutiveEvents: number
  readonly durationMs: number
  readonly effect:
    | { readonly kind: 'mark healthy' | 'mark unhealthy' | 'send event' }
    | { readonly kind: 'change cost'; readonly by: number }
}

/** A periodic health check of a target, with its actions. */
export interface HealthProbe {
  readonly intervalMs: number
  readonly timeoutMs: number
  readonly actions: readonly HealthAction[]
  readonly target:
    | { readonly kind: 'port'; readonly host: string; readonly port: number }
    | {
        readonly kind: 'http'
        readonly url: string
        readonly method: string
        readonly body: string | null
        readonly expectStatus: number
        readonly expectInBody: string | null
      }
}

/** How a terminator of a service connects to its target, with its cost and precedence. */
export interface HostConfig {
  /** One protocol, or a set from which the client chooses. */
  readonly protocol: TunnelProtocol | ReadonlySet<TunnelProtocol>
  readonly address: string | AddressRules
  readonly port: number | readonly PortRange[]
  /** Address translations, the longest prefix first. */
  readonly translations: readonly { readonly from: IpNetwork; readonly to: IpNetwork }[]
  readonly connectTimeoutMs: number
  /** null if the default of the identity applies. */
  readonly cost: number | null
  readonly precedence: Precedence | null
  /** Template for the identity of the terminator; '' for none. */
  readonly identity: string
  readonly usesEdgeIdentity: boolean
  /** Host and port of an HTTP CONNECT proxy; null if the target is reached directly. */
  readonly proxy: { readonly host: string; readonly port: number } | null
  readonly probes: readonly HealthProbe[]
}

/** Config types for hosting. If a service has several, the first one in this list is used. */
export const hostConfigTypes = ['host.v2', 'host.v1', 'ziti-tunneler-server.v1'] as const
export type HostConfigType = (typeof hostConfigTypes)[number]

const COST_MAX = 65_535
const DEFAULT_CONNECT_TIMEOUT_MS = 5000
const HOST_PORT = /^(?:\[([^\]]+)\]|([^:]+)):([0-9]{1,5})$/

/** @throws {ServiceConfigFault} */
export function parseHostConfig(type: HostConfigType, dataJson: string): readonly HostConfig[] {
  const data = new ServiceConfigReader(type, parseJsonOrNull(dataJson))
  switch (type) {
    case 'host.v1':
      return [termsOf(data)]
    case 'host.v2':
      return data
        .list('terminators', serviceLimits.hostedTerminatorsMax)
        .map((each) => termsOf(each))
    case 'ziti-tunneler-server.v1':
      return [termsOf(data, 'hostname')]
  }
}

function termsOf(data: ServiceConfigReader, addressName = 'address'): HostConfig {
  if (data.texts('allowedSourceAddresses').length > 0) {
    data.fault(
      'allowedSourceAddresses',
      'is not supported: it asks for connections from addresses that are not those of this host',
    )
  }
  const options = data.within('listenOptions')
  return {
    protocol: protocolOf(data),
    address: data.flag('forwardAddress')
      ? new AddressRules(data.someTexts('allowedAddresses'))
      : data.requiredText(addressName),
    port: portOf(data),
    translations: data.flag('forwardAddress') ? translationsOf(data) : [],
    connectTimeoutMs: timeoutOf(options),
    cost: options.integer('cost', 0, COST_MAX),
    precedence: options.choice('precedence', ['default', 'required', 'failed']),
    identity: options.text('identity') ?? '',
    usesEdgeIdentity: options.flag('bindUsingEdgeIdentity'),
    proxy: proxyOf(data),
    probes: probesOf(data),
  }
}

function protocolOf(data: ServiceConfigReader): HostConfig['protocol'] {
  const known = (text: string): TunnelProtocol => {
    if (text === 'tcp' || text === 'udp') return text
    return data.fault('protocol', `${text} is neither tcp nor udp`)
  }
  if (!data.flag('forwardProtocol')) return known(data.requiredText('protocol'))
  return new Set(data.someTexts('allowedProtocols').map(known))
}

function portOf(data: ServiceConfigReader): HostConfig['port'] {
  if (!data.flag('forwardPort')) {
    return data.integer('port', 1, PORT_MAX) ?? data.fault('port', 'is missing')
  }
  return data.portRanges('allowedPortRanges')
}

function translationsOf(data: ServiceConfigReader): HostConfig['translations'] {
  const found = data.list('forwardAddressTranslations', serviceLimits.hostRulesMax)
  const read = found.map((each) => {
    const prefix = each.integer('prefixLength', 0, 128) ?? 0
    const from = createIpNetwork(each.requiredText('from'), prefix)
    const to = createIpNetwork(each.requiredText('to'), prefix)
    if (from === null || to === null || from.address.family !== to.address.family) {
      return each.fault('from', 'and to are no addresses of one kind with such a prefix')
    }
    return { from, to }
  })
  return read.sort((one, other) => other.from.prefix - one.from.prefix)
}

function timeoutOf(options: ServiceConfigReader): number {
  const seconds = options.integer('connectTimeoutSeconds', 0, 2_147_483_647)
  const ms = options.duration('connectTimeout') ?? (seconds === null ? null : seconds * 1000)
  const { hostConnectMsMax } = serviceLimits
  return ms === null || ms <= 0 ? DEFAULT_CONNECT_TIMEOUT_MS : Math.min(ms, hostConnectMsMax)
}

function proxyOf(data: ServiceConfigReader): HostConfig['proxy'] {
  if (!data.has('proxy')) return null
  const proxy = data.within('proxy')
  const type = proxy.text('type') ?? 'none'
  if (type === 'none' || type === '') return null
  if (type !== 'http') return proxy.fault('type', `${type} is not supported; use http`)
  return hostPort(proxy, 'address')
}

function hostPort(
  data: ServiceConfigReader,
  name: string,
): { readonly host: string; readonly port: number } {
  const [, within, plain, digits] = HOST_PORT.exec(data.requiredText(name)) ?? []
  const host = within ?? plain
  const port = Number(digits)
  if (host === undefined || !(port >= 1 && port <= PORT_MAX)) {
    return data.fault(name, 'is no <host>:<port>')
  }
  return { host, port }
}

function probesOf(data: ServiceConfigReader): readonly HealthProbe[] {
  const { hostProbesMax } = serviceLimits
  const ports = data.list('portChecks', hostProbesMax).map((check): HealthProbe => ({
    ...intervalsOf(check),
    target: { kind: 'port', ...hostPort(check, 'address') },
  }))
  const urls = data.list('httpChecks', hostProbesMax).map((check): HealthProbe => {
    const url = check.requiredText('url')
    if (!/^https?:$/.test(URL.parse(url)?.protocol ?? '')) check.fault('url', 'is no HTTP URL')
    return {
      ...intervalsOf(check),
      target: {
        kind: 'http',
        url,
        method: check.choice('method', ['GET', 'POST', 'PUT', 'PATCH']) ?? 'GET',
        body: check.text('body'),
        expectStatus: check.integer('expectStatus', 100, 599) ?? 200,
        expectInBody: check.text('expectInBody') ?? check.text('expectBody'),
      },
    }
  })
  return [...ports, ...urls]
}

function intervalsOf(check: ServiceConfigReader): Omit<HealthProbe, 'target'> {
  const { hostProbeMsMin, hostProbeMsMax } = serviceLimits
  const bounded = (name: string): number =>
    Math.min(
      Math.max(check.duration(name) ?? check.fault(name, 'is missing'), hostProbeMsMin),
      hostProbeMsMax,
    )
  return {
    intervalMs: bounded('interval'),
    timeoutMs: bounded('timeout'),
    actions: check.list('actions', serviceLimits.hostProbesMax).map(actionOf),
  }
}

function actionOf(action: ServiceConfigReader): HealthAction {
  return {
    trigger:
      action.choice('trigger', ['pass', 'fail', 'change']) ?? action.fault('trigger', 'is missing'),
    consecutiveEvents: action.integer('consecutiveEvents', 0, 65_535) ?? 0,
    durationMs: action.duration('duration') ?? 0,
    effect: effectOf(action),
  }
}

function effectOf(action: ServiceConfigReader): HealthAction['effect'] {
  const text = action.requiredText('action')
  if (text === 'mark healthy' || text === 'mark unhealthy' || text === 'send event') {
    return { kind: text }
  }
  const [, direction, digits] = /^(increase|decrease) cost ([0-9]{1,5})$/.exec(text) ?? []
  const by = Number(digits)
  if (direction === undefined || by < 1 || by > COST_MAX) {
    return action.fault('action', `${text} is no action`)
  }
  return { kind: 'change cost', by: direction === 'increase' ? by : -by }
}
