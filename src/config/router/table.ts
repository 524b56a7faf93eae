import {
  defineIgnoredSection,
  defineSectionList,
  defineOption,
  defineOptionalSection,
  REQUIRED_OPTION,
  defineRequiredSection,
  defineSection,
  type ConfigValues,
  defineVariantSection,
  markWithoutEffect,
} from '../engine/schema.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../engine/units.ts'
import {
  booleanType,
  choiceType,
  durationType,
  integerType,
  millisecondsType,
  optionalType,
  pathType,
  textType,
} from '../engine/values.ts'
import {
  addressType,
  advertisedAddressType,
  dnsNamesType,
  emailsType,
  hostPortType,
  ipAddressesType,
  pemSourceType,
  urisType,
  fileVersionType,
} from './values.ts'
import {
  addressProtocols,
  channelOptions,
  controllerAddressOptions,
  dialerBindings,
  dialerOptions,
  heartbeatOptions,
  listenerBindings,
  listenerOptions,
} from './shared-options.ts'
import { linkSection } from './table-link.ts'
import { transportSection } from './table-transport.ts'
import { webServerConfigList } from './table-web.ts'

export const ROUTER_CONFIG_VERSION = 3

const subjectField = optionalType(textType())
const csrFields = {
  country: defineOption(subjectField, { default: null, why: 'Subject field C.' }),
  province: defineOption(subjectField, { default: null, why: 'Subject field ST.' }),
  locality: defineOption(subjectField, { default: null, why: 'Subject field L.' }),
  organization: defineOption(subjectField, { default: null, why: 'Subject field O.' }),
  organizationalUnit: defineOption(subjectField, { default: null, why: 'Subject field OU.' }),
  sans: defineSection('Names that the router requests for its server certificate.', {
    dns: defineOption(dnsNamesType, { default: [], why: 'DNS names.' }),
    ip: defineOption(ipAddressesType, { default: [], why: 'IP addresses.' }),
    uri: defineOption(urisType, { default: [], why: 'URIs.' }),
    email: defineOption(emailsType, { default: [], why: 'Mail addresses.' }),
  }),
} as const

const queueLength = integerType(1, 10_000)
const workerCount = integerType(1, 10_000)

/** Keys that the file may contain in `ctrl` or in `ctrl.options`. */
const controllerPlaces = {
  ...controllerAddressOptions,
  heartbeats: defineSection('Heartbeats to the controllers.', {
    ...heartbeatOptions(30_000),
    unresponsiveAfter: defineOption(durationType(100, DAY_MS), {
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
  v: defineOption(fileVersionType(ROUTER_CONFIG_VERSION), {
    default: REQUIRED_OPTION,
    why: 'Version of the file format.',
  }),
  identity: defineRequiredSection(
    'Certificate and key of this router.',
    {
      cert: defineOption(pemSourceType(), {
        default: REQUIRED_OPTION,
        why: 'Client certificate with its chain, for connections to controllers and routers.',
      }),
      key: defineOption(pemSourceType(), {
        default: REQUIRED_OPTION,
        why: 'Private key of `cert`, and of server certificates without a separate key; mode 0600.',
        isSecret: true,
      }),
      server_cert: defineOption(optionalType(pemSourceType()), {
        default: null,
        why: 'Server certificate with its chain, for the listeners of this router. Required to enroll.',
      }),
      server_key: defineOption(optionalType(pemSourceType()), {
        default: null,
        why: 'Private key of `server_cert`; absent: the key of `cert`.',
        isSecret: true,
      }),
      ca: defineOption(optionalType(pemSourceType()), {
        default: null,
        why: 'CA certificates with which the router verifies controllers and other routers. Required to enroll and to run.',
      }),
      alt_server_certs: defineSectionList(
        16,
        'Further server certificates. The router presents the first certificate that contains the name that the client requests.',
        {
          server_cert: defineOption(pemSourceType(), {
            default: REQUIRED_OPTION,
            why: 'Certificate with its chain.',
          }),
          server_key: defineOption(optionalType(pemSourceType()), {
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
  ctrl: defineRequiredSection(
    'The controllers. `router enroll` writes the addresses of the enrollment token into `endpointsFile` when neither `endpoint` nor `endpoints` is given.',
    {
      ...controllerPlaces,
      startupTimeout: defineOption(durationType(0, DAY_MS), {
        default: 30_000,
        why: 'If the router reaches no controller within this time after its start, it stops with exit code 1; 0s: it retries without a limit.',
      }),
      endpointsFile: defineOption(pathType(), {
        default: 'endpoints.yml',
        why: 'File in which the router keeps the current members and their keys, mode 0600. While the router is connected to fewer controllers than this file names, it also dials `endpoint` and `endpoints`.',
      }),
      options: defineSection(
        'Options of the channel. The keys of `ctrl` above are accepted here, too.',
        {
          ...channelOptions,
          ...controllerPlaces,
        },
      ),
      rateLimiter: markWithoutEffect(
        defineOptionalSection('Concurrent requests to one controller.', {
          enabled: defineOption(booleanType(), {
            default: true,
            why: 'Whether concurrent requests are limited.',
          }),
          minSize: defineOption(integerType(1, 1000), { default: 5, why: 'Minimum of the limit.' }),
          maxSize: defineOption(integerType(1, 1000), {
            default: 250,
            why: 'Maximum of the limit.',
          }),
          timeout: defineOption(durationType(1, HOUR_MS), {
            default: 30_000,
            why: 'Time without an answer after which a request counts as lost.',
          }),
        }),
      ),
      listeners: defineIgnoredSection('controllers that dial routers are not supported'),
    },
  ),
  csr: defineOptionalSection(
    'Fields of the certificates that the router requests at enrollment and renewal.',
    csrFields,
  ),
  dialers: defineSectionList(
    64,
    'Bindings of the terminators that this router dials, each with its options. Without an entry for a binding, the router dials no terminators with it. If a binding has several entries, the last one applies.',
    {
      binding: defineOption(textType(`a binding: ${dialerBindings.join(', ')}`), {
        default: REQUIRED_OPTION,
        why: 'transport: `tcp:`, `tls:` and `udp:` addresses. transport_udp: `udp:`, `udp4:` and `udp6:` addresses. proxy, proxy_udp: bindings for listeners; a dial to a terminator with such a binding fails as misconfigured.',
      }),
      options: defineSection('Options of the binding.', dialerOptions),
    },
  ),
  edge: defineOptionalSection(
    'If the section is present, even if it is empty, OpenZiti clients may connect.',
    {
      csr: defineOptionalSection('The section `csr` at its earlier place.', csrFields, {
        deprecated: 'move it to csr, at the top of the file',
      }),
      heartbeatIntervalSeconds: defineOption(integerType(10, 60), {
        default: 60,
        why: 'Interval at which the router reports to controllers which sessions are in use.',
      }),
      db: defineIgnoredSection('the data model is kept only in memory'),
      dbSaveIntervalSeconds: defineIgnoredSection('the data model is kept only in memory'),
      sessionValidateChunkSize: defineIgnoredSection(
        'sessions are checked when a controller has sent all of them',
      ),
      sessionValidateMinInterval: defineIgnoredSection(
        'sessions are checked when a controller has sent all of them',
      ),
      sessionValidateMaxInterval: defineIgnoredSection(
        'sessions are checked when a controller has sent all of them',
      ),
      apiProxy: defineIgnoredSection('the API of controllers is not forwarded by this router'),
    },
    { isPresentWhenEmpty: true },
  ),
  forwarder: defineSection('How payloads are forwarded.', {
    faultTxInterval: defineOption(millisecondsType(0, DAY_MS), {
      default: 15_000,
      why: 'Interval of reports about frames of circuits that this router does not know; 0: no reports.',
    }),
    idleCircuitTimeout: defineOption(millisecondsType(0, DAY_MS), {
      default: 60_000,
      why: 'Silence after which a circuit counts as idle and the router confirms it with the controller.',
    }),
    idleTxInterval: defineOption(millisecondsType(0, DAY_MS), {
      default: 60_000,
      why: 'Wait between checks of idle circuits; 0: no checks.',
    }),
    linkDialQueueLength: defineOption(queueLength, {
      default: 1000,
      why: 'Maximum number of link dials that wait.',
    }),
    linkDialWorkerCount: defineOption(workerCount, {
      default: 32,
      why: 'Maximum number of links that are dialed at the same time.',
    }),
    rateLimitedQueueLength: defineOption(integerType(1, 50_000), {
      default: 5000,
      why: 'Maximum number of rate-limited operations that wait: requests to controllers that create, change or remove terminators.',
    }),
    rateLimitedWorkerCount: defineOption(workerCount, {
      default: 5,
      why: 'Maximum number of rate-limited operations in progress at the same time.',
    }),
    xgressCloseCheckInterval: defineOption(millisecondsType(0, DAY_MS), {
      default: 5000,
      why: 'Time without frames after which the router removes the route of a circuit that has ended.',
    }),
    xgressDialDwellTime: defineOption(millisecondsType(0, DAY_MS), {
      default: 0,
      why: 'Delay before each dial of a service.',
    }),
    xgressDialQueueLength: defineOption(queueLength, {
      default: 1000,
      why: 'Maximum number of service dials that wait.',
    }),
    xgressDialWorkerCount: defineOption(workerCount, {
      default: 128,
      why: 'Maximum number of service dials at the same time.',
    }),
    latencyProbeInterval: defineIgnoredSection(
      'the router measures the latency of links by heartbeats',
      {
        isQuiet: true,
      },
    ),
    unresponsiveLinkTimeout: defineOption(durationType(5000, DAY_MS), {
      default: MINUTE_MS,
      why: 'Time without a response to a heartbeat after which the link gets no new circuits.',
    }),
  }),
  healthChecks: defineSection('Health checks of the `web` listener.', {
    ctrlPingCheck: defineSection('Health check that fails if no controller answers.', {
      interval: defineOption(durationType(100, DAY_MS), {
        default: 30_000,
        why: 'Interval of pings to the controllers.',
      }),
      timeout: defineOption(durationType(10, DAY_MS), {
        default: 15_000,
        why: 'Timeout of one ping.',
      }),
      initialDelay: defineOption(durationType(0, DAY_MS), {
        default: 15_000,
        why: 'Delay before the first ping.',
      }),
    }),
    linkCheck: defineSection('Health check that fails if the router has too few links.', {
      interval: defineOption(durationType(100, DAY_MS), {
        default: 5000,
        why: 'Interval of the check.',
      }),
      initialDelay: defineOption(durationType(0, DAY_MS), {
        default: 1000,
        why: 'Delay before the first check.',
      }),
      minLinks: defineOption(integerType(0, 1_000_000), {
        default: 0,
        why: 'If the router has fewer links than this, the check fails; 0: the check shows the links and never fails.',
      }),
    }),
  }),
  link: linkSection,
  listeners: defineSectionList(64, 'Ports that are open to clients.', {
    binding: defineOption(textType(`a binding: ${listenerBindings.join(', ')}`), {
      default: REQUIRED_OPTION,
      why: 'proxy, proxy_udp: the router creates a circuit to `service` for each connection, or for each source of datagrams. transport, transport_udp: the same, but to the service that the client names in its first line.',
    }),
    bind: defineOption(optionalType(addressType(addressProtocols.stream)), {
      default: null,
      why: 'Listen address. Required for all bindings except `tunnel`. transport and proxy listen on `tcp:` or `tls:`, transport_udp and proxy_udp on `udp:`.',
      aliases: ['address'],
    }),
    advertise: defineOption(optionalType(advertisedAddressType(addressProtocols.stream)), {
      default: null,
      why: 'Address of the listener for clients; may be given in `options`. Required for `edge`.',
    }),
    service: defineOption(optionalType(textType()), {
      default: null,
      why: 'proxy and proxy_udp: id or name of the service. To select an instance of the service, write `INSTANCE@SERVICE`.',
    }),
    options: defineVariantSection('binding', 'Options of the binding.', listenerOptions),
  }),
  metrics: defineSection('Reports to the controllers.', {
    reportInterval: defineOption(durationType(100, DAY_MS), {
      default: MINUTE_MS,
      why: 'Interval at which the router reports metrics.',
    }),
    messageQueueSize: defineOption(integerType(1, 10_000), {
      default: 10,
      why: 'Maximum number of metrics reports that wait while no controller is connected; the oldest are dropped.',
    }),
    intervalAgeThreshold: defineOption(durationType(0, DAY_MS), {
      default: 80_000,
      why: 'Age at which a batch of reports is sent, counted from the start of its interval.',
    }),
    eventQueueSize: defineIgnoredSection('metrics are not queued one by one'),
    enableDataDelayMetric: defineIgnoredSection(
      'the time that data spends in this router is not measured',
    ),
  }),
  trace: defineOptionalSection(
    'For debugging: writes all received and sent messages, decoded, to a file.',
    {
      path: defineOption(pathType(), { default: REQUIRED_OPTION, why: 'The file, mode 0600.' }),
    },
  ),
  transport: transportSection,
  profile: defineOptionalSection('For debugging: profiles of this process.', {
    cpu: defineOptionalSection('CPU profile, written when the router stops.', {
      path: defineOption(pathType(), { default: REQUIRED_OPTION, why: 'The file.' }),
    }),
    memory: defineOptionalSection(
      'Sampling profile of the JavaScript heap, written at an interval and when the router stops.',
      {
        path: defineOption(pathType(), { default: REQUIRED_OPTION, why: 'The file.' }),
        intervalMs: defineOption(millisecondsType(100, DAY_MS), {
          default: 15_000,
          why: 'Interval of memory profiles.',
        }),
      },
    ),
  }),
  web: webServerConfigList,
  proxy: defineOptionalSection(
    'A proxy for connections to controllers and other routers, and for enrollment and renewal.',
    {
      type: defineOption(choiceType(['none', 'http']), {
        default: REQUIRED_OPTION,
        why: 'http: connections are opened with the method CONNECT.',
      }),
      address: defineOption(optionalType(hostPortType()), {
        default: null,
        why: 'Address of the proxy. Required for `http`.',
      }),
      username: defineOption(optionalType(textType()), {
        default: null,
        why: 'Sent to the proxy with Basic authentication.',
      }),
      password: defineOption(optionalType(textType()), {
        default: null,
        why: 'Sent to the proxy with Basic authentication.',
        isSecret: true,
      }),
    },
    { refusesMisspellings: true },
  ),
  tls: defineSection('TLS of listeners.', {
    handshakeTimeout: defineOption(durationType(1, HOUR_MS), {
      default: 5000,
      why: 'Timeout of one TLS handshake.',
    }),
  }),
  interfaceDiscovery: defineSection(
    'Network interfaces reported to controllers.',
    {
      disabled: defineOption(booleanType(), {
        default: false,
        why: 'If true, the router does not report its network interfaces.',
      }),
      checkInterval: defineOption(durationType(1000, DAY_MS), {
        default: MINUTE_MS,
        why: 'Interval of checks for changed interfaces.',
      }),
      minReportInterval: defineOption(durationType(1000, 365 * DAY_MS), {
        default: DAY_MS,
        why: 'Interval at which the router reports its interfaces even if they have not changed.',
      }),
    },
    { refusesMisspellings: true },
  ),
  connectEvents: defineIgnoredSection(
    'the router reports clients to controllers each second, and all of them when a controller connects',
  ),
  enableDebugOps: defineIgnoredSection('there are no debugging operations'),
  plugins: defineIgnoredSection('plugins of other routers cannot be loaded'),
  managedConfig: defineIgnoredSection('controllers push no configuration to this router'),
  ha: defineIgnoredSection('the router always follows the members of the cluster'),
} as const

/** Validated values of a configuration file, with defaults and absolute paths. */
export type RouterConfig = ConfigValues<typeof routerFields>
