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
      why: 'Time without a response to a heartbeat after which the router treats the controller as slow.',
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
        why: 'Private key of `server_cert`; absent: the key of `cert`.',
        isSecret: true,
      }),
      ca: option(optional(pemSource()), {
        default: null,
        why: 'CA certificates with which the router verifies controllers and other routers. Required to enroll and to run.',
      }),
      alt_server_certs: list(
        16,
        'Further server certificates. The router presents the first certificate that contains the name that the client requests.',
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
        why: 'If the router reaches no controller within this time after its start, it stops with exit code 1; 0s: it retries without a limit.',
      }),
      endpointsFile: option(path(), {
        default: 'endpoints.yml',
        why: 'File in which the router keeps the current members and their keys, mode 0600. While the router is connected to fewer controllers than this file names, it also dials `endpoint` and `endpoints`.',
      }),
      options: section('Options of the channel. The keys of `ctrl` above are accepted here, too.', {
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
            why: 'Time without an answer after which a request counts as lost.',
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
    'Bindings of the terminators that this router dials, each with its options. Without an entry for a binding, the router dials no terminators with it. If a binding has several entries, the last one applies.',
    {
      binding: option(text(`a binding: ${dialerBindings.join(', ')}`), {
        default: REQUIRED_OPTION,
        why: 'transport: `tcp:`, `tls:` and `udp:` addresses. transport_udp: `udp:`, `udp4:` and `udp6:` addresses. proxy, proxy_udp: bindings for listeners; a dial to a terminator with such a binding fails as misconfigured.',
      }),
      options: section('Options of the binding.', dialerOptions),
    },
  ),
  edge: optionalSection(
    'If the section is present, even if it is empty, OpenZiti clients may connect.',
    {
      csr: optionalSection('The section `csr` at its earlier place.', csrFields, {
        deprecated: 'move it to csr, at the top of the file',
      }),
      heartbeatIntervalSeconds: option(integer(10, 60), {
        default: 60,
        why: 'Interval at which the router reports to controllers which sessions are in use.',
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
      why: 'Maximum number of link dials that wait.',
    }),
    linkDialWorkerCount: option(workerCount, {
      default: 32,
      why: 'Maximum number of links that are dialed at the same time.',
    }),
    rateLimitedQueueLength: option(integer(1, 50_000), {
      default: 5000,
      why: 'Maximum number of rate-limited operations that wait: requests to controllers that create, change or remove terminators.',
    }),
    rateLimitedWorkerCount: option(workerCount, {
      default: 5,
      why: 'Maximum number of rate-limited operations in progress at the same time.',
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
      why: 'Maximum number of service dials that wait.',
    }),
    xgressDialWorkerCount: option(workerCount, {
      default: 128,
      why: 'Maximum number of service dials at the same time.',
    }),
    latencyProbeInterval: ignoredSection('latency is measured by heartbeats', { isQuiet: true }),
    unresponsiveLinkTimeout: option(duration(5000, DAY_MS), {
      default: MINUTE_MS,
      why: 'Time without a response to a heartbeat after which the link gets no new circuits.',
    }),
  }),
  healthChecks: section('Health checks of the `web` listener.', {
    ctrlPingCheck: section('Health check that fails if no controller answers.', {
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
    linkCheck: section('Health check that fails if the router has too few links.', {
      interval: option(duration(100, DAY_MS), { default: 5000, why: 'Interval of the check.' }),
      initialDelay: option(duration(0, DAY_MS), {
        default: 1000,
        why: 'Delay before the first check.',
      }),
      minLinks: option(integer(0, 1_000_000), {
        default: 0,
        why: 'If the router has fewer links than this, the check fails; 0: the check shows the links and never fails.',
      }),
    }),
  }),
  link: linkSection,
  listeners: list(64, 'Ports that are open to clients.', {
    binding: option(text(`a binding: ${listenerBindings.join(', ')}`), {
      default: REQUIRED_OPTION,
      why: 'proxy, proxy_udp: the router creates a circuit to `service` for each connection, or for each source of datagrams. transport, transport_udp: the same, but to the service that the client names in its first line.',
    }),
    bind: option(optional(address(addressProtocols.stream)), {
      default: null,
      why: 'Listen address. Required for all bindings except `tunnel`. transport and proxy listen on `tcp:` or `tls:`, transport_udp and proxy_udp on `udp:`.',
      aliases: ['address'],
    }),
    advertise: option(optional(advertisedAddress(addressProtocols.stream)), {
      default: null,
      why: 'Address of the listener for clients; may be given in `options`. Required for `edge`.',
    }),
    service: option(optional(text()), {
      default: null,
      why: 'proxy and proxy_udp: id or name of the service. To select an instance of the host, put the instance and `@` before it.',
    }),
    options: variants('binding', 'Options of the binding.', listenerOptions),
  }),
  metrics: section('Reports to the controllers.', {
    reportInterval: option(duration(100, DAY_MS), {
      default: MINUTE_MS,
      why: 'Interval at which the router reports metrics.',
    }),
    messageQueueSize: option(integer(1, 10_000), {
      default: 10,
      why: 'Maximum number of metrics reports that wait while no controller is connected; the oldest are dropped.',
    }),
    intervalAgeThreshold: option(duration(0, DAY_MS), {
      default: 80_000,
      why: 'Age at which a batch of reports is sent, counted from the start of its interval.',
    }),
    eventQueueSize: ignoredSection('metrics are not queued one by one'),
    enableDataDelayMetric: ignoredSection(
      'the time that data spends in this router is not measured',
    ),
  }),
  trace: optionalSection(
    'For debugging: writes all received and sent messages, decoded, to a file.',
    {
      path: option(path(), { default: REQUIRED_OPTION, why: 'The file, mode 0600.' }),
    },
  ),
  transport: transportSection,
  profile: optionalSection('For debugging: profiles of this process.', {
    cpu: optionalSection('CPU profile, written when the router stops.', {
      path: option(path(), { default: REQUIRED_OPTION, why: 'The file.' }),
    }),
    memory: optionalSection(
      'Sampling profile of the JavaScript heap, written at an interval and when the router stops.',
      {
        path: option(path(), { default: REQUIRED_OPTION, why: 'The file.' }),
        intervalMs: option(milliseconds(100, DAY_MS), {
          default: 15_000,
          why: 'Interval of memory profiles.',
        }),
      },
    ),
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
      disabled: option(boolean(), {
        default: false,
        why: 'If true, the router does not report its network interfaces.',
      }),
      checkInterval: option(duration(1000, DAY_MS), {
        default: MINUTE_MS,
        why: 'Interval of checks for changed interfaces.',
      }),
      minReportInterval: option(duration(1000, 365 * DAY_MS), {
        default: DAY_MS,
        why: 'Interval at which the router reports its interfaces even if they have not changed.',
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
  ha: ignoredSection('the router always follows the members of the cluster'),
} as const

/** Validated values of a configuration file, with defaults and absolute paths. */
export type RouterConfig = ConfigValues<typeof routerFields>
