const SECOND_MS = 1000

/** Limits for HTTP listeners and for requests. */
export const httpLimits = {
  /** Maximum request body, declared or chunked; above that: 413 REQUEST_ENTITY_TOO_LARGE. */
  bodyBytesMax: 1024 * 1024,
  /**
   * A larger body must be admitted to the memory for large bodies before the controller reads it.
   */
  largeBodyBytes: 64 * 1024,
  /** Maximum total bytes of large bodies that are read or processed at the same time. */
  largeBodiesBytesMax: 1024 * 1024,
  /** Maximum large bodies that wait to be admitted; above that: 429 SERVER_TOO_MANY_REQUESTS. */
  largeBodiesWaitingMax: 256,
  /**
   * Maximum time that a large body waits to be admitted; after that: 429 SERVER_TOO_MANY_REQUESTS.
   */
  largeBodyWaitMs: 5 * SECOND_MS,
  /** Maximum nesting of arrays and objects in a body; above that: 400 COULD_NOT_PARSE_BODY. */
  bodyDepthMax: 64,
  /**
   * Maximum size of request line and headers together; above that: 431, and the connection is
   * closed.
   */
  headerBytesMax: 32 * 1024,
  /** Maximum characters of one path parameter; a longer one matches no route. */
  pathParameterCharactersMax: 128,
  /** Maximum open connections per listener; further connections are closed immediately. */
  connectionsMax: 10_000,
  /**
   * Maximum open connections of one source (an IPv4 address, a /64 of IPv6) at one listener;
   * further connections are closed immediately.
   */
  connectionsPerSourceMax: 2500,
  /**
   * Maximum time from accepting a connection to the end of its TLS handshake; after that, the
   * connection is closed.
   */
  handshakeTimeoutMs: 8 * SECOND_MS,
  /** Interval for enforcing the timeouts of headers, of requests and of unread responses. */
  timeoutCheckMs: SECOND_MS,
  /**
   * Maximum pipelined requests of one connection that wait until an earlier response is sent; above
   * that, the connection is closed.
   */
  pipelinedRequestsMax: 64,
  /**
   * A larger response is sent in pieces of this size, each after the operating system has accepted
   * the previous piece.
   */
  answerPieceBytes: 64 * 1024,
  /** If a client reads nothing of a response for this time, its connection is closed. */
  answerStallMs: 15 * SECOND_MS,
  /**
   * Used instead of `answerStallMs` while all responses together have reached `unsentBytesMax`, or
   * the source has reached its share.
   */
  answerQuietMs: 2 * SECOND_MS,
  /**
   * Minimum average rate at which a client must read a response; otherwise its connection is
   * closed.
   */
  answerBytesPerSecondMin: 64 * 1024,
  /**
   * Maximum bytes of responses that are being created or are not read yet (with their copies in
   * Node.js and TLS), and of requests that wait behind a response; shared fairly among sources.
   * Above that: connections that read nothing are closed, then 429 SERVER_TOO_MANY_REQUESTS.
   */
  unsentBytesMax: 32 * 1024 * 1024,
  /**
   * Maximum bytes of a request that are read and discarded after an early response, before the
   * connection is closed.
   */
  lingerBytesMax: 8 * 1024 * 1024,
  /** Maximum time for reading and discarding the bytes of `lingerBytesMax`. */
  lingerMs: 2 * SECOND_MS,
  /**
   * Maximum requests that wait for a result, such as a write, a log index or a password hash, and
   * maximum requests that wait for processor time. Both are shared fairly among identities and, for
   * unauthenticated callers, sources. Above the total or the caller's share: 429
   * SERVER_TOO_MANY_REQUESTS.
   */
  waitingRequestsMax: 4096,
  /**
   * Main-thread time that a caller may use without waiting, in addition to a quarter of all time.
   * Requests of a caller that has recently used more time wait in that caller's queue.
   */
  processorBurstMs: 20,
  /** Main-thread time for queued requests in one turn of the event loop. */
  processorSliceMs: 1,
  /** Maximum callers whose processor use is stored. */
  processorCallersMax: 100_000,
  /**
   * Maximum time from the end of the headers until the result, including the time in which the
   * request waits for processor time and for its admission. The time in which the body arrives does
   * not count. After that: 503 TIMEOUT, or OUTCOME_UNKNOWN when a write was proposed. Some
   * operations have a longer limit.
   */
  handlerTimeoutMs: 10 * SECOND_MS,
  /** Maximum time until all headers have arrived. */
  headersTimeoutMs: 5 * SECOND_MS,
  /** Maximum time until the whole request has arrived. */
  requestTimeoutMs: 15 * SECOND_MS,
  /** An idle connection closes after this time. */
  keepAliveTimeoutMs: 30 * SECOND_MS,
  /**
   * During shutdown, the controller waits this long for requests on open connections before it
   * closes idle ones.
   */
  drainIdleMs: 1500,
  /**
   * Maximum wait until this controller has applied `net-min-index`, or the latest committed index;
   * after that: 503 INDEX_NOT_REACHED.
   */
  indexWaitMs: 5 * SECOND_MS,
  /**
   * Maximum attempts of a write whose records change between validation and write; after that: 409
   * REVISION_MOVED.
   */
  judgementsMax: 4,
  /** Maximum values of one repeated query parameter. */
  queryValuesMax: 100,
  /**
   * A list with more bytes, or with more rows than the largest page, is a long list. Only a limited
   * number of long lists is created at the same time (`longListsMax`).
   */
  longListBytesMin: 512 * 1024,
  /**
   * Maximum long lists at the same time, shared fairly among callers; above that: 429
   * SERVER_TOO_MANY_REQUESTS.
   */
  longListsMax: 4,
  /**
   * Maximum bytes of a long list for an administrator; above that: 400 COULD_NOT_VALIDATE on
   * `limit`.
   */
  longListBytesMax: 32 * 1024 * 1024,
  /**
   * Maximum bytes of a long list for other callers; above that: 400 COULD_NOT_VALIDATE on `limit`.
   */
  longListBytesOfOthersMax: 4 * 1024 * 1024,
  /**
   * A compressible response, such as a list, with fewer bytes is not compressed: it fits in one or
   * two packets.
   */
  compressedBytesMin: 2048,
  /**
   * A compressible response with more bytes is not compressed, because memory would hold it both
   * uncompressed and compressed.
   */
  compressedBytesMax: 4 * 1024 * 1024,
  /**
   * A compressible response up to this size is compressed in the main thread, a larger one in
   * another thread.
   */
  compressedAtOnceBytesMax: 256 * 1024,
  /**
   * Maximum responses that other threads compress at the same time, shared fairly among callers;
   * above that, responses are sent uncompressed.
   */
  compressionsMax: 4,
}

export type HttpLimits = Readonly<typeof httpLimits>
