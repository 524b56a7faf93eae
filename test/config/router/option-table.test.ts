import { expect, test } from 'vitest'

import type { SchemaFields } from '../../../src/config/engine/schema.ts'
import { flowControlOptions } from '../../../src/config/router/shared-options.ts'
import { routerFields } from '../../../src/config/router/table.ts'
import { withoutTest } from '../../support/titles.ts'
import {
  answers,
  below,
  byName,
  csr,
  csrBelowEdge,
  ctrl,
  each,
  edge,
  faults,
  figures,
  flow,
  flowAt,
  health,
  hello,
  intercepted,
  linkOption,
  links,
  listen,
  listenerFlow,
  metrics,
  oneLink,
  opened,
  operations,
  proxied,
  reachesOf,
  router,
  routes,
  rules,
  sockets,
  waitsForCircuit,
  web,
  type Proof,
} from './option-proofs.ts'

// Goal: a test proves the effect of each option in a router's configuration. Method: a table of all
// keys, each with its tests by file and title, or with the reason why it has no effect. The list
// below contains exactly the keys without a test; a new test removes its key from that list.

const table: readonly (readonly [string, Proof])[] = [
  ['v', [rules('The router configuration file > is refused without v: 3')]],
  ...below('identity', {
    cert: [hello],
    key: [hello],
    server_cert: [oneLink],
    server_key: [oneLink],
    ca: [
      router(
        'A router refuses to connect to > a host whose name is not in its certificate, or whose CA is unknown',
      ),
    ],
    'alt_server_certs[].server_cert': [byName],
    'alt_server_certs[].server_key': [byName],
  }),
  ...each(
    ['ctrl.endpoint', 'ctrl.options.endpoint'],
    [
      rules(
        'The configuration section ctrl: > the key "endpoints" is ignored if "endpoint" is also given',
      ),
      rules(
        'The configuration section ctrl: > the key options accepts the options of a channel, and also endpoint and defaultRequestTimeout',
      ),
    ],
  ),
  ...each(
    ['ctrl.endpoints', 'ctrl.options.endpoints'],
    [
      router('A router > keeps only one channel to a controller that has two addresses'),
      rules(
        'The configuration section ctrl: > the key options accepts the options of a channel, and also endpoint and defaultRequestTimeout',
      ),
    ],
  ),
  ...each(
    ['ctrl.bind', 'ctrl.options.bind'],
    [ctrl('a router dials controllers from the local address in %s')],
  ),
  ...each(
    ['ctrl.defaultRequestTimeout', 'ctrl.options.defaultRequestTimeout'],
    [
      ctrl(
        'with the option %s, an unanswered request to a controller is repeated sooner than after the default timeout of 5 s',
      ),
    ],
  ),
  ...['ctrl.heartbeats', 'ctrl.options.heartbeats'].flatMap((place) =>
    below(place, {
      sendInterval: [
        ctrl(
          'The heartbeats that ctrl.%s configures > are sent more often than each second if sendInterval and checkInterval are shorter',
        ),
      ],
      checkInterval: [
        ctrl(
          'The heartbeats that ctrl.%s configures > are sent more often than each second if sendInterval and checkInterval are shorter',
        ),
      ],
      closeUnresponsiveTimeout: [
        ctrl(
          'The heartbeats that ctrl.%s configures > mark a silent channel as unresponsive after unresponsiveAfter, and close it after closeUnresponsiveTimeout',
        ),
      ],
      unresponsiveAfter: [
        ctrl(
          'The heartbeats that ctrl.%s configures > mark a silent channel as unresponsive after unresponsiveAfter, and close it after closeUnresponsiveTimeout',
        ),
      ],
    }),
  ),
  ...below('ctrl', {
    startupTimeout: [
      router('A router > exits with advice if it cannot reach any controller in time'),
    ],
    endpointsFile: [
      router(
        'A router > can start with its endpoints file, even if no controller in the configuration exists',
      ),
    ],
    listeners: 'controllers that dial routers are not supported',
  }),
  ...below('ctrl.options', {
    outQueueSize: 'bytes are bounded: a controller that does not read loses the channel at 8 MiB',
    maxQueuedConnects: 'nothing is accepted at a channel that is dialed',
    maxOutstandingConnects: 'nothing is accepted at a channel that is dialed',
    connectTimeoutMs: [
      ctrl(
        'the option %s limits how long a router waits for a controller that accepts the connection and sends nothing',
      ),
    ],
    connectTimeout: [
      ctrl(
        'the option %s limits how long a router waits for a controller that accepts the connection and sends nothing',
      ),
    ],
    writeTimeout: [
      ctrl('a channel is closed if a message to the controller cannot be sent within writeTimeout'),
    ],
  }),
  ...below(
    'ctrl.rateLimiter',
    Object.fromEntries(
      each(
        ['enabled', 'minSize', 'maxSize', 'timeout'],
        'a fixed number of operations is bounded by forwarder.rateLimitedWorkerCount, and no window adapts',
      ),
    ),
  ),
  ...below('csr', csr),
  ...below('edge.csr', Object.fromEntries(Object.keys(csr).map((name) => [name, csrBelowEdge]))),
  [
    'dialers[].binding',
    [
      'router/dial/stream-dialer.test.ts > A router dials only with the bindings in its configuration',
    ],
  ],
  ...flowAt('dialers[].options', reachesOf('a dialer with the binding %s'), {
    getCircuitTimeout: 'dialers ask for no circuits',
    connectTimeout: [
      'router/dial/stream-dialer.test.ts > A failed dial is reported with this cause: > there was no response within the dialer’s connectTimeout, although the controller waits longer',
    ],
  }),
  ...below('edge', {
    heartbeatIntervalSeconds: [
      edge('a router reports the sessions in use every heartbeatIntervalSeconds'),
    ],
    db: 'the data model is kept only in memory',
    dbSaveIntervalSeconds: 'the data model is kept only in memory',
    sessionValidateChunkSize: 'sessions are checked when a controller has sent all of them',
    sessionValidateMinInterval: 'sessions are checked when a controller has sent all of them',
    sessionValidateMaxInterval: 'sessions are checked when a controller has sent all of them',
    apiProxy: 'the API of controllers is not forwarded by this router',
  }),
  ...below('forwarder', {
    faultTxInterval: [
      faults(
        'A frame for which a router has no next hop > is reported to the owner of the circuit, at most once per interval',
      ),
    ],
    idleCircuitTimeout: [
      faults(
        'A circuit without traffic > is repeatedly reported to its owner as existing, while a circuit with traffic is not',
      ),
    ],
    idleTxInterval: [
      faults(
        'A circuit without traffic > is repeatedly reported to its owner as existing, while a circuit with traffic is not',
      ),
    ],
    linkDialQueueLength: [
      linkOption(
        'The router that dials a link > dials at most linkDialWorkerCount routers at a time and queues linkDialQueueLength more; for any further router it logs that too many dials wait',
      ),
    ],
    linkDialWorkerCount: [
      linkOption(
        'The router that dials a link > dials at most linkDialWorkerCount routers at a time and queues linkDialQueueLength more; for any further router it logs that too many dials wait',
      ),
    ],
    rateLimitedQueueLength: [
      operations(
        'operations of a router above the limits of running and queued operations are refused',
      ),
    ],
    rateLimitedWorkerCount: [
      operations('terminators of hosting clients are requested one after the other'),
      operations('terminators of the tunneler are requested one after the other'),
    ],
    xgressCloseCheckInterval: [
      routes(
        'A circuit at a router > continues while frames arrive, up to a time limit, if the controller removes it gracefully',
      ),
    ],
    xgressDialDwellTime: [
      routes(
        'A route that a controller sends to a router > to a terminator leads to a dial only after the configured xgressDialDwellTime',
      ),
    ],
    xgressDialQueueLength: [
      routes(
        'A route that a controller sends to a router > is refused if the dial queue is full, and the routes in the queue are still dialed',
      ),
    ],
    xgressDialWorkerCount: [
      routes(
        'A route that a controller sends to a router > is refused if the dial queue is full, and the routes in the queue are still dialed',
      ),
    ],
    latencyProbeInterval: 'deprecated in the family: heartbeats measure the latency',
    unresponsiveLinkTimeout: [
      routes(
        'A route that a controller sends to a router > over a link that is silent for unresponsiveLinkTimeout is refused for new circuits, and existing circuits continue',
      ),
      linkOption(
        'A link > is unresponsive if the other router is silent for unresponsiveLinkTimeout, and closes after closeUnresponsiveTimeout',
      ),
    ],
  }),
  ...below('healthChecks.ctrlPingCheck', {
    interval: [health],
    timeout: [
      opened(
        'A web server of a router > reports that no controller responded to a ping within ctrlPingCheck.timeout',
      ),
    ],
    initialDelay: [health],
  }),
  ...below('healthChecks.linkCheck', {
    interval: [health],
    initialDelay: [health],
    minLinks: [health],
  }),
  ...below('link.listeners[]', {
    binding: [
      rules(
        'The configuration section link: > a listener has binding, bind and advertise, and only the binding transport is supported',
      ),
    ],
    bind: [oneLink],
    advertise: [oneLink],
    bindInterface:
      'it names the interface in reports of the family, and nothing reads those reports',
    groups: [
      links(
        'Routers with links > close the link to a removed router, and do not dial a router without a common link group',
      ),
    ],
    'options.outQueueSize': [
      linkOption(
        'A link > queues payloads and acknowledgments up to payloadSenderQueueSize, ackSenderQueueSize and outQueueSize',
      ),
    ],
    'options.maxQueuedConnects':
      'the program bounds connections that are not admitted itself, of one source and in all',
    'options.maxOutstandingConnects':
      'the program bounds connections that are not admitted itself, of one source and in all',
    'options.connectTimeoutMs': [
      linkOption(
        'The router that listens for links > stops waiting for the hello according to the option %s',
      ),
    ],
    'options.connectTimeout': [
      linkOption(
        'The router that listens for links > stops waiting for the hello according to the option %s',
      ),
    ],
    'options.writeTimeout': [
      linkOption(
        'The router that listens for links > closes a link to which a message cannot be sent within writeTimeout',
      ),
    ],
  }),
  ...below('link.dialers[]', {
    binding: [
      rules(
        'The configuration section link: > a dialer requires a binding, may have bind, and its split is true by default',
      ),
    ],
    split: [sockets('has one socket with split: false')],
    bind: [
      linkOption('The router that dials a link > dials from the local address in the option bind'),
    ],
    bindInterface:
      'it names the interface in reports of the family, and nothing reads those reports',
    groups: [
      links(
        'Routers with links > close the link to a removed router, and do not dial a router without a common link group',
      ),
    ],
    'options.outQueueSize': [
      linkOption(
        'A link > queues payloads and acknowledgments up to payloadSenderQueueSize, ackSenderQueueSize and outQueueSize',
      ),
    ],
    'options.maxQueuedConnects': 'nothing is accepted at a channel that is dialed',
    'options.maxOutstandingConnects': 'nothing is accepted at a channel that is dialed',
    'options.connectTimeoutMs': [
      linkOption(
        'The router that dials a link > stops waiting for a router that sends nothing, according to the option %s',
      ),
    ],
    'options.connectTimeout': [
      linkOption(
        'The router that dials a link > stops waiting for a router that sends nothing, according to the option %s',
      ),
    ],
    'options.writeTimeout': [
      linkOption(
        'The router that dials a link > closes a link to which a message cannot be sent within writeTimeout',
      ),
    ],
    maxDefaultConnections: [
      sockets('has maxDefaultConnections and maxAckConnections sockets at both of its routers'),
    ],
    maxAckConnections: [
      sockets('has maxDefaultConnections and maxAckConnections sockets at both of its routers'),
    ],
    startupDelay: [
      sockets('dials its additional sockets after startupDelay, and again if one is lost'),
    ],
  }),
  ...(['healthy', 'unhealthy'] as const).flatMap((state) => {
    const when =
      state === 'healthy'
        ? 'while controllers are connected to the other router'
        : 'while no controller is connected to the other router'
    const title = `The delay before a router dials another router again > grows according to ${state}DialBackoff ${when}`
    const keys = ['minRetryInterval', 'maxRetryInterval', 'retryBackoffFactor']
    const proof = [linkOption(title)]
    return each(
      keys.map((key) => `link.dialers[].${state}DialBackoff.${key}`),
      proof,
    )
  }),
  ...below('link', {
    'heartbeats.sendInterval': [
      linkOption(
        'A link > sends heartbeats more often than each second if sendInterval and checkInterval are shorter',
      ),
    ],
    'heartbeats.checkInterval': [
      linkOption(
        'A link > sends heartbeats more often than each second if sendInterval and checkInterval are shorter',
      ),
    ],
    'heartbeats.closeUnresponsiveTimeout': [
      linkOption(
        'A link > is unresponsive if the other router is silent for unresponsiveLinkTimeout, and closes after closeUnresponsiveTimeout',
      ),
    ],
    payloadSenderQueueSize: [
      linkOption(
        'A link > queues payloads and acknowledgments up to payloadSenderQueueSize, ackSenderQueueSize and outQueueSize',
      ),
    ],
    ackSenderQueueSize: [
      linkOption(
        'A link > queues payloads and acknowledgments up to payloadSenderQueueSize, ackSenderQueueSize and outQueueSize',
      ),
    ],
  }),
  ...below('listeners[]', {
    binding: [
      listen('A listener with the binding %s at a %s address prevents the start of the router'),
    ],
    bind: [
      listen(
        'A listener whose port is in use prevents the start of the router, and the error contains the configuration key of the listener',
      ),
    ],
    advertise: [
      'router/edge/program.test.ts > The router reports its client addresses to controllers',
    ],
    service: [listen('A proxy listener > creates a circuit to its service for each connection')],
  }),
  ...flowAt(
    'listeners[].options(edge)',
    'router/edge/connect.test.ts > A client that connects to a service > gets a circuit endpoint with the options of the listener',
    {
      advertise: [
        'router/edge/program.test.ts > The router reports its client addresses to controllers',
      ],
      lookupApiSessionTimeout: [
        'router/edge/admission.test.ts > A client of a router gets no channel > if it connects %s',
      ],
      lookupSessionTimeout:
        'this router waits for no service session: a controller judges each request',
      getSessionTimeout: 'deprecated in the family, which does not read it',
      getCircuitTimeout: [
        edge('getCircuitTimeout limits how long a controller may take to create a circuit'),
      ],
      outQueueSize: 'bytes are bounded: circuits wait for a client that has not read 1 MiB',
      maxQueuedConnects:
        'the program bounds connections that are not admitted itself, of one source and in all',
      maxOutstandingConnects:
        'the program bounds connections that are not admitted itself, of one source and in all',
      connectTimeoutMs: [
        opened('the listener option %s limits how long a router waits for a client’s hello'),
      ],
      connectTimeout: [
        opened('the listener option %s limits how long a router waits for a client’s hello'),
      ],
      writeTimeout: [
        edge('a client is disconnected if a message to it cannot be sent within writeTimeout'),
      ],
    },
  ),
  ...flowAt(
    'listeners[].options(tunnel)',
    reachesOf('a tunneler, both for hosted and for intercepted services'),
    {
      mode: [
        'router/tunnel/proxy-mode.test.ts > A TCP service (%s) > that a tunneler hosts is reached through a port that the tunneler opens for it',
      ],
      services: [
        'router/tunnel/proxy-mode.test.ts > A TCP service (%s) > that a tunneler hosts is reached through a port that the tunneler opens for it',
      ],
      resolver: [answers('resolves the name of a service in capital and small letters')],
      dnsSvcIpRange: [intercepted('is reached by its name, %s')],
      dnsUpstream: [
        answers('forwards queries for names that are not service names to upstream DNS servers'),
      ],
      dnsUpstreamMode: [
        answers(
          'queries the first upstream server, and the next one once the first has stopped, in the mode %s',
        ),
      ],
      dnsUnanswerable: [
        answers('answers queries for other names according to dnsUnanswerable: %s'),
      ],
      lanIf: [
        'attacks/addresses-a-service-takes.namespaced.ts > A host other than the tunnel’s > can use a service and gets a response from the name server if the option lanIf names its network',
      ],
      svcPollRate: 'deprecated in the family: services are pushed',
      udpCheckInterval: 'each flow has a timer of its own, so none looks for those that are over',
      udpIdleTimeout: [
        'router/tunnel/proxy-mode.test.ts > a UDP source that sends nothing for udpIdleTimeout loses its circuit',
      ],
      getCircuitTimeout: [
        'router/tunnel/proxy-mode.test.ts > getCircuitTimeout limits how long the tunneler waits for a circuit',
      ],
      connectTimeout: 'the config of each hosted service says how long its target has',
    },
  ),
  ...['transport', 'transport_udp', 'proxy', 'proxy_udp'].flatMap((binding) =>
    flowAt(`listeners[].options(${binding})`, reachesOf('a listener with the binding %s'), {
      ...listenerFlow,
      getCircuitTimeout: waitsForCircuit,
    }),
  ),
  ...below('metrics', {
    reportInterval: [figures, metrics('a router creates a metrics report every reportInterval')],
    messageQueueSize: [
      metrics(
        'a router keeps the newest messageQueueSize metrics reports while no controller is connected',
      ),
    ],
    intervalAgeThreshold: [
      metrics(
        'a router sends a metrics report once intervalAgeThreshold has passed since the report’s interval began',
      ),
    ],
    eventQueueSize: 'metrics are not queued one by one',
    enableDataDelayMetric: 'the time that data spends in this router is not measured',
  }),
  [
    'trace.path',
    [
      router(
        'A router whose configuration enables message tracing or profiling > writes each decoded message to the trace file, without the secret of the channel',
      ),
    ],
  ],
  ...below(
    'transport.<name>',
    Object.fromEntries(
      each(
        [
          'profile_version',
          'tx_portal_min_sz',
          'tx_portal_max_sz',
          'instrument.name',
          'instrument.path',
          'instrument.snapshot_ms',
          'instrument.enabled',
          'maxBytesPerSecond',
        ],
        'of protocols that OpenZiti has removed, or that this program does not have',
      ),
    ),
  ),
  ...below('transport.<name>', {
    readTimeout: [web('close a connection whose HTTP request is not complete in time')],
    handshakeTimeout: [
      web(
        'close a connection on which no channel is opened in time, with the value in transport.wss if both sections have one',
      ),
    ],
    pingInterval: [
      web(
        'make the router send pings to a client, and close the web socket if the client does not respond',
      ),
    ],
    pongTimeout: [
      web(
        'make the router send pings to a client, and close the web socket if the client does not respond',
      ),
    ],
    writeTimeout: 'a request without a web socket is answered at once',
    idleTimeout: 'a request without a web socket ends its connection',
    enableCompression: 'ciphertext cannot be compressed',
    ...Object.fromEntries(
      each(['readBufferSize', 'writeBufferSize'], 'Node chooses the size of its buffers'),
    ),
    ...Object.fromEntries(
      each(
        ['identity', 'server_cert', 'server_key', 'cert', 'key'],
        'identity has the certificates of all listeners',
      ),
    ),
  }),
  ...each(
    ['profile.cpu.path', 'profile.memory.path', 'profile.memory.intervalMs'],
    [
      router(
        'A router whose configuration enables message tracing or profiling > writes its profiles to files',
      ),
    ],
  ),
  ...below('web[]', {
    name: [opened('A web server of a router > is named in the log')],
    'bindPoints[].interface': [health],
    'bindPoints[].address': 'it says where others reach the server, and nobody is told of it',
    'bindPoints[].newAddress': [health],
    'apis[].binding': [
      rules(
        'The router configuration file > accepts the web APIs health-checks and metrics, which have no options',
      ),
    ],
    'identity.cert': 'a server shows its server certificate; `cert` is read by what dials',
    'identity.key': [
      opened('A web server of a router > presents the certificate in its own identity section'),
    ],
    'identity.server_cert': [
      opened('A web server of a router > presents the certificate in its own identity section'),
    ],
    'identity.ca': 'a client may show a certificate, and none is required',
    'options.readTimeout': [
      opened(
        'A web server of a router > closes a connection on which no complete request arrives within readTimeout',
      ),
    ],
    'options.idleTimeout': [
      opened(
        'A web server of a router > closes a connection on which no further request arrives within idleTimeout',
      ),
    ],
    'options.writeTimeout': [
      opened(
        'A web server of a router > closes a connection whose client does not read the response within writeTimeout',
      ),
    ],
    'options.minTLSVersion': [
      opened(
        'A web server of a router > accepts no TLS version below minTLSVersion or above maxTLSVersion',
      ),
    ],
    'options.maxTLSVersion': [
      opened(
        'A web server of a router > accepts no TLS version below minTLSVersion or above maxTLSVersion',
      ),
    ],
  }),
  ...below('proxy', {
    type: [proxied('reaches controllers and other routers through the proxy')],
    address: [proxied('reaches controllers and other routers through the proxy')],
    username: [proxied('authenticates to the proxy with the configured user name and password')],
    password: [proxied('authenticates to the proxy with the configured user name and password')],
  }),
  [
    'tls.handshakeTimeout',
    [
      opened(
        'The option tls.handshakeTimeout limits how long a TLS handshake may take > at a listener for %s',
      ),
    ],
  ],
  ...below('interfaceDiscovery', {
    disabled: [
      router(
        'A router reports to controllers > no network interfaces if the option interfaceDiscovery disables this',
      ),
    ],
    checkInterval: [
      ctrl(
        'with a checkInterval and minReportInterval of 1 s, a router reports its network interfaces more than once',
      ),
    ],
    minReportInterval: [
      ctrl(
        'with a checkInterval and minReportInterval of 1 s, a router reports its network interfaces more than once',
      ),
    ],
  }),
  [
    'connectEvents',
    'the router reports clients to controllers each second, and all of them when a controller connects',
  ],
  ['enableDebugOps', 'there are no debugging operations'],
  ['plugins', 'plugins of other routers cannot be loaded'],
  ['managedConfig', 'controllers push no configuration to this router'],
  ['ha', 'the members of the cluster are followed without it'],
]

/** Keys whose effect no test proves. */
const unproven: readonly string[] = []

/** All keys, each with whether the configuration marks it as having an effect. */
function keysOf(fields: SchemaFields, prefix = '', hasEffect = true): [string, boolean][] {
  return Object.entries(fields).flatMap(([name, node]): [string, boolean][] => {
    const key = prefix + name
    const isInForce = hasEffect && node.hasEffect !== false
    switch (node.kind) {
      case 'option':
        return [[key, isInForce]]
      case 'ignored':
        return [[key, false]]
      case 'variants':
        return Object.entries(node.fieldsOf).flatMap(([kind, inner]) =>
          keysOf(inner, `${key}(${kind}).`, isInForce),
        )
      case 'section':
        return keysOf(node.fields, `${key}.`, isInForce)
      case 'list':
        return keysOf(node.fields, `${key}[].`, isInForce)
      case 'keyed':
        return keysOf(node.fields, `${key}.<name>.`, isInForce)
    }
  })
}

test('for each router option, the table lists a test of its effect, or the reason why the option has no effect', () => {
  const keys = keysOf(routerFields)
  const proofs = new Map(table)
  expect(table.map(([key]) => key).toSorted()).toEqual(keys.map(([key]) => key).toSorted())
  const lacking = keys.filter(([key]) => proofs.get(key)?.length === 0).map(([key]) => key)
  expect(lacking.toSorted()).toEqual(unproven.toSorted())
})

test('the warnings about router options without effect match the table', () => {
  const proofs = new Map(table)
  const proven = keysOf(routerFields).filter(([key]) => !unproven.includes(key))
  for (const [key, hasEffect] of proven) {
    expect(typeof proofs.get(key) !== 'string', `${key} has an effect`).toBe(hasEffect)
  }
})

test('each test in the table of router options exists, with the exact title, and is not skipped', () => {
  const named = table.flatMap(([, proof]) => (typeof proof === 'string' ? [] : proof))
  expect(
    withoutTest([...new Set(named)]),
    'the test was renamed or removed: name the test that proves the option now',
  ).toEqual([])
})

test('the tests of router options cover each option of a circuit endpoint', () => {
  const others = ['getCircuitTimeout', 'connectTimeout']
  expect([...Object.keys(flow), ...others].toSorted()).toEqual(
    Object.keys(flowControlOptions).toSorted(),
  )
})
