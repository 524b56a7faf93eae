/** Limits of sockets to clients and targets. */
export const socketLimits = {
  /**
   * Maximum sockets to targets for all dialing identities; lower if the process may open fewer
   * files.
   */
  targetSocketsMax: 32_768,
  /** Maximum bytes of one piece of a stream. */
  pieceBytesMax: 32 * 1024,
  /** Time after the end of a circuit within which a peer must read its remaining data. */
  flushMsMax: 30_000,
  /**
   * Time after the last byte was sent to a peer, during which data from the peer is still read and
   * discarded.
   */
  lingerMs: 2000,
  /** Maximum bytes of a datagram. */
  datagramBytesMax: 65_507,
  /** Maximum bytes of unsent datagrams for one peer. */
  datagramsUnsentBytesMax: 256 * 1024,
  /** Idle time after which a datagram peer is dropped and its circuit ends. */
  datagramsIdleMs: 60_000,
  /** Maximum peers of one datagram listener, with or without a circuit. */
  datagramPeersMax: 4096,
  /** Maximum peers from one source address. */
  datagramPeersPerSourceMax: 1024,
  /** Maximum datagrams of one peer that wait for its circuit; more are dropped. */
  datagramsWaitingMax: 16,
  /** Maximum bytes of the datagrams of one peer that wait for its circuit; more are dropped. */
  datagramsWaitingBytesMax: 64 * 1024,
  /** Maximum waiting bytes of all peers of a listener. */
  datagramsWaitingBytesOfAllMax: 4 * 1024 * 1024,
  /** Time for which datagrams of a peer are ignored after its circuit was refused. */
  datagramPeerRefusedMs: 1000,
  /**
   * Maximum open connections of one stream listener; further connections are closed immediately.
   */
  streamConnectionsMax: 8192,
  /**
   * Maximum open connections from one source address to one stream listener; more are closed at
   * once.
   */
  streamConnectionsPerSourceMax: 4096,
  /** Maximum TLS handshakes in progress at one listener. */
  streamHandshakesMax: 512,
  /**
   * Maximum connections without a complete hello at a port that several TLS servers share. A
   * further connection closes the oldest connection of its source, or of the source with the most
   * connections.
   */
  hellosWaitingMax: 1024,
  /**
   * Maximum connections of one source without a complete hello at such a port; a further connection
   * closes the oldest.
   */
  hellosWaitingPerSourceMax: 128,
  /**
   * Maximum bytes of a PROXY protocol header. TCP over IPv6 needs 52; the rest is for extensions,
   * which are not read.
   */
  proxyHeaderBytesMax: 536,
  /**
   * Maximum bytes of the line in which a client names its service; above that, the client gets an
   * error line and its connection is closed.
   */
  requestLineBytesMax: 4096,
  /**
   * Maximum time for the line in which a client names its service; after that, the client gets
   * an error line and its connection is closed.
   */
  requestLineMsMax: 10_000,
  /** Minimum interval between two log lines about the same kind of failure. */
  failureLoggedEveryMs: 60_000,
  /**
   * Maximum kinds of failures whose last log line is tracked; the least recently used kind is
   * evicted first.
   */
  failureKindsMax: 256,
} as const
