/** Limits of sockets to clients and targets. */
export const socketLimits = {
  /**
   * Maximum sockets to targets for all dialing identities; lower if the process may open fewer
   * files.
   */
  targetSocketsMax: 32_768,
  /** Maximum bytes of a stream in one payload. */
  pieceBytesMax: 32 * 1024,
  /**
   * Maximum time after the end of a circuit in which a peer reads nothing of its remaining data;
   * then its connection is reset.
   */
  flushMsMax: 10 * 60_000,
  /**
   * Time after the last byte was sent to a peer, in which data from the peer is read and discarded.
   */
  lingerMs: 2000,
  /** Maximum bytes of a datagram. */
  datagramBytesMax: 65_507,
  /**
   * Bytes of datagrams that wait to be sent to one peer, above which its circuit delivers no more
   * until they are sent.
   */
  datagramsUnsentBytesMax: 256 * 1024,
  /**
   * Time without datagrams after which a peer is forgotten and its circuit ends; for tunnels, the
   * option `udpIdleTimeout` may set another time.
   */
  datagramsIdleMs: 60_000,
  /** Maximum UDP peers of one datagram listener, with or without a circuit. */
  datagramPeersMax: 4096,
  /** Maximum UDP peers of one source at a datagram listener. */
  datagramPeersPerSourceMax: 1024,
  /** Maximum datagrams of one peer that wait for its circuit; more are dropped. */
  datagramsWaitingMax: 16,
  /** Maximum bytes of the datagrams of one peer that wait for its circuit; more are dropped. */
  datagramsWaitingBytesMax: 64 * 1024,
  /**
   * Maximum bytes of datagrams of all peers of a listener that wait for their circuits; more are
   * dropped.
   */
  datagramsWaitingBytesOfAllMax: 4 * 1024 * 1024,
  /** Time for which datagrams of a peer are ignored after its circuit was refused. */
  datagramPeerRefusedMs: 1000,
  /** Maximum open connections of one stream listener; more are closed immediately. */
  streamConnectionsMax: 8192,
  /**
   * Maximum open connections from one source to one stream listener; more are closed immediately.
   */
  streamConnectionsPerSourceMax: 4096,
  /** Maximum TLS handshakes of one listener at the same time. */
  streamHandshakesMax: 512,
  /**
   * Maximum connections without a complete ClientHello to a port that several TLS servers share. A
   * further connection closes the oldest one of the source with the most such connections.
   */
  hellosWaitingMax: 1024,
  /**
   * Maximum connections of one source to a shared port whose ClientHello has not arrived
   * completely; a further connection closes the oldest one of that source.
   */
  hellosWaitingPerSourceMax: 128,
  /**
   * Maximum bytes of a PROXY protocol header. TCP over IPv6 needs 52; the remaining bytes permit
   * extensions, which are ignored.
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
   * Maximum kinds of failures for which the time of the last log line is stored; above that, the
   * least recently used kind is evicted.
   */
  failureKindsMax: 256,
} as const
