/** Limits for callers of the mesh port, before and after their authentication. */
export const meshLimits = {
  /**
   * Maximum time from accepting a connection to the end of its TLS handshake; after that, the
   * connection is closed.
   */
  meshHandshakeTimeoutMs: 10_000,
  /**
   * Maximum handshakes in progress. At the limit, a new handshake closes the oldest handshake of
   * the source that has the most.
   */
  meshHandshakesMax: 128,
  /**
   * Maximum handshakes of one source. At the limit, a new handshake closes the oldest one of that
   * source.
   */
  meshHandshakesPerSourceMax: 32,
  /** Maximum connections of one source; further connections are immediately closed. */
  meshConnectionsPerSourceMax: 192,
  /**
   * Connections that one source may open without a pause (burst); further connections are
   * immediately closed.
   */
  meshConnectionsBurst: 128,
  /**
   * Connections that one source may open per second after the burst; further connections are
   * immediately closed.
   */
  meshConnectionsPerSecond: 32,
  /** Maximum sources whose rate is tracked. */
  meshSourcesMax: 10_000,
  /**
   * Maximum connections of one member. At the limit, a new connection closes the oldest one of that
   * member.
   */
  meshSessionsPerControllerMax: 4,
  /**
   * Maximum connections of a controller that is not a member, or whose key differs from its member
   * record. At the limit, a new connection closes the oldest one of that controller.
   */
  meshSessionsPerStrangerMax: 2,
  /** Maximum connections of all non-members; further connections are immediately closed. */
  meshStrangersMax: 16,
  /** Maximum time that a non-member may be connected. */
  meshStrangerMs: 30_000,
  /** Maximum concurrent streams of one connection. */
  meshStreamsMax: 8,
  /** Maximum concurrent streams of one connection of a non-member. */
  meshStreamsOfStrangerMax: 4,
  /**
   * Streams that a connection may open without a pause (burst); a connection that exceeds this
   * number is closed.
   */
  meshStreamsBurst: 16,
  /**
   * Streams that a connection may open per second after the burst; a connection that exceeds this
   * number is closed.
   */
  meshStreamsPerSecond: 2,
  /**
   * Pings and settings that a connection may send without a pause (burst); a connection that
   * exceeds this number is closed.
   */
  meshControlsBurst: 64,
  /**
   * Pings and settings that a connection may send per second after the burst; a connection that
   * exceeds this number is closed.
   */
  meshControlsPerSecond: 16,
  /** Maximum invalid frames of a connection; the next invalid frame closes it. */
  meshInvalidFramesMax: 16,
} as const
