/** Everything of one tunnel without a router that could grow, and its waits. */
export const tunnelLimits = {
  /** Identities that one process serves. */
  identitiesMax: 16,
  /** Records of one page that a controller is asked for. */
  recordsPerPage: 500,
  /** Controllers and edge routers that are known, and addresses of each. */
  controllersMax: 64,
  edgeRoutersMax: 64,
  addressesPerRouterMax: 4,
  /** How often a controller is asked whether services have changed, and for all else. */
  askedEveryMs: 5000,
  refreshedEveryMs: 60_000,
  /** Waits after failures grow from the one to the other, half of each by chance. */
  askAgainMsMin: 500,
  askAgainMsMax: 30_000,
  /** The same for an edge router that could not be reached, or was lost. */
  redialMsMin: 500,
  redialMsMax: 30_000,
  /** Time from the first packet to the answer to the hello. */
  helloMs: 10_000,
  /** An edge router is asked for a sign of life so often, and closed without one in so long. */
  probedEveryMs: 10_000,
  probeMs: 20_000,
  /** Edge routers at which one service is hosted. */
  hostedAtMax: 3,
  /** Answer of an edge router to a request to host a service, and to be ready for its clients. */
  bindMs: 10_000,
  /** Waits before a service is hosted again where it was refused grow from the one to the other. */
  bindAgainMsMin: 1000,
  bindAgainMsMax: 60_000,
  /** Hosts are judged so often, for what was put off. */
  hostsJudgedEveryMs: 1000,
  /** Changes of what is hosted that are asked for at a time. */
  hostChangesAtOnceMax: 16,
  /** Connections of clients to hosted services that are being made, of one edge router. */
  dialsOfRouterMax: 1024,
  dialMs: 5000,
  /** Circuits with one edge router. */
  circuitsPerRouterMax: 16_384,
  /** A circuit that is there and is not opened ends. */
  openedWithinMs: 10_000,
  /** Dials under way, of one identity. */
  dialsMax: 128,
  /** Bytes that all circuits keep; the services share them. */
  bufferedBytesMax: 256 * 1024 * 1024,
  /** Text of a refusal that is logged. */
  reasonCharactersMax: 512,
  /** A clean stop takes no longer. */
  stopMsMax: 5000,
  /** The session is ended at a stop within this time, or left to expire. */
  logOutMs: 2000,
} as const
