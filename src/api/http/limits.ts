const SECOND_MS = 1000

/** Limits of the HTTP listeners and of every request. */
export const httpLimits = {
  /** Request body, declared or chunked; beyond: 413 REQUEST_ENTITY_TOO_LARGE. */
  bodyBytesMax: 1024 * 1024,
  /** A larger body waits for a place among the large bodies before it is read. */
  largeBodyBytes: 64 * 1024,
  /** Bytes of all large bodies that are read or processed at a time. */
  largeBodiesBytesMax: 1024 * 1024,
  /** Large bodies that wait for a place; beyond: 429 SERVER_TOO_MANY_REQUESTS. */
  largeBodiesWaitingMax: 256,
  /** Maximum wait of a large body; beyond: 429 SERVER_TOO_MANY_REQUESTS. */
  largeBodyWaitMs: 5 * SECOND_MS,
  /** Nesting of arrays and objects in a body; beyond: 400 COULD_NOT_PARSE_BODY. */
  bodyDepthMax: 64,
  /** Request line and headers together; beyond: 431, and the connection ends. */
  headerBytesMax: 32 * 1024,
  /** One path parameter; a longer one matches no route. */
  pathParameterCharactersMax: 128,
  /** Open connections of one listener; more are closed at once. */
  connectionsMax: 10_000,
  /** Open connections of one source at one listener; more are closed at once. */
  connectionsPerSourceMax: 2500,
  /** From the first packet of a connection to the end of its TLS handshake; beyond: closed. */
  handshakeTimeoutMs: 8 * SECOND_MS,
  /** Interval for enforcing the timeouts of headers, requests and idle connections. */
  timeoutCheckMs: SECOND_MS,
  /** Requests of one connection that wait for an earlier answer; beyond: the connection closes. */
  pipelinedRequestsMax: 64,
  /** A larger answer is sent in pieces of this size, each after the client read the one before. */
  answerPieceBytes: 64 * 1024,
  /** A client that reads nothing of an answer for this long loses its connection. */
  answerStallMs: 15 * SECOND_MS,
  /** The same when answers to other clients find no room in `unsentBytesMax`. */
  answerQuietMs: 2 * SECOND_MS,
  /** A client that reads a whole answer more slowly loses its connection. */
  answerBytesPerSecondMin: 64 * 1024,
  /**
   * Answers that are being made or not yet read, with their copies in Node and TLS, and requests
   * that wait behind one; shared by sources. Beyond: connections that read nothing are closed, then
   * 429 SERVER_TOO_MANY_REQUESTS.
   */
  unsentBytesMax: 32 * 1024 * 1024,
  /**
   * Bytes of a request that are read and dropped after an early answer, before the connection
   * closes.
   */
  lingerBytesMax: 8 * 1024 * 1024,
  /** Maximum duration of that reading. */
  lingerMs: 2 * SECOND_MS,
  /**
   * Requests that wait for a write, an index or a hash; shared by identities and, without one, by
   * sources. Beyond the total or its share: 429 SERVER_TOO_MANY_REQUESTS.
   */
  waitingRequestsMax: 4096,
  /**
   * Time of the main thread that a caller may use without waiting. A caller that used more lately
   * waits for its turn.
   */
  processorBurstMs: 20,
  /** Time for requests that waited, between two turns of the event loop. */
  processorSliceMs: 1,
  /** Callers whose use of the processor is stored. */
  processorCallersMax: 100_000,
  /**
   * From the end of the headers to the answer; beyond: 503 TIMEOUT, or OUTCOME_UNKNOWN when a write
   * was proposed.
   */
  handlerTimeoutMs: 10 * SECOND_MS,
  /** Time until all headers have arrived. */
  headersTimeoutMs: 5 * SECOND_MS,
  /** Time until the whole request has arrived. */
  requestTimeoutMs: 15 * SECOND_MS,
  /** An idle connection closes after this long. */
  keepAliveTimeoutMs: 30 * SECOND_MS,
  /**
   * A stopping controller waits this long for requests on open connections before it closes idle
   * ones.
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
  /** Values of one repeated query parameter. */
  queryValuesMax: 100,
  /** A list of more bytes, or of more rows than a page, is made in turns. */
  longListBytesMin: 512 * 1024,
  /** Such lists at a time, shared by callers; beyond: 429 SERVER_TOO_MANY_REQUESTS. */
  longListsMax: 4,
  /** Bytes of such a list for an administrator; beyond: 400 COULD_NOT_VALIDATE on `limit`. */
  longListBytesMax: 32 * 1024 * 1024,
  /** The same for other callers. */
  longListBytesOfOthersMax: 4 * 1024 * 1024,
}

export type HttpLimits = Readonly<typeof httpLimits>
