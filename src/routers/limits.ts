/** What routers can take of one controller, beside the limits of each channel. */
export const routerLimits = {
  /** Open connections of the router listener; more are closed at once. */
  routerConnectionsMax: 8192,
  /** Of one source, as many routers may stand behind one address; more are closed at once. */
  routerConnectionsPerSourceMax: 1024,
  /** From the first packet to the end of the TLS handshake, and then again to the hello; beyond: closed. */
  routerHandshakeTimeoutMs: 5000,
  /** Protocols of one router that are shown. */
  routerProtocolsMax: 16,
  /** Characters of each text that a router says of itself; the rest is cut off. */
  routerTextCharactersMax: 255,
  /** What a controller tells the others of its routers; those beyond are connected and not shown as such. */
  routerStatusBytesMax: 16 * 1024 * 1024,
  /** A controller that was silent for so long has no connected routers, as far as the others show. */
  routerStatusTtlMs: 10_000,
  /** Lines in the log about refused routers, of a minute: one that is refused dials again and again. */
  routerRefusalsLoggedMax: 60,
  /** How often records, members and leadership are compared with what the connected routers were told. */
  routerSweepMs: 500,
} as const
