/** Limits for links to other routers. */
export const linkLimits = {
  /**
   * Maximum changes of other routers that are read from one message of a controller; also the
   * maximum number of routers that this router dials.
   */
  peersMax: 1024,
  /**
   * Maximum link listeners that are stored for one other router; further listeners are ignored.
   */
  peerListenersMax: 16,
  /** Maximum open connections per link listener, including those that are not admitted yet. */
  linkConnectionsMax: 4096,
  /** Maximum open connections of one source; high, because several routers may share an address. */
  linkConnectionsPerSourceMax: 512,
  /**
   * Maximum TLS handshakes of a link listener at the same time. A further handshake closes the
   * oldest one of the source with the most handshakes.
   */
  linkHandshakesMax: 256,
  /**
   * Maximum TLS handshakes of one source at a link listener; a further handshake closes the oldest
   * one of that source.
   */
  linkHandshakesPerSourceMax: 32,
  /** Maximum sockets of one link that another router has dialed. */
  linkSocketsMax: 32,
  /**
   * First delay before an additional socket is dialed again; it doubles after each failure, up to
   * `furtherSocketWaitMsMax`.
   */
  furtherSocketWaitMs: 2000,
  /** Maximum delay before an additional socket is dialed again. */
  furtherSocketWaitMsMax: 60_000,
  /**
   * Maximum time after the TLS handshake for a controller to confirm the certificate of the dialing
   * router.
   */
  linkAdmissionMsMax: 10_000,
  /**
   * Maximum connections whose certificate no controller has confirmed yet. At the limit, a new
   * connection closes an older one.
   */
  linksWaitingMax: 256,
  /**
   * Maximum connections with the same certificate that no controller has confirmed yet; a further
   * connection closes the oldest of them.
   */
  linksWaitingPerCertificateMax: 8,
} as const
