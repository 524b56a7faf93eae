import {
  ignoredSection,
  list,
  option,
  optionalSection,
  REQUIRED_OPTION,
  requiredSection,
  section,
  type ConfigValues,
  variants,
  withoutEffect,
} from '../engine/schema.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../engine/units.ts'
import {
  boolean,
  choice,
  duration,
  integer,
  milliseconds,
  optional,
  path,
  text,
} from '../engine/values.ts'
import {
  address,
  advertisedAddress,
  dnsNames,
  emails,
  hostPort,
  ipAddresses,
  pemSource,
  uris,
  version,
} from './values.ts'
import {
  addressProtocols,
  channelOptions,
  controllerAddressing,
  dialerBindings,
  dialerOptions,
  heartbeatOptions,
  listenerBindings,
  listenerOptions,
} from './shared-options.ts'
import { linkSection } from './table-link.ts'
import { transportSection } from './table-transport.ts'
import { webList } from './table-web.ts'

export const CONFIG_VERSION = 3

const subjectField = optional(text())
const csrFields = {
  country: option(subjectField, { default: null, why: 'Subject field C.' }),
  province: option(subjectField, { default: null, why: 'Subject field ST.' }),
  locality: option(subjectField, { default: null, why: 'Subject field L.' }),
  organization: option(subjectField, { default: null, why: 'Subject field O.' }),
  organizationalUnit: option(subjectField, { default: null, why: 'Subject field OU.' }),
  sans: section('Names that the server certificate is to have.', {
    dns: option(dnsNames, { default: [], why: 'DNS names.' }),
    ip: option(ipAddresses, { default: [], why: 'IP addresses.' }),
    uri: option(uris, { default: [], why: 'URIs.' }),
    email: option(emails, { default: [], why: 'Mail addresses.' }),
  }),
} as const

const queueLength = integer(1, 10_000)
const workerCount = integer(1, 10_000)

/** Keys that may be in `ctrl` or in `ctrl.options`. */
const controllerPlaces = {
  ...controllerAddressing,
  heartbeats: section('Heartbeats to the controllers.', {
    ...heartbeatOptions(30_000),
    unresponsiveAfter: option(duration(100, DAY_MS), {
      default: 5000,
      why: 'A controller that answers no heartbeat for so long counts as slow.',
    }),
  }),
} as const
export const controllerKeyLocations = Object.keys(
  controllerPlaces,
) as readonly (keyof typeof controllerPlaces)[]

/** All keys of a router's configuration, each with type, default and purpose. */
export const routerFields = {
  v: option(version(CONFIG_VERSION), {
    default: REQUIRED_OPTION,
    why: 'Version of the file format.',
  }),
  identity: requiredSection(
    'Certificate and key of this router.',
    {
      cert: option(pemSource(), {
        default: REQUIRED_OPTION,
        why: 'Client certificate with its chain, for connections to controllers and routers.',
      }),
      key: option(pemSource(), {
        default: REQUIRED_OPTION,
        why: 'Private key of `cert`, and of server certificates without a separate key; mode 0600.',
        isSecret: true,
      }),
      server_cert: option(optional(pemSource()), {
        default: null,
        why: 'Server certificate with its chain, for the listeners of this router. Required to enroll.',
      }),
      server_key: option(optional(pemSource()), {
        default: null,
        why: 'Key of `server_cert`; that of `cert` when absent.',
        isSecret: true,
      }),
      ca: option(optional(pemSource()), {
        default: null,
        why: 'CA certificates that controllers and routers are verified against. Needed to enroll and to run.',
      }),
      alt_server_certs: list(
        16,
        'Further server certificates: the first one that has the name asked for is shown.',
        {
          server_cert: option(pemSource(), {
            default: REQUIRED_OPTION,
            why: 'Certificate with its chain.',
          }),
          server_key: option(optional(pemSource()), {
            default: null,
            why: 'Private key of this certificate; absent: the key of `cert`.',
            isSecret: true,
          }),
        },
        { refusesMisspellings: true },
      ),
    },
    { refusesMisspellings: true },
  ),
  ctrl: requiredSection(
    'The controllers. `router enroll` writes the addresses of the enrollment token into `endpointsFile` when neither `endpoint` nor `endpoints` is given.',
    {
      ...controllerPlaces,
      startupTimeout: option(duration(0, DAY_MS), {
        default: 30_000,
        why: 'When no controller is reached within it, the router ends with exit code 1; 0s: it tries for ever.',
      }),
      endpointsFile: option(path(), {
        default: 'endpoints.yml',
        why: 'File of the current members and their keys, mode 0600. `endpoint` and `endpoints` are dialed as well while fewer controllers are connected than it names.',
      }),
      options: section('Options of the channel, and the fields above once more.', {
        ...channelOptions,
        ...controllerPlaces,
      }),
      rateLimiter: withoutEffect(
        optionalSection('Concurrent requests to one controller.', {
          enabled: option(boolean(), {
            default: true,
            why: 'Whether concurrent requests are limited.',
          }),
          minSize: option(integer(1, 1000), { default: 5, why: 'Minimum of the limit.' }),
          maxSize: option(integer(1, 1000), { default: 250, why: 'Maximum of the limit.' }),
          timeout: option(duration(1, HOUR_MS), {
            default: 30_000,
            why: 'A request without an answer for so long counts as lost.',
          }),
        }),
      ),
      listeners: ignoredSection('controllers that dial routers are not supported'),
    },
  ),
  csr: optionalSection(
    'Fields of the certificates that the router requests at enrollment and renewal.',
    csrFields,
  ),
  dialers: list(
    64,
    'Bindings of terminators that this router dials, with the options of each; none without an entry. The last entry of a binding counts.',
    {
      binding: option(text(`a binding: ${dialerBindings.join(', ')}`), {
        default: REQUIRED_OPTION,
        why: 'transport: `tcp:`, `tls:` and `udp:` addresses. transport_udp: `udp:`, `udp4:` and `udp6:` addresses. proxy, proxy_udp: for listeners; a terminator of them fails as misconfigured.',
      }),
      options: section('Options of the binding.', dialerOptions),
    },
  ),
  edge: optionalSection(
    'Present, even if empty: OpenZiti clients may connect.',
    {
      csr: optionalSection('Earlier place of `csr`.', csrFields, {
        deprecated: 'move it to csr, at the top of the file',
      }),
      heartbeatIntervalSeconds: option(integer(10, 60), {
        default: 60,
        why: 'Interval at which used sessions are reported to controllers.',
      }),
      db: ignoredSection('the data model is kept in memory alone'),
      dbSaveIntervalSeconds: ignoredSection('the data model is kept in memory alone'),
      sessionValidateChunkSize: ignoredSection(
        'sessions are checked when a controller has sent all of them',
      ),
      sessionValidateMinInterval: ignoredSection(
        'sessions are checked when a controller has sent all of them',
      ),
      sessionValidateMaxInterval: ignoredSection(
        'sessions are checked when a controller has sent all of them',
      ),
      apiProxy: ignoredSection('the API of controllers is not forwarded by this router'),
    },
    { isPresentWhenEmpty: true },
  ),
  forwarder: section('How payloads are forwarded.', {
    faultTxInterval: option(milliseconds(0, DAY_MS), {
      default: 15_000,
      why: 'Wait between checks for faulted circuits; 0: no checks.',
    }),
    idleCircuitTimeout: option(milliseconds(0, DAY_MS), {
      default: 60_000,
      why: 'Silence after which a circuit counts as idle and the router confirms it with the controller.',
    }),
    idleTxInterval: option(milliseconds(0, DAY_MS), {
      default: 60_000,
      why: 'Wait between checks of idle circuits; 0: no checks.',
    }),
    linkDialQueueLength: option(queueLength, {
      default: 1000,
      why: 'Maximum link dials that wait.',
    }),
    linkDialWorkerCount: option(workerCount, {
      default: 32,
      why: 'Maximum links dialed at the same time.',
    }),
    rateLimitedQueueLength: option(integer(1, 50_000), {
      default: 5000,
      why: 'Rate-limited operations to the controllers that may wait: creations, changes and removals of terminators.',
    }),
    rateLimitedWorkerCount: option(workerCount, {
      default: 5,
      why: 'Maximum rate-limited operations at the same time.',
    }),
    xgressCloseCheckInterval: option(milliseconds(0, DAY_MS), {
      default: 5000,
      why: 'Delay before the route of an idle circuit is removed.',
    }),
    xgressDialDwellTime: option(milliseconds(0, DAY_MS), {
      default: 0,
      why: 'Delay before each dial of a service.',
    }),
    xgressDialQueueLength: option(queueLength, {
      default: 1000,
      why: 'Maximum service dials that wait.',
    }),
    xgressDialWorkerCount: option(workerCount, {
      default: 128,
      why: 'Maximum services dialed at the same time.',
    }),
    latencyProbeInterval: ignoredSection('latency is measured by heartbeats', { isQuiet: true }),
    unresponsiveLinkTimeout: option(duration(5000, DAY_MS), {
      default: MINUTE_MS,
      why: 'Time without a response after which a link takes no new circuits.',
    }),
  }),
  healthChecks: section('Health checks of the `web` listener.', {
    ctrlPingCheck: section('Whether a controller answers.', {
      interval: option(duration(100, DAY_MS), {
        default: 30_000,
        why: 'Interval of pings to the controllers.',
      }),
      timeout: option(duration(10, DAY_MS), {
        default: 15_000,
        why: 'Timeout of one ping.',
      }),
      initialDelay: option(duration(0, DAY_MS), {
        default: 15_000,
        why: 'Delay before the first ping.',
      }),
    }),
    linkCheck: section('Whether the router has enough links.', {
      interval: option(duration(100, DAY_MS), { default: 5000, why: 'Interval of the check.' }),
      initialDelay: option(duration(0, DAY_MS), {
        default: 1000,
        why: 'Delay before the first check.',
      }),
      minLinks: option(integer(0, 1_000_000), {
        default: 0,
        why: 'With fewer links the check fails; 0: links are shown, and it never fails.',
      }),
    }),
  }),
  link: linkSection,
  listeners: list(64, 'Ports that are open to clients.', {
    binding: option(text(`a binding: ${listenerBindings.join(', ')}`), {
      default: REQUIRED_OPTION,
      why: 'proxy, proxy_udp: each connection, or each source of datagrams, is a circuit to `service`. transport, transport_udp: the same, to the service that the client names in its first line.',
    }),
    bind: option(optional(address(addressProtocols.stream)), {
      default: null,
      why: 'Where it listens. Required but for `tunnel`. transport and proxy listen on `tcp:` or `tls:`, transport_udp and proxy_udp on `udp:`.',
      aliases: ['address'],
    }),
    advertise: option(optional(advertisedAddress(addressProtocols.stream)), {
      default: null,
      why: 'Address of the listener for clients; may be given in `options`. Required for `edge`.',
    }),
    service: option(optional(text()), {
      default: null,
      why: 'proxy and proxy_udp: id or name of the service, perhaps after the instance of its host and `@`.',
    }),
    options: variants('binding', 'Options of the binding.', listenerOptions),
  }),
  metrics: section('Reports to the controllers.', {
    reportInterval: option(duration(100, DAY_MS), {
      default: MINUTE_MS,
      why: 'Interval of metrics messages.',
    }),
    messageQueueSize: option(integer(1, 10_000), {
      default: 10,
      why: 'Messages of metrics that may wait; the oldest are dropped.',
    }),
    intervalAgeThreshold: option(duration(0, DAY_MS), {
      default: 80_000,
      why: 'Age of a batch before it is sent, counted from the start of its interval.',
    }),
    eventQueueSize: ignoredSection('metrics are not queued one by one'),
    enableDataDelayMetric: ignoredSection(
      'the time that data spends in this router is not measured',
    ),
  }),
  trace: optionalSection('Messages that come and go, decoded, into a file. To debug.', {
    path: option(path(), { default: REQUIRED_OPTION, why: 'The file, mode 0600.' }),
  }),
  transport: transportSection,
  profile: optionalSection('Profiles of this process. To debug.', {
    cpu: optionalSection('Where time is spent, written when the router ends.', {
      path: option(path(), { default: REQUIRED_OPTION, why: 'The file.' }),
    }),
    memory: optionalSection('Memory benchmark buffers.', {
      path: option(path(), { default: REQUIRED_OPTION, why: 'The file.' }),
      intervalMs: option(milliseconds(100, DAY_MS), {
        default: 15_000,
        why: 'Interval of memory profiles.',
      }),
    }),
  }),
  web: webList,
  proxy: optionalSection(
    'A proxy for connections to controllers and other routers, and for enrollment and renewal.',
    {
      type: option(choice(['none', 'http']), {
        default: REQUIRED_OPTION,
        why: 'http: connections are opened with the method CONNECT.',
      }),
      address: option(optional(hostPort()), {
        default: null,
        why: 'Address of the proxy. Required for `http`.',
      }),
      username: option(optional(text()), {
        default: null,
        why: 'Sent to the proxy with Basic authentication.',
      }),
      password: option(optional(text()), {
        default: null,
        why: 'Sent to the proxy with Basic authentication.',
        isSecret: true,
      }),
    },
    { refusesMisspellings: true },
  ),
  tls: section('TLS of listeners.', {
    handshakeTimeout: option(duration(1, HOUR_MS), {
      default: 5000,
      why: 'Timeout of one TLS handshake.',
    }),
  }),
  interfaceDiscovery: section(
    'Network interfaces reported to controllers.',
    {
      disabled: option(boolean(), { default: false, why: 'Whether interfaces are not reported.' }),
      checkInterval: option(duration(1000, DAY_MS), {
        default: MINUTE_MS,
        why: 'Interval of checks for changed interfaces.',
      }),
      minReportInterval: option(duration(1000, 365 * DAY_MS), {
        default: DAY_MS,
        why: 'Interval of reports without changes.',
      }),
    },
    { refusesMisspellings: true },
  ),
  connectEvents: ignoredSection(
    'the router reports clients to controllers each second, and all of them when a controller connects',
  ),
  enableDebugOps: ignoredSection('there are no debugging operations'),
  plugins: ignoredSection('plugins of other routers cannot be loaded'),
  managedConfig: ignoredSection('controllers push no configuration to this router'),
  ha: ignoredSection('the members of the cluster are followed without it'),
} as const

/** Validated values of a configuration file, with defaults and absolute paths. */
export type RouterConfig = ConfigValues<typeof routerFields>
