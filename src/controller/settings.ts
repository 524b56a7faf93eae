import { availableParallelism } from 'node:os'

import type { KeyFetchRules } from '../auth/tokens/key-fetcher.ts'
import { type ApiLimits, overrideApiLimits } from '../api/limits.ts'
import type { ApiName } from '../auth/principal/permissions.ts'
import type { ApiVersionsKey } from '../api/api-deps.ts'
import { clusterScopeOptions } from '../config/controller/cluster-scope-options.ts'
import type { API_NAMES, ControllerConfig, WEB_API_NAMES } from '../config/controller/options.ts'
import { formatHostPort, parseHostPort } from '../lib/text/names.ts'
import { type ApiAddress, ROUTER_ADDRESS_NAME } from '../ports/cluster-view.ts'
import type { SharedOption } from '../ports/membership.ts'
import type { CoreOptions } from '../raft/options.ts'

// Converts the validated configuration into options of components.

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
 * Path of each API below its listener's base URL. Controllers exchange complete URLs, so each
 * controller needs only its own paths.
 */
const apiPaths: Readonly<Record<ConfiguredApi, string>> = {
  'edge-client': '/edge/client/v1',
  'edge-management': '/edge/management/v1',
  fabric: '/fabric/v1',
  'health-checks': '/health-checks',
}

/**
 * The APIs in a list. The result omits `metrics` and pages, which are not APIs, so that clients do
 * not see them as such.
 */
function apisIn(configured: readonly ConfiguredName[]): ConfiguredApi[] {
  return configured.filter((name): name is ConfiguredApi => Object.hasOwn(apiNames, name))
}

/**
 * Whether the listener serves the OpenID provider: OpenZiti clients expect it on the listener of
 * the client API.
 */
function servesOidc({ oidc }: ControllerConfig, configured: readonly ConfiguredName[]): boolean {
  return oidc.enabled && configured.includes('edge-client')
}

export function configuredApis(
  config: ControllerConfig,
  configured: readonly ConfiguredName[],
): ApiName[] {
  const apis = apisIn(configured).map((name) => apiNames[name])
  return servesOidc(config, configured) ? [...apis, 'oidc'] : apis
}

/** Base URLs (`https://host:port`) of each API, in the order of the configured listeners. */
export function apiBaseUrls(
  config: ControllerConfig,
): Partial<Record<ApiVersionsKey, readonly string[]>> {
  const bindings: Partial<Record<ApiVersionsKey, string[]>> = {}
  for (const { advertise, apis } of config.web) {
    const url = `https://${advertise}`
    for (const api of apisIn(apis)) (bindings[api] ??= []).push(url)
    if (servesOidc(config, apis)) (bindings['edge-oidc'] ??= []).push(url)
  }
  return bindings
}

/**
 * This controller's API addresses and its addresses for routers, as it announces them to the other
 * members.
 */
export function ownApiAddresses(config: ControllerConfig): ApiAddress[] {
  const ofRouters = routerAddressesOf(config).map((url) => {
    return { api: ROUTER_ADDRESS_NAME, url, version: '' }
  })
  const ofApis = config.web.flatMap(({ advertise, apis }) => {
    const paths = apisIn(apis).map((api): [string, string] => [api, apiPaths[api]])
    const all = servesOidc(config, apis) ? [...paths, ['edge-oidc', '/oidc'] as const] : paths
    return all.map(([api, path]) => ({ api, url: `https://${advertise}${path}`, version: 'v1' }))
  })
  return [...ofApis, ...ofRouters]
}

/**
 * `tls:host:port` to which routers connect. Without `routers.advertise`, the host is the one that
 * peers use, because the controller's certificate contains that name.
 */
function routerAddressesOf({ cluster, routers }: ControllerConfig): string[] {
  const bind = routers.bind === null ? null : parseHostPort(routers.bind)
  if (bind === null) return []
  if (routers.advertise.length > 0) return routers.advertise.map((address) => `tls:${address}`)
  const advertised = parseHostPort(cluster.advertise)
  if (advertised === null) return []
  return [`tls:${formatHostPort({ host: advertised.host, port: bind.port })}`]
}

export function configuredApiLimits({
  api,
  oidc,
  enrollment,
  limits,
}: ControllerConfig): ApiLimits {
  return overrideApiLimits({
    passwordHashesMax: passwordHashConcurrency(availableParallelism()),
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

/** Rules for the URLs from which the controller fetches the keys of external JWT signers. */
export function configuredKeyFetchRules({ api }: ControllerConfig, caPem: string): KeyFetchRules {
  return {
    allowsReserved: api.reservedSignerHosts,
    allowsHttp: api.httpSignerKeys,
    refusedNetworks: api.refusedSignerNetworks,
    caPem,
  }
}

/**
 * Number of concurrent password hashes: one for each two cores, so that log-ins leave processor
 * time for writes. At most three, so that one of libuv's four threads remains for the state store.
 */
export function passwordHashConcurrency(cores: number): number {
  return Math.min(3, Math.max(1, Math.floor(cores / 2)))
}

export function configuredCoreOptions({ raft }: ControllerConfig): Partial<CoreOptions> {
  return {
    heartbeatTicks: raft.heartbeatMs / raft.tickMs,
    electionTimeoutTicks: raft.electionTimeoutMs / raft.tickMs,
    electionTimeoutTicksMax: raft.electionTimeoutMaxMs / raft.tickMs,
  }
}

/**
 * The options that must be equal on every controller, as controllers publish them to each other.
 */
export function sharedOptionList(config: ControllerConfig): readonly SharedOption[] {
  return [...clusterScopeOptions(config)].map(([name, value]) => ({
    name,
    value: JSON.stringify(value),
  }))
}
