import {
  boolean,
  choice,
  choices,
  command,
  controllerId,
  hostPort,
  hostPorts,
  addressPorts,
  integer,
  list,
  networks,
  option,
  optionalHostPort,
  optionalPath,
  path,
  required,
  section,
  trustDomain,
} from './option.ts'
import type { ValuesOf } from './option.ts'
import { eventOptions } from './event-options.ts'

const MIB = 1024 * 1024
const MINUTE_MS = 60 * 1000
const HOUR_MS = 60 * MINUTE_MS

export const API_NAMES = ['edge-client', 'edge-management', 'fabric', 'health-checks'] as const
/** What a listener may serve; `metrics` only where it is asked for. */
export const WEB_API_NAMES = [...API_NAMES, 'metrics'] as const
export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

const node = 'node'
const cluster = 'cluster'

/** Every option of a controller: the one place that says what may be configured, and why one would. */
export const controllerOptions = {
  id: option(controllerId(), {
    default: required,
    scope: node,
    why: 'Permanent id of this controller in the cluster. Must match its certificate.',
  }),
  data: option(path(), {
    default: required,
    scope: node,
    why: 'Folder of the log, the state and the admin socket. Belongs to one controller alone; put it on a local disk.',
  }),
  trustDomain: option(trustDomain(), {
    default: required,
    scope: cluster,
    why: 'Trust domain of the SPIFFE ids of this cluster: spiffe://<trustDomain>/controller/<id>.',
  }),
  identity: section('Certificate and key of this controller, for peers and clients.', {
    cert: option(path(), {
      default: required,
      scope: node,
      why: 'PEM: its own certificate, then the intermediates.',
    }),
    key: option(path(), {
      default: required,
      scope: node,
      why: 'PEM private key of the certificate, mode 0600.',
    }),
    ca: option(path(), {
      default: required,
      scope: node,
      why: 'PEM: the CA certificates that peers are verified against.',
    }),
    signer: section(
      'An authority of your own that signs leaves for this cluster, in place of one made by `cluster init`. Read when the cluster is formed, and not needed afterwards.',
      {
        cert: option(optionalPath(), {
          default: null,
          scope: node,
          why: 'PEM: its CA certificate, then those above it that identity.ca does not hold.',
        }),
        key: option(optionalPath(), {
          default: null,
          scope: node,
          why: 'PEM private key of it, mode 0600. Take it away once the cluster is formed.',
        }),
      },
    ),
  }),
  cluster: section('The mesh between controllers (gRPC, mutual TLS 1.3).', {
    bind: option(hostPort(), {
      default: required,
      scope: node,
      why: 'Where this controller listens for its peers.',
    }),
    advertise: option(hostPort(), {
      default: required,
      scope: node,
      why: 'Under which address its peers reach it.',
    }),
    seeds: option(hostPorts(32), {
      default: [],
      scope: node,
      why: 'Addresses to find moved peers; a name may resolve to several addresses. Peers are verified by certificate.',
    }),
    resolvers: option(addressPorts(8), {
      default: [],
      scope: node,
      why: "DNS servers that the names of peers and in seeds are asked of first, as address:port; the host's own when empty.",
    }),
    priority: option(integer(0, 100), {
      default: 50,
      scope: node,
      why: 'The connected voter with the highest one is to lead, once it was healthy for 30 s; equal ones leave leadership where it is.',
    }),
    slowFsyncMs: option(integer(10, 60_000), {
      default: 250,
      scope: node,
      why: 'A leader whose 99th percentile of log syncs stays beyond it hands over to a member that is well below.',
    }),
    slowLoopMs: option(integer(10, 60_000), {
      default: 200,
      scope: node,
      why: 'The same for the delay of its event loops.',
    }),
    snapshotBytesPerSecond: option(integer(MIB, 64 * 1024 * MIB), {
      default: 64 * MIB,
      scope: node,
      why: 'Most bytes of snapshots that this controller sends in a second, to all controllers together.',
    }),
  }),
  routers: section('The listener that routers connect to.', {
    bind: option(optionalHostPort(), {
      default: null,
      scope: node,
      why: 'Router listener; null: no routers connect here. Routers get the host of cluster.advertise with this port.',
    }),
  }),
  web: list(16, 'HTTPS listeners. One that serves every API is the usual case.', {
    bind: option(hostPort(), { default: required, scope: node, why: 'Where it listens.' }),
    advertise: option(hostPort(), {
      default: required,
      scope: node,
      why: 'Under which address clients reach it; the certificate must name this host.',
    }),
    apis: option(choices(WEB_API_NAMES), {
      default: API_NAMES,
      scope: node,
      why: 'Which APIs it serves. metrics: nothing but metrics and health, without any log-in, on a private address of its own.',
    }),
  }),
  raft: section('Timing of the consensus. Equal on every controller.', {
    tickMs: option(integer(5, 1000), {
      default: 50,
      scope: cluster,
      why: 'Step of the clock that all other times here are multiples of.',
    }),
    heartbeatMs: option(integer(5, 10_000), {
      default: 100,
      scope: cluster,
      why: 'How often a leader is heard. Longer than a round trip between controllers.',
    }),
    electionTimeoutMs: option(integer(50, 60_000), {
      default: 600,
      scope: cluster,
      why: 'Silence after which another leader is sought: shorter recovers sooner, longer survives slow disks and networks.',
    }),
    electionTimeoutMaxMs: option(integer(50, 120_000), {
      default: 1200,
      scope: cluster,
      why: 'Upper end of the random timeout; the wider the span, the rarer are split votes.',
    }),
  }),
  log: section('The write-ahead log.', {
    retainEntries: option(integer(100, 10_000_000), {
      default: 20_000,
      scope: node,
      why: 'Entries kept for controllers that lag behind; further behind, they are sent a snapshot.',
    }),
    retainBytes: option(integer(64 * 1024, 64 * 1024 * MIB), {
      default: 8 * MIB,
      scope: node,
      why: 'Most bytes of such entries, also kept in memory.',
    }),
    catchUpBytes: option(integer(64 * 1024, 64 * 1024 * MIB), {
      default: 96 * MIB,
      scope: node,
      why: 'The same on a leader while it sends a snapshot, of the entries that come after it; with more, another snapshot must follow.',
    }),
    segmentBytes: option(integer(MIB, 1024 * MIB), {
      default: 16 * MIB,
      scope: node,
      why: 'Size of one log file, allocated ahead.',
    }),
    lowSpaceBytes: option(integer(0, 1024 * 1024 * MIB), {
      default: 64 * MIB,
      scope: node,
      why: 'Free space below which writes are refused, while there is still room to recover in.',
    }),
  }),
  audit: section('Audit log.', {
    log: option(boolean(), {
      default: true,
      scope: node,
      why: 'A line in the log of this controller for each write that it received, whatever `logLevel` says.',
    }),
  }),
  api: section('HTTP APIs.', {
    sessionTimeoutMs: option(integer(MINUTE_MS, 7 * 24 * HOUR_MS), {
      default: 30 * MINUTE_MS,
      scope: cluster,
      why: 'A session ends after this long without a request.',
    }),
    staleSessionMaxMs: option(integer(0, 24 * HOUR_MS), {
      default: 15 * MINUTE_MS,
      scope: cluster,
      why: 'How long a controller without contact to a leader accepts known sessions.',
    }),
    requestTimeoutMs: option(integer(1000, 10 * MINUTE_MS), {
      default: 10_000,
      scope: node,
      why: 'Timeout of a request, answered with 503 TIMEOUT.',
    }),
    bodyBytesMax: option(integer(1024, 4 * MIB), {
      default: MIB,
      scope: cluster,
      why: 'A larger request body is answered 413.',
    }),
    reservedSignerHosts: option(boolean(), {
      default: false,
      scope: node,
      why: 'Allows loopback, link-local, unspecified and metadata addresses for external JWT signers. For tests only: anyone allowed to write signers could make this controller call them.',
    }),
    refusedSignerNetworks: option(networks(64), {
      default: [],
      scope: node,
      why: 'Further networks that keys of external JWT signers are not fetched from: your own, where all providers are outside.',
    }),
    httpSignerKeys: option(boolean(), {
      default: false,
      scope: node,
      why: 'Allows fetching keys of external JWT signers without TLS. For tests only: an attacker on the path could supply keys.',
    }),
    signerCa: option(optionalPath(), {
      default: null,
      scope: node,
      why: 'PEM: CA certificates that providers of such keys are verified against, beside those of the system. Read at the start.',
    }),
  }),
  enrollment: section('One-time tokens that identities and routers enroll by.', {
    identityMinutes: option(integer(5, 365 * 24 * 60), {
      default: 180,
      scope: node,
      why: 'Lifetime of the enrollment token created with an identity; an enrollment created separately names its own.',
    }),
    routerMinutes: option(integer(5, 365 * 24 * 60), {
      default: 180,
      scope: node,
      why: 'The same for a router that is made, or that is to enroll again.',
    }),
    certificateDays: option(integer(1, 10 * 365), {
      default: 365,
      scope: node,
      why: 'Lifetime of the certificates that identities and routers are issued; none outlives the issuing authority.',
    }),
    sessionCertificateMinutes: option(integer(5, 7 * 24 * 60), {
      default: 12 * 60,
      scope: node,
      why: 'The same for the certificate that an identity is issued for one API session.',
    }),
  }),
  limits: section('Limits of one controller.', {
    outstandingWritesMax: option(integer(1, 65_536), {
      default: 4096,
      scope: node,
      why: 'Concurrent writes through this controller; beyond it, and beyond the share of one caller, 429.',
    }),
    waitingRequestsMax: option(integer(16, 65_536), {
      default: 4096,
      scope: node,
      why: 'Requests that wait for a write, an index or a password hash; shared by callers in the same way.',
    }),
    logInsMax: option(integer(2, 4096), {
      default: 64,
      scope: node,
      why: 'Concurrent log-ins, shared among source addresses; beyond it 429.',
    }),
    writeTimeoutMs: option(integer(500, 5 * MINUTE_MS), {
      default: 8000,
      scope: node,
      why: 'How long a write is retried across leader changes before its caller gets an error.',
    }),
    connectionsMax: option(integer(1, 1_000_000), {
      default: 10_000,
      scope: node,
      why: 'Open connections of each HTTPS listener; more are closed at once.',
    }),
    connectionsPerSourceMax: option(integer(1, 1_000_000), {
      default: 2500,
      scope: node,
      why: 'The same for one source (an IPv4 address, a /64 of IPv6). Raise it where all clients come through one proxy.',
    }),
  }),
  logLevel: option(choice(LOG_LEVELS), {
    default: 'info',
    scope: node,
    why: 'Least severe lines that are written.',
  }),
  logFile: section('Where lines are written, when not to the standard output.', {
    path: option(optionalPath(), {
      default: null,
      scope: node,
      why: 'File of the lines, mode 0600, outside of data. null: the standard output, for a service manager to keep.',
    }),
    bytesMax: option(integer(64 * 1024, 64 * 1024 * MIB), {
      default: 64 * MIB,
      scope: node,
      why: 'A file that would grow beyond is renamed to path.1, the one of before to path.2, and so on.',
    }),
    keep: option(integer(1, 100), {
      default: 5,
      scope: node,
      why: 'So many earlier files are kept.',
    }),
  }),
  backup: section('Scheduled backups of this controller; see backup.md.', {
    folder: option(optionalPath(), {
      default: null,
      scope: node,
      why: 'Folder of the backups, outside of data. null: no backups. Set it on several controllers, on separate disks.',
    }),
    recipient: option(optionalPath(), {
      default: null,
      scope: node,
      why: 'PEM: public key or certificate that they are encrypted for; needed with backup.folder. Keep the private half away from controllers.',
    }),
    everyMs: option(integer(MINUTE_MS, 31 * 24 * HOUR_MS), {
      default: 24 * HOUR_MS,
      scope: node,
      why: 'From one to the next; a restart changes nothing of it. One that failed is tried again after 5 minutes at the latest.',
    }),
    keep: option(integer(1, 1000), {
      default: 7,
      scope: node,
      why: 'So many of the newest are kept of those that this controller has written; older ones go once a new one is durable.',
    }),
    hook: option(command(32), {
      default: [],
      scope: node,
      isSecret: true,
      why: 'Program with arguments that is run after each, with the path of the backup as its last argument: to bring it elsewhere. Run without a shell.',
    }),
    hookTimeoutMs: option(integer(1000, 24 * HOUR_MS), {
      default: 10 * MINUTE_MS,
      scope: node,
      why: 'Timeout of the hook; it is killed with its child processes.',
    }),
  }),
  events: eventOptions,
  threads: option(boolean(), {
    default: true,
    scope: node,
    why: 'Consensus and disk in threads of their own, so that requests never delay heartbeats. false: all in one, to debug.',
  }),
} as const

/** Checked values, all defaults filled in, all paths absolute. */
export type ControllerConfig = ValuesOf<typeof controllerOptions>
