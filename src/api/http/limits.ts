const SECOND_MS = 1000

/** Limits of the HTTP listeners and of every request. */
export const httpLimits = {
  /** Maximum request body, declared or chunked; beyond: 413 REQUEST_ENTITY_TOO_LARGE. */
  bodyBytesMax: 1024 * 1024,
  /** A larger body waits for a place among the large bodies before it is read. */
  largeBodyBytes: 64 * 1024,
  /** Maximum total bytes of the large bodies that are read or processed at a time. */
  largeBodiesBytesMax: 1024 * 1024,
  /** Maximum large bodies that wait for a place; beyond: 429 SERVER_TOO_MANY_REQUESTS. */
  largeBodiesWaitingMax: 256,
  /** Maximum wait of a large body; beyond: 429 SERVER_TOO_MANY_REQUESTS. */
  largeBodyWaitMs: 5 * SECOND_MS,
  /** Maximum nesting of arrays and objects in a body; beyond: 400 COULD_NOT_PARSE_BODY. */
  bodyDepthMax: 64,
  /** Maximum size of request line and headers together; beyond: 431, and the connection closes. */
  headerBytesMax: 32 * 1024,
  /** Maximum characters of one path parameter; a longer one matches no route. */
  pathParameterCharactersMax: 128,
  /** Open connections of one listener; more are closed at once. */
  connectionsMax: 10_000,
  /** Open connections of one source at one listener; more are closed at once. */
  connectionsPerSourceMax: 2500,
  /**
   * Maximum time from the first packet of a connection to the end of its TLS handshake; beyond:
   * closed.
   */
  handshakeTimeoutMs: 8 * SECOND_MS,
  /** Interval for enforcing the timeouts of headers, requests and idle connections. */
  timeoutCheckMs: SECOND_MS,
  /**
   * Maximum requests of one connection that wait for an earlier answer; beyond: the connection
   * closes.
   */
  pipelinedRequestsMax: 64,
  /**
   * A larger answer is sent in pieces of this size, each after the client has read the previous
   * one.
   */
  answerPieceBytes: 64 * 1024,
  /** If a client reads nothing of an answer for this time, its connection closes. */
  answerStallMs: 15 * SECOND_MS,
  /** As above, while `unsentBytesMax` leaves no room for answers to other clients. */
  answerQuietMs: 2 * SECOND_MS,
  /** If a client reads an answer more slowly than this on average, its connection closes. */
  answerBytesPerSecondMin: 64 * 1024,
  /**
   * Maximum bytes of answers that are being created or are not read yet, with their copies in Node
   * and TLS, and of requests that wait behind one; shared by sources. Beyond: connections that read
   * nothing are closed, then 429 SERVER_TOO_MANY_REQUESTS.
   */
  unsentBytesMax: 32 * 1024 * 1024,
  /**
   * Bytes of a request that are read and discarded after an early answer, before the connection
   * closes.
   */
  lingerBytesMax: 8 * 1024 * 1024,
  /** Maximum duration of that. */
  lingerMs: 2 * SECOND_MS,
  /**
   * Maximum requests that wait for a write, an index or a hash, shared by identities or, for
   * unauthenticated callers, by sources. Beyond the total or the caller's share: 429
   * SERVER_TOO_MANY_REQUESTS.
   */
  waitingRequestsMax: 4096,
  /**
   * Main thread time that a caller may use without waiting. A caller that has recently used more
   * waits for its turn.
   */
  processorBurstMs: 20,
  /** Main thread time for waiting requests in one turn of the event loop. */
  processorSliceMs: 1,
  /** Maximum callers whose processor use is stored. */
  processorCallersMax: 100_000,
  /**
   * Maximum time from the end of the headers to the answer; beyond: 503 TIMEOUT, or OUTCOME_UNKNOWN
   * when a write was proposed.
   */
  handlerTimeoutMs: 10 * SECOND_MS,
  /** Maximum time until all headers have arrived. */
  headersTimeoutMs: 5 * SECOND_MS,
  /** Maximum time until the whole request has arrived. */
  requestTimeoutMs: 15 * SECOND_MS,
  /** An idle connection closes after this time. */
  keepAliveTimeoutMs: 30 * SECOND_MS,
  /**
   * A stopping controller waits for this time for requests on open connections before it closes
   * idle ones.
   */
  drainIdleMs: 1500,
  /**
   * Maximum wait for `net-min-index` and for confirming an unknown index; beyond: 503
   * INDEX_NOT_REACHED.
   */
  indexWaitMs: 5 * SECOND_MS,
  /**
   * Maximum attempts of a write whose records changed since it was checked; beyond: 409
   * REVISION_MOVED.
   */
  judgementsMax: 4,
  /** Maximum values of one repeated query parameter. */
  queryValuesMax: 100,
  /** A list with more bytes, or with more rows than a page, is printed in turns. */
  longListBytesMin: 512 * 1024,
  /** Maximum such lists at a time, shared by callers; beyond: 429 SERVER_TOO_MANY_REQUESTS. */
  longListsMax: 4,
  /**
   * Maximum bytes of such a list for an administrator; beyond: 400 COULD_NOT_VALIDATE on `limit`.
   */
  longListBytesMax: 32 * 1024 * 1024,
  /** As above, for other callers. */
  longListBytesOfOthersMax: 4 * 1024 * 1024,
  /** A list with fewer bytes is not compressed: it fits in one or two packets. */
  compressedBytesMin: 2048,
  /** A list with more bytes is not compressed, because it would be in memory twice. */
  compressedBytesMax: 4 * 1024 * 1024,
  /** A list up to this size is compressed at once, a larger one in another thread. */
  compressedAtOnceBytesMax: 256 * 1024,
  /**
   * Maximum lists that are compressed in other threads at a time, shared by callers; beyond: lists
   * are sent without compression.
   */
  compressionsMax: 4,
}

export type HttpLimits = Readonly<typeof httpLimits>
