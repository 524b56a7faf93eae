// Names of the tests that prove the effects of the options in option-table.test.ts.

/** Tests below `test/` as `file > block > test`, or the reason why the key has no effect. */
export type Proof = readonly string[] | string

export const router = (title: string): string => `router/router.test.ts > ${title}`
export const links = (title: string): string => `router/links.test.ts > ${title}`
export const rules = (title: string): string => `config/router/rules.test.ts > ${title}`
export const linkOption = (title: string): string => `router/link-options.test.ts > ${title}`
export const operations = (title: string): string =>
  `router/controller-request-limiter.test.ts > ${title}`
export const ctrl = (title: string): string => `router/controller-options.test.ts > ${title}`
export const opened = (title: string): string => `router/listener-options.test.ts > ${title}`
export const metrics = (title: string): string => `router/metrics-options.test.ts > ${title}`
export const edge = (title: string): string => `router/edge/edge-options.test.ts > ${title}`
export const web = (title: string): string =>
  `router/edge/web-sockets.test.ts > The timeouts in transport.ws and transport.wss > ${title}`
export const byName =
  'router/server-names.test.ts > A certificate that the configuration assigns to a server name > is presented by a listener for %s'
export const sockets = (title: string): string =>
  `router/link-sockets.test.ts > A link with several sockets > ${title}`
export const routes = (title: string): string => `router/forward/routes.test.ts > ${title}`
const end = (title: string): string =>
  `router/forward/xgress-options.test.ts > The options of a circuit endpoint: > ${title}`
export const faults = (title: string): string => `router/forward/faults.test.ts > ${title}`
const enroll = (title: string): string => `cli/router/enroll.test.ts > router enroll > ${title}`
export const proxied = (title: string): string =>
  `router/proxied.test.ts > A router with an HTTP proxy > ${title}`
export const listen = (title: string): string => `router/listen/client-listeners.test.ts > ${title}`

const enrolled = [
  enroll('writes the key, the certificates, the CA certificates and the endpoints file'),
]
export const hello = router(
  'A router > sends a hello with its ID from the certificate, its version, its capabilities and the offer of a socket group',
)
export const health = router(
  'The health-checks API of a router > shows whether a controller responds and how many links the router has',
)
export const figures = router(
  'A router reports to controllers > its metrics at each interval: the same to all controllers, only one of which publishes them',
)
export const oneLink = links(
  'Routers with links > report their link listeners in their hello, and have one link after one of them has dialed the other',
)
const circuitStart = end(
  'circuitStartTimeout is how long a terminator waits for the start of the circuit',
)

/** Tests of the name server of a tunnel, and of interception in mode tproxy. */
export const answers = (title: string): string =>
  `router/intercept/name-server.test.ts > The DNS server of a tunneler > ${title}`
export const intercepted = (title: string): string =>
  `router/intercept/tproxy-interceptor.namespaced.ts > A service that a router intercepts > ${title}`

/** Keys below a section, each with its proof. */
export function below(place: string, proofs: Readonly<Record<string, Proof>>): [string, Proof][] {
  return Object.entries(proofs).map(([name, proof]) => [`${place}.${name}`, proof])
}

/** The same proof for several keys. */
export function each(keys: readonly string[], proof: Proof): [string, Proof][] {
  return keys.map((key) => [key, proof])
}

const subject = each(
  ['country', 'province', 'locality', 'organization', 'organizationalUnit'],
  enrolled,
)
const names = each(['sans.dns', 'sans.ip', 'sans.uri', 'sans.email'], enrolled)
export const csr = Object.fromEntries([...subject, ...names])
export const csrBelowEdge = [
  rules(
    'The configuration section csr: > a section csr inside edge is accepted although deprecated, and the section at the top level takes precedence',
  ),
]

/** Tests of circuit endpoints with their options, regardless of the source of the options. */
export const flow: Readonly<Record<string, readonly string[] | string>> = {
  mtu: [end('mtu splits larger payloads')],
  randomDrops: [end('randomDrops drops one payload in drop1InN')],
  drop1InN: [end('randomDrops drops one payload in drop1InN')],
  txQueueSize: [end('txQueueSize limits the number of waiting payloads')],
  txPortalStartSize: [end('txPortalStartSize is the initial size of the send window')],
  txPortalMinSize: [
    end(
      'txPortalRetxThresh, txPortalRetxScale and txPortalMinSize determine how the send window shrinks',
    ),
  ],
  txPortalMaxSize: [end('txPortalMaxSize is the maximum size of the send window')],
  txPortalIncreaseThresh: [
    end('txPortalIncreaseThresh and txPortalIncreaseScale determine how the send window grows'),
  ],
  txPortalIncreaseScale: [
    end('txPortalIncreaseThresh and txPortalIncreaseScale determine how the send window grows'),
  ],
  txPortalRetxThresh: [
    end(
      'txPortalRetxThresh, txPortalRetxScale and txPortalMinSize determine how the send window shrinks',
    ),
  ],
  txPortalRetxScale: [
    end(
      'txPortalRetxThresh, txPortalRetxScale and txPortalMinSize determine how the send window shrinks',
    ),
  ],
  txPortalDupAckThresh: [
    end('txPortalDupAckThresh increases the retransmission delay after duplicate acknowledgments'),
  ],
  txPortalDupAckScale: 'OpenZiti routers read this option and do not use it either',
  rxBufferSize: [end('rxBufferSize limits the bytes that wait until the application reads them')],
  retxStartMs: [end('retxStartMs is the delay of the first retransmission')],
  retxScale: [end('retxScale, retxAddMs and retxMaxMs determine when a payload is resent')],
  retxAddMs: [end('retxScale, retxAddMs and retxMaxMs determine when a payload is resent')],
  retxMaxMs: [end('retxScale, retxAddMs and retxMaxMs determine when a payload is resent')],
  maxRttScale: [end('maxRttScale limits how fast the estimated round trip time can grow')],
  maxCloseWaitMs: [
    end(
      'maxCloseWaitMs is how long a circuit endpoint that has finished waits for the other endpoint',
    ),
  ],
  circuitStartTimeout: [circuitStart],
}

/**
 * @param reaches the test that proves that circuit endpoints of this section receive the options.
 */
export function flowAt(
  place: string,
  reaches: string,
  more: Readonly<Record<string, Proof>>,
): [string, Proof][] {
  const shown = Object.entries(flow).map(([name, proof]): [string, Proof] => [
    name,
    typeof proof === 'string' ? proof : [...proof, reaches],
  ])
  return below(place, { ...Object.fromEntries(shown), ...more })
}

export const reachesOf = (place: string): string =>
  `router/flow-options.test.ts > The configured options determine the circuit endpoint > in ${place}`
export const listenerFlow = {
  connectTimeout: 'dialers connect to services, and listeners do not',
  advertise: 'nobody is told where it listens: its clients are configured with it',
}
export const waitsForCircuit = [
  listen('A proxy listener > stops waiting for a circuit after getCircuitTimeout'),
]
