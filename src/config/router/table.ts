import {
  ignored,
  keyed,
  list,
  required,
  type RouterValuesOf,
  section,
  value,
  variants,
} from '../engine/schema.ts'
import {
  addressProtocols,
  channelOptions,
  controllerAddressing,
  dialerBindings,
  flowOptions,
  heartbeatOptions,
  listenerBindings,
  listenerOptions,
} from './shared-options.ts'
import {
  address,
  advertised,
  boolean,
  choice,
  dnsNames,
  duration,
  emails,
  integer,
  ipAddresses,
  milliseconds,
  optional,
  path,
  pemSource,
  text,
  uris,
  version,
} from './values.ts'
import { DAY_MS, MINUTE_MS, MINUTES_MAX_MS } from './spans.ts'
import { linkSection } from './table-link.ts'
import { webList } from './table-web.ts'

export const CONFIG_VERSION = 3

const subjectField = optional(text())
const csrFields = {
  country: value(subjectField, { default: null, why: 'Subject field C.' }),
  province: value(subjectField, { default: null, why: 'Subject field ST.' }),
  locality: value(subjectField, { default: null, why: 'Subject field L.' }),
  organization: value(subjectField, { default: null, why: 'Subject field O.' }),
  organizationalUnit: value(subjectField, { default: null, why: 'Subject field OU.' }),
  sans: section('defaults', 'Names that the server certificate is to have.', {
    dns: value(dnsNames, { default: [], why: 'DNS names.' }),
    ip: value(ipAddresses, { default: [], why: 'IP addresses.' }),
    uri: value(uris, { default: [], why: 'URIs.' }),
    email: value(emails, { default: [], why: 'Mail addresses.' }),
  }),
} as const

const queueLength = integer(1, 10_000)
const workerCount = integer(1, 10_000)

/**
 * Every key of a router's configuration: the one place that says what may stand there, and what it
 * is for.
 */
export const routerFields = {
  v: value(version(CONFIG_VERSION), {
    default: required,
    why: 'Version of the file format.',
  }),
  identity: section('required', 'Certificate and key of this router.', {
    cert: value(pemSource(), {
      default: required,
      why: 'Client certificate with its chain, for connections to controllers and routers.',
    }),
    key: value(pemSource(), {
      default: required,
      why: 'Private key of `cert`, and of server certificates without one of their own; mode 0600.',
      isSecret: true,
    }),
    server_cert: value(optional(pemSource()), {
      default: null,
      why: 'Server certificate with its chain, for the listeners of this router. Required to enroll.',
    }),
    server_key: value(optional(pemSource()), {
      default: null,
      why: 'Key of `server_cert`; that of `cert` when absent.',
      isSecret: true,
    }),
    ca: value(optional(pemSource()), {
      default: null,
      why: 'CA certificates that controllers and routers are verified against. Needed to enroll and to run.',
    }),
    alt_server_certs: list(16, 'Further server certificates, chosen by the name asked for.', {
      server_cert: value(pemSource(), { default: required, why: 'Certificate with its chain.' }),
      server_key: value(optional(pemSource()), {
        default: null,
        why: 'Its key; that of `cert` when absent.',
        isSecret: true,
      }),
    }),
  }),
  ctrl: section('required', 'The controllers. One of `endpoint` and `endpoints` is required.', {
    ...controllerAddressing,
    heartbeats: section('defaults', 'Heartbeats to the controllers.', {
      ...heartbeatOptions(30_000),
      unresponsiveAfter: value(duration(100, DAY_MS), {
        default: 5000,
        why: 'A controller that answers no heartbeat for so long counts as slow.',
      }),
    }),
    startupTimeout: value(duration(0, DAY_MS), {
      default: 30_000,
      why: 'When no controller is reached within it, the router ends with exit code 1; 0s: it tries for ever.',
    }),
    endpointsFile: value(path(), {
      default: 'endpoints.yml',
      why: 'File of the current members, mode 0600. It takes precedence over `endpoint` and `endpoints`.',
    }),
    options: section('defaults', 'Options of the channel, and the fields above once more.', {
      ...channelOptions,
      ...controllerAddressing,
      heartbeats: section('defaults', 'Heartbeats to the controllers.', {
        ...heartbeatOptions(30_000),
        unresponsiveAfter: value(duration(100, DAY_MS), {
          default: 5000,
          why: 'A controller that answers no heartbeat for so long counts as slow.',
        }),
      }),
    }),
    rateLimiter: section('null', 'Concurrent requests to one controller.', {
      enabled: value(boolean(), { default: true, why: 'Whether they are bounded.' }),
      minSize: value(integer(1, 1000), { default: 5, why: 'Smallest bound.' }),
      maxSize: value(integer(1, 1000), { default: 250, why: 'Largest bound.' }),
      timeout: value(duration(1, MINUTES_MAX_MS), {
        default: 30_000,
        why: 'A request without an answer for so long counts as lost.',
      }),
    }),
    listeners: ignored('controllers that dial routers are not supported'),
  }),
  csr: section(
    'null',
    'Fields of the certificates that are asked for at enrollment and renewal.',
    csrFields,
  ),
  dialers: list(64, 'Dialers of services, with the options of one binding each.', {
    binding: value(choice(dialerBindings), { default: required, why: 'Name of the dialer.' }),
    options: section('defaults', 'Options of the binding.', flowOptions),
  }),
  edge: section(
    'null',
    'Present, even if empty: clients of the API family may connect.',
    {
      csr: section('null', 'Earlier place of `csr`.', csrFields, {
        deprecated: 'move it to csr, at the top of the file',
      }),
      heartbeatIntervalSeconds: value(integer(10, 60), {
        default: 60,
        why: 'Interval at which used sessions are reported to controllers.',
      }),
      db: ignored('the data model is not kept yet'),
      dbSaveIntervalSeconds: ignored('the data model is not kept yet'),
      sessionValidateChunkSize: ignored('sessions are not kept yet'),
      sessionValidateMinInterval: ignored('sessions are not kept yet'),
      sessionValidateMaxInterval: ignored('sessions are not kept yet'),
      apiProxy: ignored('the API of controllers is not forwarded by this router'),
    },
    { isPresentWhenEmpty: true },
  ),
  forwarder: section('defaults', 'How payloads are forwarded.', {
    faultTxInterval: value(milliseconds(0, DAY_MS), {
      default: 15_000,
      why: 'Wait between checks for faulted circuits; 0: no checks.',
    }),
    idleCircuitTimeout: value(milliseconds(0, DAY_MS), {
      default: 60_000,
      why: 'Silence after which a circuit counts as idle and is asked about.',
    }),
    idleTxInterval: value(milliseconds(0, DAY_MS), {
      default: 60_000,
      why: 'Wait between checks of idle circuits; 0: no checks.',
    }),
    linkDialQueueLength: value(queueLength, {
      default: 1000,
      why: 'Dials of links that may wait.',
    }),
    linkDialWorkerCount: value(workerCount, {
      default: 32,
      why: 'Links dialed at a time.',
    }),
    rateLimitedQueueLength: value(integer(1, 50_000), {
      default: 5000,
      why: 'Rate-limited operations to the controllers that may wait, creations of terminators among them.',
    }),
    rateLimitedWorkerCount: value(workerCount, {
      default: 5,
      why: 'Such operations at a time.',
    }),
    xgressCloseCheckInterval: value(milliseconds(0, DAY_MS), {
      default: 5000,
      why: 'Delay before the route of an idle circuit is removed.',
    }),
    xgressDialDwellTime: value(milliseconds(0, DAY_MS), {
      default: 0,
      why: 'Wait before a service is dialed.',
    }),
    xgressDialQueueLength: value(queueLength, {
      default: 1000,
      why: 'Dials of services that may wait.',
    }),
    xgressDialWorkerCount: value(workerCount, {
      default: 128,
      why: 'Services dialed at a time.',
    }),
    latencyProbeInterval: value(optional(integer(0, DAY_MS)), {
      default: null,
      why: 'Written by generators.',
      deprecated: 'latency is measured by heartbeats; it has no effect',
    }),
    unresponsiveLinkTimeout: value(duration(5000, DAY_MS), {
      default: MINUTE_MS,
      why: 'Time without a response after which a link takes no new circuits.',
    }),
  }),
  healthChecks: section('defaults', 'Health checks of the `web` listener.', {
    ctrlPingCheck: section('defaults', 'Whether a controller answers.', {
      interval: value(duration(100, DAY_MS), {
        default: 30_000,
        why: 'How often the controllers are pinged.',
      }),
      timeout: value(duration(10, DAY_MS), {
        default: 15_000,
        why: 'Wait for the answer to one ping.',
      }),
      initialDelay: value(duration(0, DAY_MS), {
        default: 15_000,
        why: 'Wait before the first ping.',
      }),
    }),
    linkCheck: section('defaults', 'Whether there are links enough.', {
      interval: value(duration(100, DAY_MS), { default: 5000, why: 'Interval of the check.' }),
      initialDelay: value(duration(0, DAY_MS), {
        default: 1000,
        why: 'Wait before the first time.',
      }),
      minLinks: value(integer(0, 1_000_000), {
        default: 0,
        why: 'With fewer links the check fails; 0: links are shown, and it never fails.',
      }),
    }),
  }),
  link: linkSection,
  listeners: list(64, 'Ports that are open to clients.', {
    binding: value(choice(listenerBindings), {
      default: required,
      why: 'The component that serves it.',
    }),
    bind: value(optional(address(addressProtocols.stream)), {
      default: null,
      why: 'Where it listens. Required but for `tunnel`.',
      aliases: ['address'],
    }),
    advertise: value(optional(advertised(addressProtocols.stream)), {
      default: null,
      why: 'Address for clients; may be given in `options`. Required except for `tunnel`.',
    }),
    service: value(optional(text()), {
      default: null,
      why: 'proxy and proxy_udp: id or name of the service.',
    }),
    options: variants('binding', 'Options of the binding.', listenerOptions),
  }),
  metrics: section('defaults', 'Reports to the controllers.', {
    reportInterval: value(duration(100, DAY_MS), {
      default: MINUTE_MS,
      why: 'Wait between two messages of metrics.',
    }),
    messageQueueSize: value(integer(1, 10_000), {
      default: 10,
      why: 'Messages of metrics that may wait; the oldest are dropped.',
    }),
    intervalAgeThreshold: value(duration(0, DAY_MS), {
      default: 80_000,
      why: 'Age of a batch before it is sent, counted from the start of its interval.',
    }),
    eventQueueSize: ignored('metrics are not queued one by one'),
    enableDataDelayMetric: ignored('no data is forwarded yet'),
  }),
  trace: section('null', 'Messages that come and go, decoded, into a file. To debug.', {
    path: value(path(), { default: required, why: 'The file, mode 0600.' }),
  }),
  transport: keyed(8, 'Tuning of protocols below the channel, by protocol. To develop.', {
    profile_version: value(optional(integer(0, 1_000_000)), {
      default: null,
      why: 'Version of the profile.',
    }),
    tx_portal_min_sz: value(optional(integer(1, 1_073_741_824)), {
      default: null,
      why: 'Minimum bytes in flight.',
    }),
    tx_portal_max_sz: value(optional(integer(1, 1_073_741_824)), {
      default: null,
      why: 'Maximum bytes in flight.',
    }),
    instrument: section('null', 'Measurements of the protocol.', {
      name: value(optional(text()), { default: null, why: 'Kind of measurement.' }),
      path: value(optional(path()), { default: null, why: 'Where it is written.' }),
      snapshot_ms: value(optional(milliseconds(1, DAY_MS)), {
        default: null,
        why: 'Wait between two measurements.',
      }),
      enabled: value(boolean(), { default: false, why: 'Whether it is measured.' }),
    }),
    writeBufferSize: value(optional(integer(1, 1_073_741_824)), {
      default: null,
      why: 'dtls: bytes that may wait to be sent.',
    }),
    readBufferSize: value(optional(integer(1, 1_073_741_824)), {
      default: null,
      why: 'dtls: bytes that may wait to be read.',
    }),
    maxBytesPerSecond: value(optional(integer(1, Number.MAX_SAFE_INTEGER)), {
      default: null,
      why: 'dtls: most bytes in a second.',
    }),
  }),
  profile: section('null', 'Profiles of this process. To debug.', {
    cpu: section('null', 'Where time is spent, written when the router ends.', {
      path: value(path(), { default: required, why: 'The file.' }),
    }),
    memory: section('null', 'Memory benchmark buffers.', {
      path: value(path(), { default: required, why: 'The file.' }),
      intervalMs: value(milliseconds(100, DAY_MS), {
        default: 15_000,
        why: 'Wait between two of them.',
      }),
    }),
  }),
  web: webList,
  proxy: section('defaults', 'An outbound proxy, which this router knows none of.', {
    type: value(choice(['none']), { default: 'none', why: 'Kind of proxy.' }),
  }),
  tls: section('defaults', 'TLS of listeners.', {
    handshakeTimeout: value(duration(1, MINUTES_MAX_MS), {
      default: 5000,
      why: 'For one handshake.',
    }),
  }),
  interfaceDiscovery: section('defaults', 'Network interfaces reported to controllers.', {
    disabled: value(boolean(), { default: false, why: 'Whether they are kept from them.' }),
    checkInterval: value(duration(1000, DAY_MS), {
      default: MINUTE_MS,
      why: 'How often they are looked at.',
    }),
    minReportInterval: value(duration(1000, 365 * DAY_MS), {
      default: DAY_MS,
      why: 'Interval of reports even without changes.',
    }),
  }),
  connectEvents: ignored('no client connects yet'),
  enableDebugOps: ignored('there are no debugging operations'),
  plugins: ignored('plugins of other routers cannot be loaded'),
  managedConfig: ignored('controllers push no configuration to this router'),
  ha: ignored('the members of the cluster are followed without it'),
} as const

/** Checked values, all defaults filled in, all paths absolute. */
export type RouterConfig = RouterValuesOf<typeof routerFields>
