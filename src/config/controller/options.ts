import {
  option,
  optionalSection,
  REQUIRED_OPTION,
  requiredList,
  section,
  type ConfigValues,
  list,
} from '../engine/schema.ts'
import { DAY_MS, MIB, MINUTE_MS, HOUR_MS } from '../engine/units.ts'
import { boolean, choice, integer, path } from '../engine/values.ts'
import {
  addressPorts,
  choices,
  command,
  controllerId,
  hostNames,
  hostPortOrTexts,
  hostPortText,
  hostPortTexts,
  mountPath,
  networks,
  nullable,
  trustDomain,
  choicesOrNone,
  pattern,
} from './values.ts'
import { EVENT_NAMESPACES } from '../../lib/event-namespaces.ts'

/** Names of the sets of default times that raft-profiles.ts defines. */
export const RAFT_PROFILES = ['lan', 'wan'] as const

/** Lifetimes of OpenID Connect tokens and sessions. */
const oidcOptions = section('Sessions of OpenID Connect (OIDC).', {
  enabled: option(boolean(), {
    default: true,
    scope: 'cluster',
    why: 'Serve the OpenID provider. Without it clients log in by the REST log-in alone, at one controller each.',
  }),
  // Routers remember an ended session for only one hour, so no access token may be valid longer.
  accessTokenMs: option(integer(MINUTE_MS, 50 * MINUTE_MS), {
    default: 30 * MINUTE_MS,
    scope: 'cluster',
    why: 'Lifetime of access and id tokens. A client whose controllers are all down works for so long.',
  }),
  refreshTokenMs: option(integer(2 * MINUTE_MS, 90 * DAY_MS), {
    default: DAY_MS,
    scope: 'cluster',
    why: 'Lifetime of a refresh token. A session that is not used for so long ends.',
  }),
  sessionMaxMs: option(integer(HOUR_MS, 366 * DAY_MS), {
    default: 30 * DAY_MS,
    scope: 'cluster',
    why: 'A session ends this long after its log-in, however often it is refreshed.',
  }),
})

/** Destinations of events. Clients of HTTP streams have their own subscriptions instead. */
const eventOptions = section('Stream of events of the network; see events.md.', {
  file: section('File of events, one line of JSON each.', {
    path: option(nullable(path()), {
      default: null,
      why: 'Path of the event file, mode 0600, outside of data. null: none.',
    }),
    namespaces: option(choices(EVENT_NAMESPACES), {
      default: EVENT_NAMESPACES.filter((one) => one !== 'metrics'),
      why: 'Namespaces written to the file.',
    }),
    bytesMax: option(integer(64 * 1024, 64 * 1024 * MIB), {
      default: 64 * MIB,
      why: 'Size at which the file is rotated to path.1, path.1 to path.2, and so on.',
    }),
    keep: option(integer(1, 100), { default: 5, why: 'Number of rotated files kept.' }),
    fsync: option(boolean(), {
      default: false,
      why: 'Syncs each batch to disk before the next one. false: a crash of the host may lose the last seconds.',
    }),
  }),
  stdout: section('Events on standard output, between the log lines.', {
    namespaces: option(choicesOrNone(EVENT_NAMESPACES), {
      default: [],
      why: 'Namespaces written to standard output; none by default.',
    }),
  }),
  metricsIntervalMs: option(integer(1000, HOUR_MS), {
    default: MINUTE_MS,
    why: 'Interval of the metrics of this controller, while anyone reads them.',
  }),
  entityCountIntervalMs: option(integer(1000, DAY_MS), {
    default: 5 * MINUTE_MS,
    why: 'Interval at which the leader counts the records of each kind, while anyone reads that.',
  }),
  metricFilter: option(pattern(), {
    default: '',
    why: 'Metrics written to file and standard output, by name.',
  }),
  sourceFilter: option(pattern(), {
    default: '',
    why: 'The same, by the id of their controller or router.',
  }),
})

/** Limited, because each certificate needs a TLS context and a set of watched files. */
const SERVER_CERTIFICATES_MAX = 8
/** Half of the addresses that a router keeps for one controller. */
const ROUTER_ADDRESSES_MAX = 4

const identityOptions = section('Certificate and key of this controller, for peers and clients.', {
  cert: option(path(), {
    default: REQUIRED_OPTION,
    why: 'PEM: its own certificate, then the intermediates.',
  }),
  key: option(path(), {
    default: REQUIRED_OPTION,
    why: 'PEM private key of the certificate, mode 0600.',
  }),
  ca: option(path(), {
    default: REQUIRED_OPTION,
    why: 'PEM: the CA certificates that peers are verified against.',
  }),
  signer: section(
    'An authority of your own that signs leaves for this cluster, in place of one made by `cluster init`. Read when the cluster is formed, and not needed afterwards.',
    {
      cert: option(nullable(path()), {
        default: null,
        why: 'PEM: its CA certificate, then those above it that identity.ca does not hold.',
      }),
      key: option(nullable(path()), {
        default: null,
        why: 'PEM private key of it, mode 0600. Take it away once the cluster is formed.',
      }),
    },
  ),
})

/** @param why purpose of the section, shown in the documentation. */
function proxyProtocol(why: string) {
  return section(why, {
    from: option(networks(64), {
      default: [],
      why: 'Networks of the load balancers. The listener then accepts connections from these networks alone, each with a header of PROXY protocol version 2, whose address counts as that of the client in audit log, events and limits. Empty: no load balancer; clients connect directly.',
    }),
  })
}

const serverCertificates = list(
  SERVER_CERTIFICATES_MAX,
  'Certificates of other authorities for the HTTPS listeners, such as a public one for browsers. Shown to clients that ask for a name (SNI) that is in one of them and not in `identity.cert`.',
  {
    cert: option(path(), {
      default: REQUIRED_OPTION,
      why: 'PEM: the certificate, then the intermediates (`fullchain.pem`).',
    }),
    key: option(path(), {
      default: REQUIRED_OPTION,
      why: 'PEM private key of it, mode 0600. It may be another one at each renewal.',
    }),
  },
  { isReloaded: true },
)

export const API_NAMES = ['edge-client', 'edge-management', 'fabric', 'health-checks'] as const
/** APIs that a listener serves by default. */
export const WEB_DEFAULTS = [...API_NAMES, 'console'] as const
/**
 * All values that `apis` accepts; `metrics` and `spa` are served only if the list contains them.
 */
export const WEB_API_NAMES = [...WEB_DEFAULTS, 'spa', 'metrics'] as const
export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

/** All options of a controller, each with type, default and purpose. */
export const controllerOptions = {
  id: option(controllerId(), {
    default: REQUIRED_OPTION,
    why: 'Permanent id of this controller in the cluster. Must match its certificate.',
  }),
  data: option(path(), {
    default: REQUIRED_OPTION,
    why: 'Folder of the log, the state and the admin socket. Belongs to one controller alone; put it on a local disk.',
  }),
  trustDomain: option(trustDomain(), {
    default: REQUIRED_OPTION,
    scope: 'cluster',
    why: 'Trust domain of the SPIFFE ids of this cluster: spiffe://<trustDomain>/controller/<id>.',
  }),
  identity: identityOptions,
  cluster: section('The mesh between controllers (gRPC, mutual TLS 1.3).', {
    bind: option(hostPortText(), { default: REQUIRED_OPTION, why: 'Listen address for peers.' }),
    advertise: option(hostPortText(), {
      default: REQUIRED_OPTION,
      why: 'Address that peers connect to.',
    }),
    seeds: option(hostPortTexts(32), {
      default: [],
      why: 'Addresses to find peers that have moved; a name may resolve to several. Peers are verified by certificate.',
    }),
    resolvers: option(addressPorts(8), {
      default: [],
      why: 'DNS servers asked first for the names of peers and seeds, as address:port; empty: those of the host.',
    }),
    priority: option(integer(0, 100), {
      default: 50,
      isReloaded: true,
      why: 'The voter with the highest priority becomes leader after 30 s of good health. Among equal priorities leadership stays.',
    }),
    slowFsyncMs: option(integer(10, 60_000), {
      default: 250,
      isReloaded: true,
      why: 'A leader whose 99th percentile of log fsync stays above this transfers leadership to a faster voter.',
    }),
    slowLoopMs: option(integer(10, 60_000), {
      default: 200,
      isReloaded: true,
      why: 'The same for event loop delay.',
    }),
    snapshotBytesPerSecond: option(integer(MIB, 64 * 1024 * MIB), {
      default: 64 * MIB,
      why: 'Maximum bytes of snapshots sent per second, to all controllers together.',
    }),
  }),
  routers: section('The listener that routers connect to.', {
    bind: option(nullable(hostPortText()), {
      default: null,
      why: 'Router listener; null: no routers connect here. With the same text as the bind of a web listener, routers and clients share its port, as in packages of OpenZiti.',
    }),
    advertise: option(hostPortOrTexts(ROUTER_ADDRESSES_MAX), {
      default: [],
      why: 'Addresses that routers connect to; the certificate must contain these hosts. With several, such as one inside and one outside of a site, each router uses the first that answers. Empty: the host of cluster.advertise with the port of bind.',
    }),
    proxyProtocol: proxyProtocol(
      'Load balancers before the listener for routers. A port that web shares has the same networks in both.',
    ),
  }),
  web: requiredList(16, 'HTTPS listeners. One that serves every API is the usual case.', {
    bind: option(hostPortText(), { default: REQUIRED_OPTION, why: 'Listen address.' }),
    advertise: option(hostPortText(), {
      default: REQUIRED_OPTION,
      why: 'Address that clients connect to; the certificate must contain this host.',
    }),
    names: option(hostNames(16), {
      default: [],
      isReloaded: true,
      why: 'Further host names and IP addresses that clients use for this listener, such as that of a load balancer. The certificate must contain them; one issued by the cluster gets them automatically.',
    }),
    apis: option(choices(WEB_API_NAMES), {
      default: WEB_DEFAULTS,
      why: 'APIs served. console: the web console at /console/; needs edge-management and fabric beside it. spa: the static files of spa. metrics: only metrics and health checks, without log-in; needs a separate private address.',
    }),
    proxyProtocol: proxyProtocol('Load balancers before this listener; see load-balancers.md.'),
    spa: optionalSection('A folder of static files, such as the web console of OpenZiti.', {
      path: option(mountPath(), {
        default: '/zac',
        why: 'Where the files are served: one name behind a slash.',
      }),
      folder: option(path(), {
        default: REQUIRED_OPTION,
        why: 'Folder of the files, read once at the start. Paths that are no file get its index.html.',
      }),
    }),
  }),
  serverCertificates,
  raft: section('Raft timing; must be equal on every controller.', {
    profile: option(choice(RAFT_PROFILES), {
      default: 'lan',
      scope: 'cluster',
      why: 'Defaults of the times below. lan: as listed. wan: heartbeatMs 500, electionTimeoutMs 3000, electionTimeoutMaxMs 6000, for controllers with up to 200 ms each way between them. An option that is set wins.',
    }),
    tickMs: option(integer(5, 1000), {
      default: 50,
      scope: 'cluster',
      why: 'Raft clock tick; the other times of this section are multiples of it.',
    }),
    heartbeatMs: option(integer(5, 10_000), {
      default: 100,
      scope: 'cluster',
      why: 'Interval of leader heartbeats. Must be longer than a round trip between controllers.',
    }),
    electionTimeoutMs: option(integer(50, 60_000), {
      default: 600,
      scope: 'cluster',
      why: 'Minimum time without a heartbeat before an election. Shorter: faster failover; longer: tolerates slow disks and networks.',
    }),
    electionTimeoutMaxMs: option(integer(50, 120_000), {
      default: 1200,
      scope: 'cluster',
      why: 'Maximum of the randomized election timeout; a wider range makes split votes rarer.',
    }),
  }),
  log: section('The write-ahead log.', {
    retainEntries: option(integer(100, 10_000_000), {
      default: 20_000,
      why: 'Log entries kept for lagging controllers; a controller that is further behind gets a snapshot.',
    }),
    retainBytes: option(integer(64 * 1024, 64 * 1024 * MIB), {
      default: 8 * MIB,
      why: 'Maximum bytes of these entries, which are also kept in memory.',
    }),
    catchUpBytes: option(integer(64 * 1024, 64 * 1024 * MIB), {
      default: 96 * MIB,
      why: 'Maximum bytes of entries kept while a snapshot is sent; with more, the receiver needs another snapshot.',
    }),
    segmentBytes: option(integer(MIB, 1024 * MIB), {
      default: 16 * MIB,
      why: 'Size of a log segment, preallocated.',
    }),
    lowSpaceBytes: option(integer(0, 1024 * 1024 * MIB), {
      default: 64 * MIB,
      why: 'Free disk space below which the controller stops, so that there is room left for recovery.',
    }),
  }),
  audit: section('Audit log.', {
    log: option(boolean(), {
      default: true,
      why: 'Log line for each write that this controller received, independent of `logLevel`.',
    }),
  }),
  api: section('HTTP APIs.', {
    sessionTimeoutMs: option(integer(MINUTE_MS, 7 * DAY_MS), {
      default: 30 * MINUTE_MS,
      scope: 'cluster',
      why: 'A session ends after this long without a request.',
    }),
    staleSessionMaxMs: option(integer(0, DAY_MS), {
      default: 15 * MINUTE_MS,
      scope: 'cluster',
      why: 'How long a controller without contact to a leader accepts known sessions.',
    }),
    requestTimeoutMs: option(integer(1000, 10 * MINUTE_MS), {
      default: 10_000,
      why: 'Timeout of a request, answered with 503 TIMEOUT.',
    }),
    bodyBytesMax: option(integer(1024, 4 * MIB), {
      default: MIB,
      scope: 'cluster',
      why: 'A larger request body is answered 413.',
    }),
    reservedSignerHosts: option(boolean(), {
      default: false,
      why: 'Allows loopback and unspecified addresses for external JWT signers. For tests only: anyone allowed to write signers could make this controller call its own host. Link-local addresses and metadata services of clouds are always refused.',
    }),
    refusedSignerNetworks: option(networks(64), {
      default: [],
      why: 'Further networks that keys of external JWT signers are never fetched from, such as your internal ones.',
    }),
    httpSignerKeys: option(boolean(), {
      default: false,
      why: 'Allows fetching keys of external JWT signers without TLS. For tests only: an attacker on the path could supply keys.',
    }),
    signerCa: option(nullable(path()), {
      default: null,
      why: 'PEM: CA certificates that providers of such keys are verified against, beside those of the system. Read at the start.',
    }),
  }),
  oidc: oidcOptions,
  enrollment: section('One-time enrollment tokens of identities and routers.', {
    identityMinutes: option(integer(5, 365 * 24 * 60), {
      default: 180,
      isReloaded: true,
      why: 'Lifetime of the enrollment token created with an identity; an enrollment created separately names its own.',
    }),
    routerMinutes: option(integer(5, 365 * 24 * 60), {
      default: 180,
      isReloaded: true,
      why: 'The same for a router that is created or enrolls again.',
    }),
    certificateDays: option(integer(1, 10 * 365), {
      default: 365,
      why: 'Lifetime of the certificates issued to identities and routers; limited by that of the issuing authority.',
    }),
    sessionCertificateMinutes: option(integer(5, 7 * 24 * 60), {
      default: 12 * 60,
      why: 'The same for the certificate of one API session.',
    }),
  }),
  limits: section('Limits of one controller.', {
    outstandingWritesMax: option(integer(1, 65_536), {
      default: 4096,
      why: 'Concurrent writes through this controller; more, in total or of one caller, are refused with 429.',
    }),
    waitingRequestsMax: option(integer(16, 65_536), {
      default: 4096,
      why: 'Requests waiting for a write, an index or a password hash; limited in the same way.',
    }),
    logInsMax: option(integer(2, 4096), {
      default: 64,
      why: 'Concurrent log-ins, shared among source addresses; more are refused with 429.',
    }),
    writeTimeoutMs: option(integer(500, 5 * MINUTE_MS), {
      default: 8000,
      why: 'How long a write is retried across leader changes before its caller gets an error.',
    }),
    connectionsMax: option(integer(1, 1_000_000), {
      default: 10_000,
      isReloaded: true,
      why: 'Open connections of each HTTPS listener; more are closed at once.',
    }),
    connectionsPerSourceMax: option(integer(1, 1_000_000), {
      default: 2500,
      isReloaded: true,
      why: 'The same for one source (an IPv4 address, a /64 of IPv6). Raise it where all clients come through one proxy.',
    }),
  }),
  logLevel: option(choice(LOG_LEVELS), {
    default: 'info',
    isReloaded: true,
    why: 'Minimum severity of log lines.',
  }),
  logFile: section('Log file, instead of standard output.', {
    path: option(nullable(path()), {
      default: null,
      why: 'Path of the log file, mode 0600, outside of data. null: standard output, for the service manager.',
    }),
    bytesMax: option(integer(64 * 1024, 64 * 1024 * MIB), {
      default: 64 * MIB,
      why: 'Size at which the file is rotated to path.1, path.1 to path.2, and so on.',
    }),
    keep: option(integer(1, 100), { default: 5, why: 'Number of rotated files kept.' }),
  }),
  backup: section('Scheduled backups of this controller; see backup-and-restore.md.', {
    folder: option(nullable(path()), {
      default: null,
      isReloaded: true,
      why: 'Folder of the backups, outside of data. null: no backups. Set it on several controllers, on separate disks.',
    }),
    recipient: option(nullable(path()), {
      default: null,
      isReloaded: true,
      why: 'PEM: public key or certificate to encrypt backups for; required with backup.folder. Keep the private key away from controllers.',
    }),
    everyMs: option(integer(MINUTE_MS, 31 * DAY_MS), {
      default: DAY_MS,
      isReloaded: true,
      why: 'Interval between backups, also across restarts. A failed backup is retried within 5 minutes.',
    }),
    keep: option(integer(1, 1000), {
      default: 7,
      isReloaded: true,
      why: 'Number of backups of this controller that are kept; older ones are deleted once a new one is durable.',
    }),
    hook: option(command(32), {
      default: [],
      isSecret: true,
      isReloaded: true,
      why: 'Program and arguments run after each backup, with its path as the last argument, to copy it elsewhere. Run without a shell.',
    }),
    hookTimeoutMs: option(integer(1000, DAY_MS), {
      default: 10 * MINUTE_MS,
      isReloaded: true,
      why: 'Timeout of the hook; it is killed with its child processes.',
    }),
  }),
  events: eventOptions,
  threads: option(boolean(), {
    default: true,
    why: 'Runs consensus and disk in separate threads, so that requests never delay heartbeats. false: one thread, for debugging.',
  }),
} as const

/** Validated values of a configuration file, with defaults and absolute paths. */
export type ControllerConfig = ConfigValues<typeof controllerOptions>
