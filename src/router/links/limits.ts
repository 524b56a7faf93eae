/** Links to other routers. */
export const linkLimits = {
  /** Other routers that are dialed, and listeners of each. */
  peersMax: 1024,
  peerListenersMax: 16,
  /** Open connections of one link listener, those that are not admitted yet among them. */
  linkConnectionsMax: 4096,
  /** Connections of one source, behind which several routers may stand. */
  linkConnectionsPerSourceMax: 512,
  /** Handshakes under way at one of them; one more ends the oldest of its source, or of most. */
  linkHandshakesMax: 256,
  linkHandshakesPerSourceMax: 32,
  /** Sockets of one link that another router dials. */
  linkSocketsMax: 32,
  /** Waits before a further socket is dialed again grow from the one to the other. */
  furtherSocketWaitMs: 2000,
  furtherSocketWaitMsMax: 60_000,
  /** Time from the TLS handshake of a router that dials to the word of a controller about it. */
  linkAdmissionMsMax: 10_000,
  /** Connections in that time, and those by one certificate; one more ends the oldest as well. */
  linksWaitingMax: 256,
  linksWaitingPerCertificateMax: 8,
} as const
