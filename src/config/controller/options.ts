import {
  defineOption,
  defineOptionalSection,
  REQUIRED_OPTION,
  defineRequiredSectionList,
  defineSection,
  type ConfigValues,
  defineSectionList,
} from '../engine/schema.ts'
import { DAY_MS, MIB, MINUTE_MS, HOUR_MS } from '../engine/units.ts'
import { booleanType, choiceType, integerType, pathType } from '../engine/values.ts'
import {
  ipPortListType,
  choicesType,
  commandType,
  controllerIdType,
  hostNamesType,
  hostPortOrListType,
  hostPortTextType,
  hostPortTextsType,
  mountPathType,
  cidrListType,
  nullableType,
  trustDomainType,
  choicesOrNoneType,
  patternType,
} from './values.ts'
import { EVENT_NAMESPACES } from '../../lib/event-namespaces.ts'

/** Names of the sets of default times that raft-profiles.ts defines. */
export const RAFT_PROFILES = ['lan', 'wan'] as const

/** Lifetimes of OpenID Connect tokens and sessions. */
const oidcOptions = defineSection('Sessions of OpenID Connect (OIDC).', {
  enabled: defineOption(booleanType(), {
    default: true,
    scope: 'cluster',
    why: 'Serves the OpenID provider. If false, clients can use only the REST log-in, and programs with an OpenZiti SDK then use only one controller.',
  }),
  // After one hour, routers forget that a session has ended, so no access token may be valid
  // longer.
  accessTokenMs: defineOption(integerType(MINUTE_MS, 50 * MINUTE_MS), {
    default: 30 * MINUTE_MS,
    scope: 'cluster',
    why: 'Lifetime of access and id tokens. While no controller can be reached, a client can work until its access token expires.',
  }),
  // The revocation of one token lasts 91 days, so no refresh token may be valid longer.
  refreshTokenMs: defineOption(integerType(2 * MINUTE_MS, 90 * DAY_MS), {
    default: DAY_MS,
    scope: 'cluster',
    why: 'Lifetime of a refresh token. A session that is not used for this long ends.',
  }),
  sessionMaxMs: defineOption(integerType(HOUR_MS, 366 * DAY_MS), {
    default: 30 * DAY_MS,
    scope: 'cluster',
    why: 'A session ends this long after its log-in, however often it is refreshed.',
  }),
})

/**
 * Destinations of events, and intervals of periodic events. Clients of HTTP streams subscribe for
 * themselves instead.
 */
const eventOptions = defineSection('Stream of events of the network; see events.md.', {
  file: defineSection('File of events, one line of JSON each.', {
    path: defineOption(nullableType(pathType()), {
      default: null,
      why: 'Path of the event file, mode 0600, outside of data. null: no event file.',
    }),
    namespaces: defineOption(choicesType(EVENT_NAMESPACES), {
      default: EVENT_NAMESPACES.filter((one) => one !== 'metrics'),
      why: 'Namespaces written to the file.',
    }),
    bytesMax: defineOption(integerType(64 * 1024, 64 * 1024 * MIB), {
      default: 64 * MIB,
      why: 'Size at which the file is rotated to path.1, path.1 to path.2, and so on.',
    }),
    keep: defineOption(integerType(1, 100), { default: 5, why: 'Number of rotated files kept.' }),
    fsync: defineOption(booleanType(), {
      default: false,
      why: 'Syncs each batch of events to disk before the next batch is written. false: a crash of the host may lose the last seconds.',
    }),
  }),
  stdout: defineSection('Events on standard output, between the log lines.', {
    namespaces: defineOption(choicesOrNoneType(EVENT_NAMESPACES), {
      default: [],
      why: 'Namespaces written to standard output; none by default.',
    }),
  }),
  metricsIntervalMs: defineOption(integerType(1000, HOUR_MS), {
    default: MINUTE_MS,
    why: 'Interval at which this controller emits its metrics, while anyone subscribes to them.',
  }),
  entityCountIntervalMs: defineOption(integerType(1000, DAY_MS), {
    default: 5 * MINUTE_MS,
    why: 'Interval at which the leader emits the number of records of each kind, while anyone subscribes to these events.',
  }),
  metricFilter: defineOption(patternType(), {
    default: '',
    why: 'Pattern for names of metrics: only matching metrics are written to file and standard output.',
  }),
  sourceFilter: defineOption(patternType(), {
    default: '',
    why: 'Pattern for ids of controllers and routers: only metrics from matching controllers and routers are written to file and standard output.',
  }),
})

/**
 * Maximum number of server certificates. The number is limited, because each certificate needs a
 * TLS context and a set of watched files.
 */
const SERVER_CERTIFICATES_MAX = 8
/**
 * Maximum addresses at which routers reach this controller: half of the addresses that a router
 * keeps for one controller.
 */
const ROUTER_ADDRESSES_MAX = 4

const identityOptions = defineSection(
  'Certificate and key of this controller, for peers and clients.',
  {
    cert: defineOption(pathType(), {
      default: REQUIRED_OPTION,
      why: 'PEM: the certificate of this controller, then the intermediates.',
    }),
    key: defineOption(pathType(), {
      default: REQUIRED_OPTION,
      why: 'PEM private key of the certificate, mode 0600.',
    }),
    ca: defineOption(pathType(), {
      default: REQUIRED_OPTION,
      why: 'PEM: the CA certificates with which this controller verifies its peers.',
    }),
    signer: defineSection(
      'Your own authority, which signs the certificates of identities and routers instead of an authority that `cluster init` creates. The controller reads it only when the cluster is formed.',
      {
        cert: defineOption(nullableType(pathType()), {
          default: null,
          why: 'PEM: the CA certificate of the authority, then the CA certificates above it that identity.ca does not contain.',
        }),
        key: defineOption(nullableType(pathType()), {
          default: null,
          why: 'PEM private key of the authority, mode 0600. Delete this file once the cluster is formed.',
        }),
      },
    ),
  },
)

/** @param why purpose of the section, for the generated documentation. */
function proxyProtocol(why: string) {
  return defineSection(why, {
    from: defineOption(cidrListType(64), {
      default: [],
      why: 'Networks of the load balancers. The listener then accepts connections only from these networks, and only with a header of PROXY protocol version 2. Audit log, events and limits use the address in this header as the address of the client. Empty: no load balancer; clients connect directly.',
    }),
  })
}

const serverCertificates = defineSectionList(
  SERVER_CERTIFICATES_MAX,
  'Certificates of other authorities for the HTTPS listeners, such as a public certificate for browsers. A listener presents such a certificate if the client requests a name (SNI) that it contains and `identity.cert` does not.',
  {
    cert: defineOption(pathType(), {
      default: REQUIRED_OPTION,
      why: 'PEM: the certificate, then the intermediates (`fullchain.pem`).',
    }),
    key: defineOption(pathType(), {
      default: REQUIRED_OPTION,
      why: 'PEM private key of the certificate, mode 0600. The key may change at each renewal.',
    }),
  },
  { isReloaded: true },
)

export const API_NAMES = ['edge-client', 'edge-management', 'fabric', 'health-checks'] as const
/** APIs that a listener serves by default. */
export const DEFAULT_WEB_API_NAMES = [...API_NAMES, 'console'] as const
/**
 * All values that `apis` accepts; `metrics` and `spa` are served only if the list contains them.
 */
export const WEB_API_NAMES = [...DEFAULT_WEB_API_NAMES, 'spa', 'metrics'] as const
export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

/** All options of a controller, each with type, default and purpose. */
export const controllerOptions = {
  id: defineOption(controllerIdType(), {
    default: REQUIRED_OPTION,
    why: 'Permanent id of this controller in the cluster. Must match its certificate.',
  }),
  data: defineOption(pathType(), {
    default: REQUIRED_OPTION,
    why: 'Folder of the log, the state and the admin socket. Only one controller may use it; put it on a local disk.',
  }),
  trustDomain: defineOption(trustDomainType(), {
    default: REQUIRED_OPTION,
    scope: 'cluster',
    why: 'Trust domain of the SPIFFE ids of this cluster: spiffe://<trustDomain>/controller/<id>.',
  }),
  identity: identityOptions,
  cluster: defineSection('The mesh between controllers (gRPC, mutual TLS 1.3).', {
    bind: defineOption(hostPortTextType(), {
      default: REQUIRED_OPTION,
      why: 'Listen address for peers.',
    }),
    advertise: defineOption(hostPortTextType(), {
      default: REQUIRED_OPTION,
      why: 'Address that peers connect to.',
    }),
    seeds: defineOption(hostPortTextsType(32), {
      default: [],
      why: 'Addresses at which this controller looks for peers whose known addresses have changed; a name may resolve to several addresses. Peers are verified by certificate.',
    }),
    resolvers: defineOption(ipPortListType(8), {
      default: [],
      why: 'DNS servers that are queried first for the names of peers and seeds, as address:port; empty: the DNS servers of the host.',
    }),
    priority: defineOption(integerType(0, 100), {
      default: 50,
      isReloaded: true,
      why: 'The voter with the highest priority becomes leader after 30 s of good health. Between voters of equal priority, leadership does not move.',
    }),
    slowFsyncMs: defineOption(integerType(10, 60_000), {
      default: 250,
      isReloaded: true,
      why: 'If the 99th percentile of log fsync times stays above this value, the leader transfers leadership to a faster voter.',
    }),
    slowLoopMs: defineOption(integerType(10, 60_000), {
      default: 200,
      isReloaded: true,
      why: 'If the 99th percentile of event loop delays stays above this value, the leader transfers leadership to a faster voter.',
    }),
    snapshotBytesPerSecond: defineOption(integerType(MIB, 64 * 1024 * MIB), {
      default: 64 * MIB,
      why: 'Maximum bytes per second with which this controller sends snapshots, for all receivers together. Members that rebuild their state in quarantine get the same rate again.',
    }),
  }),
  routers: defineSection('The listener that routers connect to.', {
    bind: defineOption(nullableType(hostPortTextType()), {
      default: null,
      why: 'Router listener; null: no routers connect here. If the value is the same text as the bind of a web listener, routers and clients share this port, as in OpenZiti packages.',
    }),
    advertise: defineOption(hostPortOrListType(ROUTER_ADDRESSES_MAX), {
      default: [],
      why: 'Addresses that routers connect to; the certificate must contain these hosts. With several addresses, such as one inside and one outside of a site, each router uses the first address that answers. Empty: the host of cluster.advertise with the port of bind.',
    }),
    proxyProtocol: proxyProtocol(
      'Load balancers in front of the listener for routers. If a web listener shares the port, configure the same networks there.',
    ),
  }),
  web: defineRequiredSectionList(
    16,
    'HTTPS listeners. Usually there is one, which serves every API.',
    {
      bind: defineOption(hostPortTextType(), { default: REQUIRED_OPTION, why: 'Listen address.' }),
      advertise: defineOption(hostPortTextType(), {
        default: REQUIRED_OPTION,
        why: 'Address that clients connect to; the certificate must contain this host.',
      }),
      names: defineOption(hostNamesType(16), {
        default: [],
        isReloaded: true,
        why: 'Further host names and IP addresses that clients use for this listener, such as the name of a load balancer. The certificate must contain them; a certificate that the cluster issues gets them automatically.',
      }),
      apis: defineOption(choicesType(WEB_API_NAMES), {
        default: DEFAULT_WEB_API_NAMES,
        why: 'APIs served. console: the web console at /console/; requires edge-management and fabric in the same list. spa: the static files of the section spa. metrics: only metrics and health checks, without log-in; requires a separate private address.',
      }),
      proxyProtocol: proxyProtocol(
        'Load balancers in front of this listener; see load-balancers.md.',
      ),
      spa: defineOptionalSection('A folder of static files, such as the web console of OpenZiti.', {
        path: defineOption(mountPathType(), {
          default: '/zac',
          why: 'Path at which the files are served: a slash and one name.',
        }),
        folder: defineOption(pathType(), {
          default: REQUIRED_OPTION,
          why: 'Folder with the files, read once at the start. A path that names no file gets index.html of this folder.',
        }),
      }),
    },
  ),
  serverCertificates,
  raft: defineSection('Raft timing; must be equal on every controller.', {
    profile: defineOption(choiceType(RAFT_PROFILES), {
      default: 'lan',
      scope: 'cluster',
      why: 'Defaults of the other times in this section. lan: as listed. wan: heartbeatMs 500, electionTimeoutMs 3000, electionTimeoutMaxMs 6000, for up to 200 ms each way between controllers. An option that you set takes precedence.',
    }),
    tickMs: defineOption(integerType(5, 1000), {
      default: 50,
      scope: 'cluster',
      why: 'Raft clock tick; the other times in this section must be multiples of it.',
    }),
    heartbeatMs: defineOption(integerType(5, 10_000), {
      default: 100,
      scope: 'cluster',
      why: 'Interval of leader heartbeats. Must be longer than a round trip between controllers.',
    }),
    electionTimeoutMs: defineOption(integerType(50, 60_000), {
      default: 600,
      scope: 'cluster',
      why: 'Minimum time without a heartbeat before an election. Shorter: faster failover; longer: tolerates slow disks and networks.',
    }),
    electionTimeoutMaxMs: defineOption(integerType(50, 120_000), {
      default: 1200,
      scope: 'cluster',
      why: 'Maximum of the randomized election timeout; a wider range makes split votes rarer.',
    }),
  }),
  log: defineSection('The write-ahead log.', {
    retainEntries: defineOption(integerType(100, 10_000_000), {
      default: 20_000,
      why: 'Number of log entries retained for lagging controllers; a controller that needs older entries gets a snapshot.',
    }),
    retainBytes: defineOption(integerType(64 * 1024, 64 * 1024 * MIB), {
      default: 8 * MIB,
      why: 'Maximum bytes of the retained entries, which are also in memory.',
    }),
    catchUpBytes: defineOption(integerType(64 * 1024, 64 * 1024 * MIB), {
      default: 96 * MIB,
      why: 'Maximum bytes of entries retained while a snapshot is sent. If more bytes are written during the transfer, the receiver needs another snapshot.',
    }),
    segmentBytes: defineOption(integerType(MIB, 1024 * MIB), {
      default: 16 * MIB,
      why: 'Size of a log segment, preallocated.',
    }),
    lowSpaceBytes: defineOption(integerType(0, 1024 * 1024 * MIB), {
      default: 64 * MIB,
      why: 'If less disk space than this is free, the controller stops, so that some space is left for recovery.',
    }),
  }),
  audit: defineSection('Audit log.', {
    log: defineOption(booleanType(), {
      default: true,
      why: 'Logs a line for each write that this controller received, independent of `logLevel`.',
    }),
  }),
  api: defineSection('HTTP APIs.', {
    sessionTimeoutMs: defineOption(integerType(MINUTE_MS, 7 * DAY_MS), {
      default: 30 * MINUTE_MS,
      scope: 'cluster',
      why: 'A session ends after this long without a request. Sessions of OpenID Connect end by the options of `oidc` instead.',
    }),
    staleSessionMaxMs: defineOption(integerType(0, DAY_MS), {
      default: 15 * MINUTE_MS,
      scope: 'cluster',
      why: 'How long a controller that has no contact with a leader still accepts known sessions.',
    }),
    requestTimeoutMs: defineOption(integerType(1000, 10 * MINUTE_MS), {
      default: 10_000,
      why: 'Timeout of a request, answered with 503 TIMEOUT. It includes the time in which the request waits for processor time, but not the time in which its body arrives.',
    }),
    bodyBytesMax: defineOption(integerType(1024, 4 * MIB), {
      default: MIB,
      scope: 'cluster',
      why: 'Maximum size of a request body; a larger body gets 413.',
    }),
    reservedSignerHosts: defineOption(booleanType(), {
      default: false,
      why: 'Allows loopback and unspecified addresses for external JWT signers. For tests only: anyone allowed to write signers could make this controller call its own host. Link-local addresses and metadata services of clouds are always refused.',
    }),
    refusedSignerNetworks: defineOption(cidrListType(64), {
      default: [],
      why: 'Further networks from which controllers never fetch keys of external JWT signers, such as your internal networks.',
    }),
    httpSignerKeys: defineOption(booleanType(), {
      default: false,
      why: 'Allows fetching keys of external JWT signers without TLS. For tests only: an attacker on the path could supply keys.',
    }),
    signerCa: defineOption(nullableType(pathType()), {
      default: null,
      why: 'PEM: CA certificates, in addition to those of the system, with which the controller verifies the hosts that serve keys of external JWT signers. Read at the start.',
    }),
  }),
  oidc: oidcOptions,
  enrollment: defineSection('One-time enrollment tokens of identities and routers.', {
    identityMinutes: defineOption(integerType(5, 365 * 24 * 60), {
      default: 180,
      isReloaded: true,
      why: 'Lifetime of an enrollment token that is created together with its identity; an enrollment that is created separately sets its own expiry.',
    }),
    routerMinutes: defineOption(integerType(5, 365 * 24 * 60), {
      default: 180,
      isReloaded: true,
      why: 'Lifetime of the enrollment token of a router that is created, or that must enroll again.',
    }),
    certificateDays: defineOption(integerType(1, 10 * 365), {
      default: 365,
      why: 'Lifetime of the certificates issued to identities and routers, and of session certificates issued at log-in; limited by the expiry of the issuing authority.',
    }),
    sessionCertificateMinutes: defineOption(integerType(5, 7 * 24 * 60), {
      default: 12 * 60,
      why: 'Lifetime of a certificate that is issued for one API session after its log-in.',
    }),
  }),
  limits: defineSection('Limits of one controller.', {
    outstandingWritesMax: defineOption(integerType(1, 65_536), {
      default: 4096,
      why: 'Maximum concurrent writes through this controller. Further writes get 429, also if one caller exceeds its share.',
    }),
    waitingRequestsMax: defineOption(integerType(16, 65_536), {
      default: 4096,
      why: 'Maximum requests that wait for a write, a log index or a password hash. Further requests get 429, also if one caller exceeds its share.',
    }),
    logInsMax: defineOption(integerType(2, 4096), {
      default: 64,
      why: 'Maximum concurrent log-ins, shared among sources (IPv4 addresses, /64s of IPv6). Further log-ins get 429.',
    }),
    writeTimeoutMs: defineOption(integerType(500, 5 * MINUTE_MS), {
      default: 8000,
      why: 'How long a write is retried across leader changes before its caller gets an error.',
    }),
    connectionsMax: defineOption(integerType(1, 1_000_000), {
      default: 10_000,
      isReloaded: true,
      why: 'Maximum open connections of each HTTPS listener. Further connections are closed immediately.',
    }),
    connectionsPerSourceMax: defineOption(integerType(1, 1_000_000), {
      default: 2500,
      isReloaded: true,
      why: 'Maximum open connections from one source (an IPv4 address, a /64 of IPv6) to each HTTPS listener. Raise this value if all clients connect through one proxy.',
    }),
  }),
  logLevel: defineOption(choiceType(LOG_LEVELS), {
    default: 'info',
    isReloaded: true,
    why: 'Minimum severity of log lines.',
  }),
  logFile: defineSection('Log file, instead of standard output.', {
    path: defineOption(nullableType(pathType()), {
      default: null,
      why: 'Path of the log file, mode 0600, outside of data. null: standard output, for the service manager.',
    }),
    bytesMax: defineOption(integerType(64 * 1024, 64 * 1024 * MIB), {
      default: 64 * MIB,
      why: 'Size at which the file is rotated to path.1, path.1 to path.2, and so on.',
    }),
    keep: defineOption(integerType(1, 100), { default: 5, why: 'Number of rotated files kept.' }),
  }),
  backup: defineSection('Scheduled backups of this controller; see backup-and-restore.md.', {
    folder: defineOption(nullableType(pathType()), {
      default: null,
      isReloaded: true,
      why: 'Folder of the backups, outside of data. null: no backups. Set it on several controllers, on separate disks.',
    }),
    recipient: defineOption(nullableType(pathType()), {
      default: null,
      isReloaded: true,
      why: 'PEM: public key or certificate with which backups are encrypted; required with backup.folder. Keep the private key away from controllers.',
    }),
    everyMs: defineOption(integerType(MINUTE_MS, 31 * DAY_MS), {
      default: DAY_MS,
      isReloaded: true,
      why: 'Interval between backups, also across restarts. A failed backup is retried within 5 minutes.',
    }),
    keep: defineOption(integerType(1, 1000), {
      default: 7,
      isReloaded: true,
      why: 'Number of backups of this controller to keep. The controller deletes older backups once a new one is durable.',
    }),
    hook: defineOption(commandType(32), {
      default: [],
      isSecret: true,
      isReloaded: true,
      why: 'Program with arguments that runs after each backup, for example to copy the backup elsewhere. The path of the backup is the last argument. The program runs without a shell.',
    }),
    hookTimeoutMs: defineOption(integerType(1000, DAY_MS), {
      default: 10 * MINUTE_MS,
      isReloaded: true,
      why: 'Timeout of the hook. After this time, the controller kills the hook with its child processes.',
    }),
  }),
  events: eventOptions,
  threads: defineOption(booleanType(), {
    default: true,
    why: 'Runs consensus and disk in separate threads, so that requests never delay heartbeats. false: one thread, for debugging.',
  }),
} as const

/** Validated values of a configuration file, with defaults and absolute paths. */
export type ControllerConfig = ConfigValues<typeof controllerOptions>
