import { parseHostPort } from '../../lib/text/names.ts'
import { MINUTE_MS } from '../engine/units.ts'
import { advertisedHosts } from './advertised-hosts.ts'
import type { ControllerConfig } from './options.ts'

/** Reports a fault at the line of `key`. */
type ReportFault = (key: string, problem: string) => void

/** Checks the rules between options. Each value by itself was already validated. */
export function checkOptionRelations(config: ControllerConfig, fault: ReportFault): void {
  judgeTiming(config, fault)
  judgeTimeouts(config, fault)
  judgeTokens(config, fault)
  judgePorts(config, fault)
  judgeRouterAddress(config, fault)
  judgeBalancers(config, fault)
  judgeNames(config, fault)
  judgePages(config, fault)
  judgeMetricsListeners(config, fault)
  judgeSigner(config, fault)
  judgeCertificates(config, fault)
  judgePlaces(config, fault)
  judgeEventFile(config, fault)
  judgeRecipient(config, fault)
}

function judgeTiming({ raft }: ControllerConfig, fault: ReportFault): void {
  for (const key of ['heartbeatMs', 'electionTimeoutMs', 'electionTimeoutMaxMs'] as const) {
    if (raft[key] % raft.tickMs !== 0) {
      fault(`raft.${key}`, `must be a multiple of raft.tickMs (${raft.tickMs})`)
    }
  }
  // With an election timeout shorter than four heartbeats, one lost frame plus one slow disk write
  // could trigger an election.
  if (raft.electionTimeoutMs < 4 * raft.heartbeatMs) {
    const problem = `must be at least 4 times raft.heartbeatMs (${raft.heartbeatMs})`
    fault('raft.electionTimeoutMs', problem)
  }
  if (raft.electionTimeoutMaxMs < raft.electionTimeoutMs + 2 * raft.tickMs) {
    const problem = `must exceed raft.electionTimeoutMs (${raft.electionTimeoutMs}) by 2 ticks or more, or elections tie`
    fault('raft.electionTimeoutMaxMs', problem)
  }
}

function judgeTimeouts({ api, limits }: ControllerConfig, fault: ReportFault): void {
  if (limits.writeTimeoutMs < api.requestTimeoutMs) return
  const problem = `must be below api.requestTimeoutMs (${api.requestTimeoutMs}), or callers never learn the outcome of a write`
  fault('limits.writeTimeoutMs', problem)
}

/**
 * The refresh token must be valid longer than the access token, because a client refreshes just
 * before its access token expires.
 */
function judgeTokens({ oidc }: ControllerConfig, fault: ReportFault): void {
  if (oidc.refreshTokenMs < oidc.accessTokenMs + MINUTE_MS) {
    const problem = `must exceed oidc.accessTokenMs (${oidc.accessTokenMs}) by a minute or more`
    fault('oidc.refreshTokenMs', problem)
  }
  if (oidc.sessionMaxMs < oidc.accessTokenMs) {
    fault('oidc.sessionMaxMs', `must not be below oidc.accessTokenMs (${oidc.accessTokenMs})`)
  }
}

/**
 * The log file, the event file and the backup folder must not be in the data folder, because
 * operators and recovery move, replace and delete that folder as a whole.
 */
function judgePlaces({ data, ...config }: ControllerConfig, fault: ReportFault): void {
  const places: Readonly<Record<string, string | null>> = {
    'logFile.path': config.logFile.path,
    'events.file.path': config.events.file.path,
    'backup.folder': config.backup.folder,
  }
  for (const [key, path] of Object.entries(places)) {
    if (path !== null && `${path}/`.startsWith(`${data}/`)) {
      fault(key, `must be outside of data (${data})`)
    }
  }
}

/**
 * The event file and the log file must be different files, because each writer rotates its file.
 */
function judgeEventFile({ events, logFile }: ControllerConfig, fault: ReportFault): void {
  const { path } = events.file
  if (path === null || path !== logFile.path) return
  fault('events.file.path', `is also the log file (${path}); choose another file for events`)
}

/**
 * Scheduled backups need a recipient whose key encrypts them, because they contain the cluster's
 * secrets.
 */
function judgeRecipient({ backup }: ControllerConfig, fault: ReportFault): void {
  if (backup.folder === null || backup.recipient !== null) return
  const problem = 'requires backup.recipient, the public key that backups are encrypted for'
  fault('backup.folder', problem)
}

function judgeSigner({ identity: { signer } }: ControllerConfig, fault: ReportFault): void {
  if ((signer.cert === null) === (signer.key === null)) return
  const [given, missing] = signer.cert === null ? ['key', 'cert'] : ['cert', 'key']
  fault(`identity.signer.${given}`, `requires identity.signer.${missing}; set both or neither`)
}

/**
 * Two certificates must not use the same file: each is renewed separately and would overwrite the
 * other.
 */
function judgeCertificates(
  { identity, serverCertificates }: ControllerConfig,
  fault: ReportFault,
): void {
  const certs = [identity.cert, ...serverCertificates.map(({ cert }) => cert)]
  for (const [at, { cert }] of serverCertificates.entries()) {
    if (certs.indexOf(cert) === at + 1) continue
    const problem = `is named more than once (${cert}); give each certificate a separate file`
    fault(`serverCertificates[${at}].cert`, problem)
  }
}

function judgePorts({ cluster, routers, web }: ControllerConfig, fault: ReportFault): void {
  const binds = [
    { key: 'cluster.bind', bind: cluster.bind },
    ...(routers.bind === null ? [] : [{ key: 'routers.bind', bind: routers.bind }]),
    ...web.map(({ bind }, at) => ({ key: `web[${at}].bind`, bind })),
  ]
  for (const [at, { key, bind }] of binds.entries()) {
    const other = binds
      .slice(0, at)
      .find((earlier) => isSameListener(earlier.bind, bind) && !isSharedPort(earlier, bind))
    if (other === undefined) continue
    const remedy =
      other.key === 'routers.bind' ? '; with the same text, both would share the port' : ''
    fault(key, `takes the same address as ${other.key} (${other.bind})${remedy}`)
  }
}

function judgeRouterAddress({ routers }: ControllerConfig, fault: ReportFault): void {
  if (routers.advertise.length === 0 || routers.bind !== null) return
  fault('routers.advertise', 'requires routers.bind, the address to listen on')
}

/**
 * Maximum hosts in a controller's certificate. A controller with more hosts cannot get a
 * certificate when it joins.
 */
const CERTIFICATE_HOSTS_MAX = 32

function judgeNames(config: ControllerConfig, fault: ReportFault): void {
  const { length } = advertisedHosts(config)
  const at = config.web.findIndex(({ names }) => names.length > 0)
  if (length <= CERTIFICATE_HOSTS_MAX || at < 0) return
  const problem = `gives the certificate ${length} hosts with the other listeners; ${CERTIFICATE_HOSTS_MAX} are allowed`
  fault(`web[${at}].names`, problem)
}

/**
 * Checks the networks of load balancers. A port that the listeners for routers and clients share
 * must have the same networks for both: the PROXY header comes before the TLS handshake, which
 * selects the listener.
 */
function judgeBalancers({ routers, web }: ControllerConfig, fault: ReportFault): void {
  const listeners = [
    { key: 'routers', ...routers },
    ...web.map((listener, at) => ({ key: `web[${at}]`, ...listener })),
  ]
  for (const { key, bind, proxyProtocol } of listeners) {
    const option = `${key}.proxyProtocol.from`
    // @guard client-address-of-a-stranger--everyone
    if (proxyProtocol.from.some((network) => network.endsWith('/0'))) {
      fault(option, 'lets every host choose its address; list the networks of the load balancers')
    }
    if (bind === null && proxyProtocol.from.length > 0) {
      fault(option, 'requires routers.bind, the address to listen on')
    }
    if (key === 'routers' || bind !== routers.bind) continue
    if (isSameSet(proxyProtocol.from, routers.proxyProtocol.from)) continue
    fault(option, 'must have the networks of routers.proxyProtocol.from, which shares the port')
  }
}

function isSameSet(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((one) => b.includes(one))
}

/**
 * Whether routers and clients share a port. Sharing is allowed: the TLS application protocol (ALPN)
 * selects the listener.
 */
function isSharedPort(earlier: { readonly key: string; readonly bind: string }, bind: string) {
  return earlier.key === 'routers.bind' && earlier.bind === bind
}

/**
 * Checks the pages that a listener serves. The console sends its requests to the listener that
 * serves it, so that listener must also serve the console's APIs. A folder of pages is served only
 * if `apis` contains `spa`.
 */
function judgePages({ web }: ControllerConfig, fault: ReportFault): void {
  for (const [at, { apis, spa }] of web.entries()) {
    const asked = ['edge-management', 'fabric'] as const
    const missing = apis.includes('console') ? asked.filter((api) => !apis.includes(api)) : []
    if (missing.length > 0) {
      fault(`web[${at}].apis`, `console needs ${missing.join(' and ')} on the same listener`)
    }
    if (apis.includes('spa') && spa === null) {
      fault(`web[${at}].spa`, 'is missing: spa in apis serves its folder')
    } else if (!apis.includes('spa') && spa !== null) {
      fault(`web[${at}].apis`, 'has no spa, so that the folder of spa is not served; add it')
    }
  }
}

/**
 * A listener for metrics must serve nothing else and bind a specific address, because it serves the
 * metrics without authentication.
 */
function judgeMetricsListeners({ web }: ControllerConfig, fault: ReportFault): void {
  for (const [at, { bind, apis }] of web.entries()) {
    if (!apis.includes('metrics')) continue
    if (apis.length > 1) {
      const problem = 'metrics needs no log-in; move it to a separate listener on a private address'
      fault(`web[${at}].apis`, problem)
    } else if (EVERY_HOST.has(parseHostPort(bind)?.host ?? '')) {
      const problem = `exposes the metrics on every address of this host (${bind}); bind a private address`
      fault(`web[${at}].bind`, problem)
    }
  }
}

const EVERY_HOST = new Set(['0.0.0.0', '::'])

function isSameListener(a: string, b: string): boolean {
  const first = parseHostPort(a)
  const second = parseHostPort(b)
  if (first === null || second === null || first.port !== second.port) return false
  return first.host === second.host || EVERY_HOST.has(first.host) || EVERY_HOST.has(second.host)
}
