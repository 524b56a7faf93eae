import { expect, test } from 'vitest'

import type { Fields } from '../../../src/config/engine/schema.ts'
import { flowOptions } from '../../../src/config/router/shared-options.ts'
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

// Goal: every option of a router's configuration has the effect that it names, proven by a test.
// Method: the keys of the configuration, each with its tests by file and title, or with the reason
// why it has no effect. Keys without a test are listed below, exactly; a new test removes its key
// from that list.

const table: readonly (readonly [string, Proof])[] = [
  ['v', [rules('The file > is refused without v: 3')]],
  ...below('identity', {
    cert: [hello],
    key: [hello],
    server_cert: [oneLink],
    server_key: [oneLink],
    ca: [
      router(
        'A router refuses a connection to > a host whose name is not in its certificate, or whose authority is unknown',
      ),
    ],
    'alt_server_certs[].server_cert': [byName],
    'alt_server_certs[].server_key': [byName],
  }),
  ...each(
    ['ctrl.endpoint', 'ctrl.options.endpoint'],
    [
      rules('ctrl > endpoints is ignored when both are given'),
      rules('ctrl > options takes channel options and the fields above'),
    ],
  ),
  ...each(
    ['ctrl.endpoints', 'ctrl.options.endpoints'],
    [
      router('A router > keeps one channel to a controller for which it has two addresses'),
      rules('ctrl > options takes channel options and the fields above'),
    ],
  ),
  ...each(
    ['ctrl.bind', 'ctrl.options.bind'],
    [ctrl('controllers are dialed from the address of %s')],
  ),
  ...each(
    ['ctrl.defaultRequestTimeout', 'ctrl.options.defaultRequestTimeout'],
    [ctrl('a request to a controller times out after %s and is repeated')],
  ),
  ...['ctrl.heartbeats', 'ctrl.options.heartbeats'].flatMap((place) =>
    below(place, {
      sendInterval: [
        ctrl('Heartbeats of %s > are sent every sendInterval, checked every checkInterval'),
      ],
      checkInterval: [
        ctrl('Heartbeats of %s > are sent every sendInterval, checked every checkInterval'),
      ],
      closeUnresponsiveTimeout: [
        ctrl(
          'Heartbeats of %s > close a channel that is silent for closeUnresponsiveTimeout, which is unresponsive after unresponsiveAfter',
        ),
      ],
      unresponsiveAfter: [
        ctrl(
          'Heartbeats of %s > close a channel that is silent for closeUnresponsiveTimeout, which is unresponsive after unresponsiveAfter',
        ),
      ],
    }),
  ),
  ...below('ctrl', {
    startupTimeout: [
      router('A router > fails when no controller is reached in time, with a remedy'),
    ],
    endpointsFile: [
      router('A router > starts from its endpoints file, even if no configured controller exists'),
    ],
    listeners: 'controllers that dial routers are not supported',
  }),
  ...below('ctrl.options', {
    outQueueSize: 'bytes are bounded: a controller that does not read loses the channel at 8 MiB',
    maxQueuedConnects: 'nothing is accepted at a channel that is dialed',
    maxOutstandingConnects: 'nothing is accepted at a channel that is dialed',
    connectTimeoutMs: [
      ctrl('the option %s limits the wait for the answer of a controller to the hello'),
    ],
    connectTimeout: [
      ctrl('the option %s limits the wait for the answer of a controller to the hello'),
    ],
    writeTimeout: [
      ctrl('a channel is closed if its controller does not take a message within writeTimeout'),
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
      'router/dial/stream-dialer.test.ts > A router dials only for the bindings that its configuration names',
    ],
  ],
  ...flowAt('dialers[].options', reachesOf('a dialer with the binding %s'), {
    getCircuitTimeout: 'dialers ask for no circuits',
    connectTimeout: [
      'router/dial/stream-dialer.test.ts > A failed dial is reported with its cause: > no answer within connectTimeout of the dialer, though the controller waits longer',
    ],
  }),
  ...below('edge', {
    heartbeatIntervalSeconds: [edge('sessions in use are reported every heartbeatIntervalSeconds')],
    db: 'the data model is kept in memory alone',
    dbSaveIntervalSeconds: 'the data model is kept in memory alone',
    sessionValidateChunkSize: 'sessions are checked when a controller has sent all of them',
    sessionValidateMinInterval: 'sessions are checked when a controller has sent all of them',
    sessionValidateMaxInterval: 'sessions are checked when a controller has sent all of them',
    apiProxy: 'the API of controllers is not forwarded by this router',
  }),
  ...below('forwarder', {
    faultTxInterval: [
      faults(
        'A frame without a next hop > is reported to the owner of its circuit, at most once per interval',
      ),
    ],
    idleCircuitTimeout: [
      faults('An idle circuit > is confirmed repeatedly, unlike one with traffic'),
    ],
    idleTxInterval: [faults('An idle circuit > is confirmed repeatedly, unlike one with traffic')],
    linkDialQueueLength: [
      linkOption(
        'A dialer of links > dials linkDialWorkerCount routers at a time, queues linkDialQueueLength, and tries the others later',
      ),
    ],
    linkDialWorkerCount: [
      linkOption(
        'A dialer of links > dials linkDialWorkerCount routers at a time, queues linkDialQueueLength, and tries the others later',
      ),
    ],
    rateLimitedQueueLength: [
      operations('operations beyond the limits of running and waiting ones are refused'),
    ],
    rateLimitedWorkerCount: [
      operations('terminators of hosting clients are created one after the other'),
      operations('terminators of the tunnel are created one after the other'),
    ],
    xgressCloseCheckInterval: [
      routes('A circuit > that is removed gracefully continues while frames arrive, up to a limit'),
    ],
    xgressDialDwellTime: [routes('A route > waits for the dwell time before it dials')],
    xgressDialQueueLength: [
      routes('A route > that finds the dial queue full is refused, and earlier ones are dialed'),
    ],
    xgressDialWorkerCount: [
      routes('A route > that finds the dial queue full is refused, and earlier ones are dialed'),
    ],
    latencyProbeInterval: 'deprecated in the family: heartbeats measure the latency',
    unresponsiveLinkTimeout: [
      routes(
        'A route > over a link that has not answered for unresponsiveLinkTimeout takes no new circuit, and existing ones continue',
      ),
      linkOption(
        'A link > to a silent router counts as unresponsive after unresponsiveLinkTimeout, and closes after closeUnresponsiveTimeout',
      ),
    ],
  }),
  ...below('healthChecks.ctrlPingCheck', {
    interval: [health],
    timeout: [
      opened(
        'A server of web > reports controllers that do not answer a ping within ctrlPingCheck.timeout',
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
      rules('link > a listener has binding, bind and advertise; only transport is supported'),
    ],
    bind: [oneLink],
    advertise: [oneLink],
    bindInterface:
      'it names the interface in reports of the family, and nothing reads those reports',
    groups: [
      links(
        'Routers with links > close the link to a removed router, and dial none that shares no group',
      ),
    ],
    'options.outQueueSize': [
      linkOption(
        'A link > queues payloads and acknowledgements up to payloadSenderQueueSize, ackSenderQueueSize and outQueueSize',
      ),
    ],
    'options.maxQueuedConnects':
      'the program bounds connections that are not admitted itself, of one source and in all',
    'options.maxOutstandingConnects':
      'the program bounds connections that are not admitted itself, of one source and in all',
    'options.connectTimeoutMs': [
      linkOption('A listener of links > stops waiting for the hello after its option %s'),
    ],
    'options.connectTimeout': [
      linkOption('A listener of links > stops waiting for the hello after its option %s'),
    ],
    'options.writeTimeout': [
      linkOption(
        'A listener of links > closes a link that does not take a message within writeTimeout',
      ),
    ],
  }),
  ...below('link.dialers[]', {
    binding: [rules('link > a dialer has a binding; split is true; bind is optional')],
    split: [sockets('has one socket with split: false')],
    bind: [linkOption('A dialer of links > dials from the address in bind')],
    bindInterface:
      'it names the interface in reports of the family, and nothing reads those reports',
    groups: [
      links(
        'Routers with links > close the link to a removed router, and dial none that shares no group',
      ),
    ],
    'options.outQueueSize': [
      linkOption(
        'A link > queues payloads and acknowledgements up to payloadSenderQueueSize, ackSenderQueueSize and outQueueSize',
      ),
    ],
    'options.maxQueuedConnects': 'nothing is accepted at a channel that is dialed',
    'options.maxOutstandingConnects': 'nothing is accepted at a channel that is dialed',
    'options.connectTimeoutMs': [
      linkOption(
        'A dialer of links > stops waiting for the answer to its hello after its option %s',
      ),
    ],
    'options.connectTimeout': [
      linkOption(
        'A dialer of links > stops waiting for the answer to its hello after its option %s',
      ),
    ],
    'options.writeTimeout': [
      linkOption(
        'A dialer of links > closes a link that does not take a message within writeTimeout',
      ),
    ],
    maxDefaultConnections: [
      sockets('has maxDefaultConnections and maxAckConnections, at both of its routers'),
    ],
    maxAckConnections: [
      sockets('has maxDefaultConnections and maxAckConnections, at both of its routers'),
    ],
    startupDelay: [
      sockets('dials the additional ones after startupDelay, and again when one is lost'),
    ],
  }),
  ...(['healthy', 'unhealthy'] as const).flatMap((state) => {
    const when = state === 'healthy' ? 'while controllers reach it' : 'while they do not'
    const title = `The wait before a router is dialed again > grows by ${state}DialBackoff ${when}`
    const keys = ['minRetryInterval', 'maxRetryInterval', 'retryBackoffFactor']
    const proof = [linkOption(title)]
    return each(
      keys.map((key) => `link.dialers[].${state}DialBackoff.${key}`),
      proof,
    )
  }),
  ...below('link', {
    'heartbeats.sendInterval': [
      linkOption('A link > sends heartbeats every sendInterval, checked every checkInterval'),
    ],
    'heartbeats.checkInterval': [
      linkOption('A link > sends heartbeats every sendInterval, checked every checkInterval'),
    ],
    'heartbeats.closeUnresponsiveTimeout': [
      linkOption(
        'A link > to a silent router counts as unresponsive after unresponsiveLinkTimeout, and closes after closeUnresponsiveTimeout',
      ),
    ],
    payloadSenderQueueSize: [
      linkOption(
        'A link > queues payloads and acknowledgements up to payloadSenderQueueSize, ackSenderQueueSize and outQueueSize',
      ),
    ],
    ackSenderQueueSize: [
      linkOption(
        'A link > queues payloads and acknowledgements up to payloadSenderQueueSize, ackSenderQueueSize and outQueueSize',
      ),
    ],
  }),
  ...below('listeners[]', {
    binding: [listen('A listener %s on %s fails the start')],
    bind: [listen('A listener whose port is in use fails the start, with its configuration path')],
    advertise: [
      'router/edge/program.test.ts > The router reports its client addresses to controllers',
    ],
    service: [listen('A proxy listener > creates a circuit to its service for each connection')],
  }),
  ...flowAt(
    'listeners[].options(edge)',
    'router/edge/connect.test.ts > A client that connects > gets an end of the circuit with the options of the listener',
    {
      advertise: [
        'router/edge/program.test.ts > The router reports its client addresses to controllers',
      ],
      lookupApiSessionTimeout: ['router/edge/admission.test.ts > A client gets no channel > %s'],
      lookupSessionTimeout:
        'this router waits for no service session: a controller judges each request',
      getSessionTimeout: 'deprecated in the family, which does not read it',
      getCircuitTimeout: [
        edge('getCircuitTimeout limits the time for a controller to create a circuit'),
      ],
      outQueueSize: 'bytes are bounded: circuits wait for a client that has not read 1 MiB',
      maxQueuedConnects:
        'the program bounds connections that are not admitted itself, of one source and in all',
      maxOutstandingConnects:
        'the program bounds connections that are not admitted itself, of one source and in all',
      connectTimeoutMs: [
        opened('the option %s of a listener limits the wait for the hello of a client'),
      ],
      connectTimeout: [
        opened('the option %s of a listener limits the wait for the hello of a client'),
      ],
      writeTimeout: [
        edge('a client that does not take a message within writeTimeout is disconnected'),
      ],
    },
  ),
  ...flowAt(
    'listeners[].options(tunnel)',
    reachesOf('a tunnel, both where it hosts and where it offers'),
    {
      mode: [
        'router/tunnel/proxy-mode.test.ts > A TCP service, %s, > hosted by a tunnel is reached through a port of its clients',
      ],
      services: [
        'router/tunnel/proxy-mode.test.ts > A TCP service, %s, > hosted by a tunnel is reached through a port of its clients',
      ],
      resolver: [answers('resolves the name of a service in any case')],
      dnsSvcIpRange: [intercepted('is reached by its name, %s')],
      dnsUpstream: [answers('forwards unknown names to other name servers')],
      dnsUpstreamMode: [answers('asks several in the mode %s')],
      dnsUnanswerable: [answers('answers other names as dnsUnanswerable says: %s')],
      lanIf: [
        'attacks/addresses-a-service-takes.namespaced.ts > Another host > can use services and names if lanIf names its network, and nothing else',
      ],
      svcPollRate: 'deprecated in the family: services are pushed',
      udpCheckInterval: 'each flow has a timer of its own, so none looks for those that are over',
      udpIdleTimeout: [
        'router/tunnel/proxy-mode.test.ts > a datagram source that is silent for udpIdleTimeout loses its circuit',
      ],
      getCircuitTimeout: [
        'router/tunnel/proxy-mode.test.ts > getCircuitTimeout limits the wait for a circuit',
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
    reportInterval: [figures, metrics('a report is created every reportInterval')],
    messageQueueSize: [
      metrics(
        'messageQueueSize reports are kept while no controller is connected, the newest ones',
      ),
    ],
    intervalAgeThreshold: [
      metrics('a report is sent once intervalAgeThreshold has passed since its interval began'),
    ],
    eventQueueSize: 'metrics are not queued one by one',
    enableDataDelayMetric: 'the time that data spends in this router is not measured',
  }),
  [
    'trace.path',
    [
      router(
        'A router with debugging enabled > writes each message, decoded, without the secret of the channel',
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
    readTimeout: [web('close a connection that does not finish its request in time')],
    handshakeTimeout: [web('close a connection that opens no channel in time')],
    pingInterval: [web('ping a client, and close the web socket of one that is silent')],
    pongTimeout: [web('ping a client, and close the web socket of one that is silent')],
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
    [router('A router with debugging enabled > writes its profiles')],
  ),
  ...below('web[]', {
    name: [opened('A server of web > is logged with its name')],
    'bindPoints[].interface': [health],
    'bindPoints[].address': 'it says where others reach the server, and nobody is told of it',
    'bindPoints[].newAddress': [health],
    'apis[].binding': [
      rules('The file > accepts the APIs health-checks and metrics of web, which have no options'),
    ],
    'identity.cert': 'a server shows its server certificate; `cert` is read by what dials',
    'identity.key': [opened('A server of web > presents the certificate of its identity')],
    'identity.server_cert': [opened('A server of web > presents the certificate of its identity')],
    'identity.ca': 'a client may show a certificate, and none is required',
    'options.readTimeout': [
      opened('A server of web > closes a connection that sends no request within readTimeout'),
    ],
    'options.idleTimeout': [
      opened('A server of web > closes a connection without another request within idleTimeout'),
    ],
    'options.writeTimeout': [
      opened('A server of web > closes a connection whose answer is not read within writeTimeout'),
    ],
    'options.minTLSVersion': [
      opened(
        'A server of web > accepts no TLS version below minTLSVersion, and none above maxTLSVersion',
      ),
    ],
    'options.maxTLSVersion': [
      opened(
        'A server of web > accepts no TLS version below minTLSVersion, and none above maxTLSVersion',
      ),
    ],
  }),
  ...below('proxy', {
    type: [proxied('reaches controllers and other routers through it')],
    address: [proxied('reaches controllers and other routers through it')],
    username: [proxied('shows the proxy its name and password')],
    password: [proxied('shows the proxy its name and password')],
  }),
  [
    'tls.handshakeTimeout',
    [opened('tls.handshakeTimeout bounds the handshake > of a listener for %s')],
  ],
  ...below('interfaceDiscovery', {
    disabled: [router('A router reports to controllers > no interfaces if that is disabled')],
    checkInterval: [ctrl('interfaces are reported again by checkInterval and minReportInterval')],
    minReportInterval: [
      ctrl('interfaces are reported again by checkInterval and minReportInterval'),
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

/** Keys without a test of their effect. */
const unproven: readonly string[] = []

/** Every key, with whether the configuration marks it as having an effect. */
function keysOf(fields: Fields, prefix = '', hasEffect = true): [string, boolean][] {
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

test('each option of a router names a test of its effect, or the reason why it has none', () => {
  const keys = keysOf(routerFields)
  const proofs = new Map(table)
  expect(table.map(([key]) => key).toSorted()).toEqual(keys.map(([key]) => key).toSorted())
  const lacking = keys.filter(([key]) => proofs.get(key)?.length === 0).map(([key]) => key)
  expect(lacking.toSorted()).toEqual(unproven.toSorted())
})

test('the warnings about options without effect match the table', () => {
  const proofs = new Map(table)
  const proven = keysOf(routerFields).filter(([key]) => !unproven.includes(key))
  for (const [key, hasEffect] of proven) {
    expect(typeof proofs.get(key) !== 'string', `${key} has an effect`).toBe(hasEffect)
  }
})

test('each test that the table names exists, with the exact title, and is not skipped', () => {
  const named = table.flatMap(([, proof]) => (typeof proof === 'string' ? [] : proof))
  expect(
    withoutTest([...new Set(named)]),
    'renamed or gone: name the test that proves it now',
  ).toEqual([])
})

test('the tests cover each option of a circuit end', () => {
  const others = ['getCircuitTimeout', 'connectTimeout']
  expect([...Object.keys(flow), ...others].toSorted()).toEqual(Object.keys(flowOptions).toSorted())
})
