/** Sockets of clients and of targets. */
export const socketLimits = {
  /** Sockets to targets, of all who dial; fewer, where the process may open fewer. */
  targetSocketsMax: 32_768,
  /** Largest piece of a stream that is sent at a time, in bytes. */
  pieceBytesMax: 32 * 1024,
  /** A peer that takes nothing for so long loses what is left for it when the circuit has ended. */
  flushMsMax: 30_000,
  /** A peer may still send for so long after the last byte for it, to no effect. */
  lingerMs: 2000,
  /** Largest datagram. */
  datagramBytesMax: 65_507,
  /** Bytes of datagrams for one peer that the system has not taken yet. */
  datagramsUnsentBytesMax: 256 * 1024,
  /** Silence after which a peer that sends datagrams is forgotten, and its circuit ends. */
  datagramsIdleMs: 60_000,
  /** Peers of one listener for datagrams, each with a circuit or waiting for it. */
  datagramPeersMax: 4096,
  /** The same from one source. */
  datagramPeersPerSourceMax: 1024,
  /** Datagrams of one peer that wait for its circuit, and their bytes; more are dropped. */
  datagramsWaitingMax: 16,
  datagramsWaitingBytesMax: 64 * 1024,
  /** The same of all peers of a listener. */
  datagramsWaitingBytesOfAllMax: 4 * 1024 * 1024,
  /** A peer whose circuit was refused is not heard for so long. */
  datagramPeerRefusedMs: 1000,
  /** Open connections of one listener for streams, and those of one source. */
  streamConnectionsMax: 8192,
  streamConnectionsPerSourceMax: 4096,
  /** Handshakes under way at one of them that speaks TLS. */
  streamHandshakesMax: 512,
  /** The line in which a client names its service: its bytes, and the time it has. */
  requestLineBytesMax: 4096,
  requestLineMsMax: 10_000,
  /** The same failure of a listener is logged so often. */
  failureLoggedEveryMs: 60_000,
  failureKindsMax: 256,
} as const
