/**
 * Limits of what a caller can take of the port for peers, before and after it has shown who it is.
 */
export const meshLimits = {
  /** Time from the first packet to the end of the TLS handshake; beyond: closed. */
  meshHandshakeTimeoutMs: 10_000,
  /** Handshakes under way; one more ends the oldest of the source that has most. */
  meshHandshakesMax: 128,
  /** Handshakes of one source; one more ends its oldest. */
  meshHandshakesPerSourceMax: 32,
  /** Connections of one source; more are closed at once. */
  meshConnectionsPerSourceMax: 192,
  /** Connections that one source opens at once, and then each second; more are closed at once. */
  meshConnectionsBurst: 128,
  meshConnectionsPerSecond: 32,
  /** Sources whose pace is remembered. */
  meshSourcesMax: 10_000,
  /** Connections of one controller; one more ends its oldest. */
  meshSessionsPerControllerMax: 4,
  /** The same of one that is no member, or shows another key than its member record pins. */
  meshSessionsPerStrangerMax: 2,
  /** Connections of all those together; more are closed at once. */
  meshStrangersMax: 16,
  /** For so long such a controller is connected. */
  meshStrangerMs: 30_000,
  /** Streams of one connection at a time. */
  meshStreamsMax: 8,
  /** The same of a controller that is no member. */
  meshStreamsOfStrangerMax: 4,
  /** Streams that a connection opens at once, and then each second; more end it. */
  meshStreamsBurst: 16,
  meshStreamsPerSecond: 2,
  /** Pings and settings of a connection, likewise. */
  meshControlsBurst: 64,
  meshControlsPerSecond: 16,
  /** Frames of a connection that are against the protocol; more end it. */
  meshInvalidFramesMax: 16,
} as const
