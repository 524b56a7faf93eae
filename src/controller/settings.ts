import { availableParallelism } from 'node:os'

import type { KeyEndpointRules } from '../auth/tokens/key-endpoint.ts'
import { type ApiLimits, limitsWith } from '../api/limits.ts'
import type { ApiName } from '../auth/principal/permissions.ts'
import type { BindingName } from '../api/parts.ts'
import type { API_NAMES, ControllerConfig, WEB_API_NAMES } from '../config/controller/options.ts'
import { formatHostPort, parseHostPort } from '../lib/text/names.ts'
import { type ApiAddress, ROUTER_ADDRESS_NAME } from '../ports/cluster-view.ts'
import type { CoreOptions } from '../raft/options.ts'

/** Options of the parts, made from the checked configuration; nothing is decided here. */

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

type ConfiguredApi = (typeof API_NAMES)[number]
type ConfiguredName = (typeof WEB_API_NAMES)[number]

const apiNames: Readonly<Record<ConfiguredApi, ApiName>> = {
  'edge-client': 'client',
  'edge-management': 'management',
  fabric: 'fabric',
  'health-checks': 'host',
}

/**
 * Path of each API below its listener's base URL; controllers tell each other whole addresses.
 */
const apiPaths: Readonly<Record<ConfiguredApi, string>> = {
  'edge-client': '/edge/client/v1',
  'edge-management': '/edge/management/v1',
  fabric: '/fabric/v1',
  'health-checks': '/health-checks',
}

/** Metrics and pages are no APIs: clients are not told where they are. */
function apisIn(configured: readonly ConfiguredName[]): ConfiguredApi[] {
  return configured.filter((name): name is ConfiguredApi => Object.hasOwn(apiNames, name))
}

/** Clients of the family look for the OpenID provider where they find the client API. */
function servesOidc({ oidc }: ControllerConfig, configured: readonly ConfiguredName[]): boolean {
  return oidc.enabled && configured.includes('edge-client')
}

export function apisOf(config: ControllerConfig, configured: readonly ConfiguredName[]): ApiName[] {
  const apis = apisIn(configured).map((name) => apiNames[name])
  return servesOidc(config, configured) ? [...apis, 'oidc'] : apis
}

/** API to base URLs (`https://host:port`), in the order of the listeners. */
export function bindingsOf(
  config: ControllerConfig,
): Partial<Record<BindingName, readonly string[]>> {
  const bindings: Partial<Record<BindingName, string[]>> = {}
  for (const { advertise, apis } of config.web) {
    const url = `https://${advertise}`
    for (const api of apisIn(apis)) (bindings[api] ??= []).push(url)
    if (servesOidc(config, apis)) (bindings['edge-oidc'] ??= []).push(url)
  }
  return bindings
}

/** Addresses that the other controllers show in their list of controllers. */
export function apiAddressesOf(config: ControllerConfig): ApiAddress[] {
  const routerAddress = routerAddressOf(config)
  const ofRouters = { api: ROUTER_ADDRESS_NAME, url: routerAddress ?? '', version: '' }
  const ofApis = config.web.flatMap(({ advertise, apis }) => {
    const paths = apisIn(apis).map((api): [string, string] => [api, apiPaths[api]])
    const all = servesOidc(config, apis) ? [...paths, ['edge-oidc', '/oidc'] as const] : paths
    return all.map(([api, path]) => ({ api, url: `https://${advertise}${path}`, version: 'v1' }))
  })
  return routerAddress === null ? ofApis : [...ofApis, ofRouters]
}

/**
 * `tls:host:port`: the host that peers reach this controller by is one that its certificate names.
 */
function routerAddressOf({ cluster, routers }: ControllerConfig): string | null {
  const bind = routers.bind === null ? null : parseHostPort(routers.bind)
  const advertised = parseHostPort(cluster.advertise)
  if (bind === null || advertised === null) return null
  return `tls:${formatHostPort({ host: advertised.host, port: bind.port })}`
}

export function apiLimitsOf({ api, oidc, enrollment, limits }: ControllerConfig): ApiLimits {
  return limitsWith({
    passwordHashesMax: passwordHashesFor(availableParallelism()),
    bodyBytesMax: api.bodyBytesMax,
    handlerTimeoutMs: api.requestTimeoutMs,
    sessionTimeoutMs: api.sessionTimeoutMs,
    accessTokenMs: oidc.accessTokenMs,
    refreshTokenMs: oidc.refreshTokenMs,
    oidcSessionMsMax: oidc.sessionMaxMs,
    staleSessionMsMax: api.staleSessionMaxMs,
    connectionsMax: limits.connectionsMax,
    connectionsPerSourceMax: limits.connectionsPerSourceMax,
    identityEnrollmentMs: enrollment.identityMinutes * MINUTE_MS,
    routerEnrollmentMs: enrollment.routerMinutes * MINUTE_MS,
    enrolledCertificateMs: enrollment.certificateDays * DAY_MS,
    sessionCertificateMs: enrollment.sessionCertificateMinutes * MINUTE_MS,
    waitingRequestsMax: limits.waitingRequestsMax,
    logInsMax: limits.logInsMax,
    passwordHashesWaitingMax: limits.logInsMax,
  })
}

/** Rules for places where keys of external JWT signers are fetched from. */
export function keyEndpointRulesOf({ api }: ControllerConfig, caPem: string): KeyEndpointRules {
  return {
    allowsReserved: api.reservedSignerHosts,
    allowsHttp: api.httpSignerKeys,
    refusedNetworks: api.refusedSignerNetworks,
    caPem,
  }
}

/**
 * A hash at a time for each two cores: log-ins leave a core to whoever writes. At most three, so
 * that one of libuv's four threads is left to the state store.
 */
export function passwordHashesFor(cores: number): number {
  return Math.min(3, Math.max(1, Math.floor(cores / 2)))
}

export function coreOptionsOf({ raft }: ControllerConfig): Partial<CoreOptions> {
  return {
    heartbeatTicks: raft.heartbeatMs / raft.tickMs,
    electionTimeoutTicks: raft.electionTimeoutMs / raft.tickMs,
    electionTimeoutTicksMax: raft.electionTimeoutMaxMs / raft.tickMs,
  }
}
