/** Limits for links to other routers. */
export const linkLimits = {
  /** Dialed routers, and listeners of each. */
  peersMax: 1024,
  peerListenersMax: 16,
  /** Open connections per link listener, including those that are not admitted yet. */
  linkConnectionsMax: 4096,
  /** Connections per source, because several routers may share an address. */
  linkConnectionsPerSourceMax: 512,
  /**
   * Pending handshakes per listener; one more closes the oldest of its source, or of the busiest
   * one.
   */
  linkHandshakesMax: 256,
  linkHandshakesPerSourceMax: 32,
  /** Sockets of one link dialed by another router. */
  linkSocketsMax: 32,
  /** Delay before an additional socket is redialed; grows from the first to the second value. */
  furtherSocketWaitMs: 2000,
  furtherSocketWaitMsMax: 60_000,
  /** Maximum time from the TLS handshake of a dialing router until a controller has verified it. */
  linkAdmissionMsMax: 10_000,
  /** Connections in that state: total, and per certificate; one more closes the oldest. */
  linksWaitingMax: 256,
  linksWaitingPerCertificateMax: 8,
} as const
