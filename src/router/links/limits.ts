/** Limits for links to other routers. */
export const linkLimits = {
  /**
   * Maximum changes of other routers that are read from one message of a controller, and maximum
   * other routers that are dialed.
   */
  peersMax: 1024,
  /**
   * Maximum link listeners that are stored for one other router; further listeners are ignored.
   */
  peerListenersMax: 16,
  /** Maximum open connections per link listener, including those that are not admitted yet. */
  linkConnectionsMax: 4096,
  /** Maximum connections per source; high, because several routers may share an address. */
  linkConnectionsPerSourceMax: 512,
  /**
   * Maximum pending handshakes per link listener; a further connection closes the oldest of its
   * source, or of the source with the most.
   */
  linkHandshakesMax: 256,
  /**
   * Maximum pending handshakes of one source at a link listener; one more closes the oldest of
   * that source.
   */
  linkHandshakesPerSourceMax: 32,
  /** Maximum sockets of one link that another router has dialed. */
  linkSocketsMax: 32,
  /**
   * First delay before an additional socket is redialed; it doubles after each failure, up to
   * `furtherSocketWaitMsMax`.
   */
  furtherSocketWaitMs: 2000,
  /** Maximum delay before an additional socket is redialed. */
  furtherSocketWaitMsMax: 60_000,
  /** Maximum time from the TLS handshake of a dialing router until a controller has verified it. */
  linkAdmissionMsMax: 10_000,
  /**
   * Maximum connections that wait for this verification. At the limit, a new connection closes an
   * older one.
   */
  linksWaitingMax: 256,
  /**
   * Maximum connections with the same certificate that wait for this verification; one more
   * closes the oldest.
   */
  linksWaitingPerCertificateMax: 8,
} as const
