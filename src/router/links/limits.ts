/** Limits for links to other routers. */
export const linkLimits = {
  /** Maximum routers that are dialed, and maximum listeners of each. */
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
  /**
   * Connections that wait for this verification: in total, and per certificate. At a limit, a new
   * connection closes the oldest one.
   */
  linksWaitingMax: 256,
  linksWaitingPerCertificateMax: 8,
} as const
