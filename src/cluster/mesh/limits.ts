/** Limits for callers of the mesh port, before and after their authentication. */
export const meshLimits = {
  /**
   * Maximum time from the first packet to the end of the TLS handshake; then the connection is
   * closed.
   */
  meshHandshakeTimeoutMs: 10_000,
  /**
   * Maximum handshakes in progress. A further one closes the oldest of the source with the most.
   */
  meshHandshakesMax: 128,
  /** Maximum handshakes of one source. A further one closes its oldest. */
  meshHandshakesPerSourceMax: 32,
  /** Maximum connections of one source; further ones are closed at once. */
  meshConnectionsPerSourceMax: 192,
  /**
   * Connections that one source may open at once, and then per second; further ones are closed at
   * once.
   */
  meshConnectionsBurst: 128,
  meshConnectionsPerSecond: 32,
  /** Maximum sources whose rate is tracked. */
  meshSourcesMax: 10_000,
  /** Maximum connections of one controller. A further one closes its oldest. */
  meshSessionsPerControllerMax: 4,
  /**
   * The same for a controller that is not a member, or whose key differs from its member record.
   */
  meshSessionsPerStrangerMax: 2,
  /** Maximum connections of all non-members; further ones are closed at once. */
  meshStrangersMax: 16,
  /** Maximum time that a non-member may be connected. */
  meshStrangerMs: 30_000,
  /** Maximum concurrent streams of one connection. */
  meshStreamsMax: 8,
  /** The same for a non-member. */
  meshStreamsOfStrangerMax: 4,
  /** Streams that a connection may open at once, and then per second; more close it. */
  meshStreamsBurst: 16,
  meshStreamsPerSecond: 2,
  /** The same for pings and settings of a connection. */
  meshControlsBurst: 64,
  meshControlsPerSecond: 16,
  /** Maximum invalid frames of a connection; more close it. */
  meshInvalidFramesMax: 16,
} as const
