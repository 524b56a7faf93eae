/**
 * Limits of the HTTP API. A request beyond a limit is refused with the code given here; it is never
 * queued without a bound or truncated silently.
 */
export interface ApiLimits {
  /** Request body, declared or chunked; beyond: 413 REQUEST_ENTITY_TOO_LARGE. */
  readonly bodyBytesMax: number
  /** A larger body needs room among the large ones before it is read. */
  readonly largeBodyBytes: number
  /** Bytes of all large bodies that are read or worked on at a time. */
  readonly largeBodiesBytesMax: number
  /** Large bodies that wait for room; beyond: 429 SERVER_TOO_MANY_REQUESTS. */
  readonly largeBodiesWaitingMax: number
  /** Maximum wait of a large body for its turn; beyond: 429 SERVER_TOO_MANY_REQUESTS. */
  readonly largeBodyWaitMs: number
  /** Nesting of arrays and objects in a body; beyond: 400 COULD_NOT_PARSE_BODY. */
  readonly bodyDepthMax: number
  /** Request line and headers together; beyond: 431 and the connection ends. */
  readonly headerBytesMax: number
  /** One path parameter; a longer one matches no route. */
  readonly pathParameterCharactersMax: number
  /** Open connections of one listener; more are closed at once. */
  readonly connectionsMax: number
  /** Open connections of one source at one listener; more are closed at once. */
  readonly connectionsPerSourceMax: number
  /** Time from the first packet of a connection to the end of its TLS handshake; beyond: closed. */
  readonly handshakeTimeoutMs: number
  /** Timeouts of headers, requests and idle connections are enforced at this period. */
  readonly timeoutCheckMs: number
  /**
   * Requests of one connection that wait for the answer to an earlier one; beyond: the connection
   * is closed.
   */
  readonly pipelinedRequestsMax: number
  /**
   * A larger answer is sent in pieces of this size, each when the client has read the one before.
   */
  readonly answerPieceBytes: number
  /** A client that reads nothing of an answer for this long loses its connection ... */
  readonly answerStallMs: number
  /** ... or for this long, where there is no room for the answers to others ... */
  readonly answerQuietMs: number
  /** ... and so does one that reads a whole answer at a lower rate. */
  readonly answerBytesPerSecondMin: number
  /**
   * Answers that are made or not read yet, their copies in Node and TLS, and requests that wait
   * behind one, shared by sources; beyond: connections that read nothing are closed, then 429
   * SERVER_TOO_MANY_REQUESTS.
   */
  readonly unsentBytesMax: number
  /**
   * After an early answer so much of the request is read and dropped before the connection closes
   * ...
   */
  readonly lingerBytesMax: number
  /** ... for at most this long. */
  readonly lingerMs: number
  /**
   * Requests that wait for something (a write, an index, a hash), shared by identities and, without
   * one, by sources; beyond, or beyond its part: 429 SERVER_TOO_MANY_REQUESTS.
   */
  readonly waitingRequestsMax: number
  /**
   * A caller that has used more of the main thread lately waits for its turn: it gets a quarter of
   * it without waiting ...
   */
  readonly processorBurstMs: number
  /** ... and what waits is worked on for this long between two turns of the event loop. */
  readonly processorSliceMs: number
  /** Callers whose use of the processor is remembered. */
  readonly processorCallersMax: number
  /**
   * Time from the end of the headers to the answer; beyond: 503 TIMEOUT, or OUTCOME_UNKNOWN when a
   * write was handed over.
   */
  readonly handlerTimeoutMs: number
  /** Time until all headers are there. */
  readonly headersTimeoutMs: number
  /** Time until the whole request is there. */
  readonly requestTimeoutMs: number
  readonly keepAliveTimeoutMs: number
  /**
   * A controller that stops waits so long for requests over connections that stand, before it ends
   * the idle ones.
   */
  readonly drainIdleMs: number
  /** `net-min-index` and confirmations of something unknown; beyond: 503 INDEX_NOT_REACHED. */
  readonly indexWaitMs: number
  /**
   * Password hashes at work at a time, a program's default by its cores: libuv's pool of four also
   * serves the store.
   */
  readonly passwordHashesMax: number
  /** Log-ins that wait for a hash; beyond: 429 SERVER_TOO_MANY_REQUESTS. */
  readonly passwordHashesWaitingMax: number
  /**
   * One judgement of a schema that a user brought, or of data by it; beyond: 400 with the field.
   */
  readonly schemaMsMax: number
  /** Waiting for such a judgement; beyond: 429 SERVER_TOO_MANY_REQUESTS. */
  readonly schemaWaitMsMax: number
  /**
   * Judgements that wait, shared by callers; beyond, or beyond its part: 429
   * SERVER_TOO_MANY_REQUESTS.
   */
  readonly schemaLateMsMax: number
  readonly schemasWaitingMax: number
  /** One certificate being issued; beyond: 503 TIMEOUT. */
  readonly certificateMsMax: number
  /** Waiting for it; beyond: 429 SERVER_TOO_MANY_REQUESTS. */
  readonly certificateWaitMsMax: number
  /**
   * Certificates to be issued, shared by callers; beyond, or beyond its part: 429
   * SERVER_TOO_MANY_REQUESTS.
   */
  readonly certificatesWaitingMax: number
  /** Lifetime of certificates of identities and routers, unless their issuer ends before ... */
  readonly enrolledCertificateMs: number
  /** ... and of those that an identity has for one API session. */
  readonly sessionCertificateMs: number
  /**
   * Maximum number of times that a write is judged again because the records that it depends on
   * changed; beyond: 409 REVISION_MOVED.
   */
  readonly judgementsMax: number
  /**
   * Ended service sessions that dials and binds open again, per API session and minute; beyond: the
   * router answers that the session is invalid, and the client requests one from a controller.
   */
  readonly sessionReopensMax: number
  /** The same for all API sessions together. */
  readonly sessionReopensInAllMax: number
  /** Pairs in one request for configs of services; beyond: 400 COULD_NOT_VALIDATE. */
  readonly serviceConfigsMax: number
  /**
   * Log-ins under way, shared by sources; beyond, or beyond its part: 429 SERVER_TOO_MANY_REQUESTS.
   */
  readonly logInsMax: number
  /** Consecutive failures of one (user name, source) before it must pause. */
  readonly logInFailuresMax: number
  readonly logInPauseMsMin: number
  readonly logInPauseMsMax: number
  /** (user name, source) pairs remembered; the longest quiet one is forgotten first. */
  readonly logInSourcesMax: number
  /**
   * Difference that the clock of an identity provider may have, for the beginning, the end and the
   * issue of its tokens.
   */
  readonly tokenClockSkewMs: number
  /**
   * Tokens that are verified at a time, shared by callers; beyond, or beyond its part: 429
   * SERVER_TOO_MANY_REQUESTS.
   */
  readonly tokenChecksMax: number
  /**
   * Tokens that are known to be good, so that the next request with one costs no signature check
   * ...
   */
  readonly verifiedTokensMax: number
  /** ... each for this long at most. */
  readonly verifiedTokenMsMax: number
  /** Fetching the keys of a signer, from the look-up of the name to the end of the answer. */
  readonly keyFetchMsMax: number
  /**
   * Names that are looked up for that at a time, on one thread of libuv each; beyond: the keys
   * known stay.
   */
  readonly keyLookupsMax: number
  /** Between two fetches for one signer, whatever its tokens name. */
  readonly keyFetchMsMin: number
  /** For all signers. */
  readonly keyFetchesPerMinuteMax: number
  /** Key sets of a provider that are larger are not taken: bytes ... */
  readonly keySetBytesMax: number
  /** ... and keys. */
  readonly keySetKeysMax: number
  /** Keys are fetched again when they are used after this long ... */
  readonly keySetFreshMs: number
  /** ... and count for so long while their provider does not answer. */
  readonly keySetStaleMsMax: number
  /** Signers whose keys are kept. */
  readonly keySetsMax: number
  /** Lifetime of the enrollment token of a new identity ... */
  readonly identityEnrollmentMs: number
  /** ... and that a router is made, or is to enroll again, with. */
  readonly routerEnrollmentMs: number
  /** A session not used for this long is refused, and removed by the leader. */
  readonly sessionTimeoutMs: number
  /** An access token of OIDC. */
  readonly accessTokenMs: number
  /** A refresh token, and a session of OIDC that is not used. */
  readonly refreshTokenMs: number
  /** A session of OIDC from its log-in on, however often it is refreshed. */
  readonly oidcSessionMsMax: number
  /** A refresh token that was used may come again for so long: its answer may have been lost. */
  readonly refreshReuseMs: number
  /** Sessions whose newest refresh token is known here ... */
  readonly refreshSessionsMax: number
  /** ... and how often those that have ended are forgotten. */
  readonly refreshSweepMs: number
  /**
   * A controller that heard from no leader for longer refuses sessions: one revoked meanwhile may
   * be among them.
   */
  readonly staleSessionMsMax: number
  /** Activity is kept in memory and shared with the other controllers at this interval ... */
  readonly activityFlushMs: number
  /** ... for sessions whose mark would move by more than this. */
  readonly activityMoveMs: number
  /** The leader writes the marks that moved by as much to the log, this far apart ... */
  readonly activityLogMs: number
  /** ... at most so many in one command. */
  readonly activityBatchMax: number
  /** Sessions whose activity is kept in memory. */
  readonly activitySessionsMax: number
  /**
   * The leader looks for expired sessions this often and removes at most `sweepBatchMax` a time.
   */
  readonly sweepMs: number
  readonly sweepBatchMax: number
  /**
   * Service sessions that the leader looks at each `sweepMs`, to find those whose client no
   * longer passes ...
   */
  readonly postureLooksMax: number
  /** ... ends at most so many in one command ... */
  readonly postureEndsMax: number
  /**
   * ... and waits this long after it became leader, or after a client's report expired, for the
   * client to report again.
   */
  readonly postureGraceMs: number
  /**
   * Identities whose machines' reports are looked at each `sweepMs`, and dropped where they are
   * about nobody.
   */
  readonly posturePrunesMax: number
  /** Answers in one bulk posture response; beyond: 400 COULD_NOT_VALIDATE. */
  readonly postureResponsesMax: number
  /** The leader looks for an integrity run that nobody works on this often. */
  readonly integrityLookMs: number
  /** Time of a run between two turns of the event loop. */
  readonly integritySliceMs: number
  /** Values of one repeated query parameter. */
  readonly queryValuesMax: number
  /** `configTypes` at log-in. */
  readonly configTypesMax: number
  /** A list of more, or of more rows than a page holds, is made in turns ... */
  readonly longListBytesMin: number
  /** ... so many of them at a time, shared by callers; beyond: 429 SERVER_TOO_MANY_REQUESTS. */
  readonly longListsMax: number
  /**
   * Bytes of such a list for an administrator; beyond: 400 COULD_NOT_VALIDATE on `limit` ...
   */
  readonly longListBytesMax: number
  /** ... and for everybody else. */
  readonly longListBytesOfOthersMax: number
}

const SECOND = 1000
const MINUTE = 60 * SECOND

export const defaultLimits: ApiLimits = {
  bodyBytesMax: 1024 * 1024,
  largeBodyBytes: 64 * 1024,
  largeBodiesBytesMax: 1024 * 1024,
  largeBodiesWaitingMax: 256,
  largeBodyWaitMs: 5 * SECOND,
  bodyDepthMax: 64,
  headerBytesMax: 16 * 1024,
  pathParameterCharactersMax: 128,
  connectionsMax: 10_000,
  connectionsPerSourceMax: 2500,
  handshakeTimeoutMs: 8 * SECOND,
  timeoutCheckMs: SECOND,
  pipelinedRequestsMax: 64,
  answerPieceBytes: 64 * 1024,
  answerStallMs: 15 * SECOND,
  answerQuietMs: 2 * SECOND,
  answerBytesPerSecondMin: 64 * 1024,
  unsentBytesMax: 32 * 1024 * 1024,
  lingerBytesMax: 8 * 1024 * 1024,
  lingerMs: 2 * SECOND,
  waitingRequestsMax: 4096,
  processorBurstMs: 20,
  processorSliceMs: 1,
  processorCallersMax: 100_000,
  handlerTimeoutMs: 10 * SECOND,
  headersTimeoutMs: 5 * SECOND,
  requestTimeoutMs: 15 * SECOND,
  keepAliveTimeoutMs: 30 * SECOND,
  drainIdleMs: 1500,
  indexWaitMs: 5 * SECOND,
  passwordHashesMax: 1,
  passwordHashesWaitingMax: 64,
  schemaMsMax: 2 * SECOND,
  schemaWaitMsMax: 5 * SECOND,
  schemaLateMsMax: 8_000,
  schemasWaitingMax: 16,
  certificateMsMax: 2 * SECOND,
  certificateWaitMsMax: 5 * SECOND,
  certificatesWaitingMax: 1024,
  enrolledCertificateMs: 365 * 24 * 60 * MINUTE,
  sessionCertificateMs: 12 * 60 * MINUTE,
  judgementsMax: 4,
  sessionReopensMax: 120,
  sessionReopensInAllMax: 12_000,
  serviceConfigsMax: 1000,
  logInsMax: 64,
  logInFailuresMax: 10,
  logInPauseMsMin: SECOND,
  logInPauseMsMax: MINUTE,
  logInSourcesMax: 10_000,
  tokenClockSkewMs: 30 * SECOND,
  tokenChecksMax: 256,
  verifiedTokensMax: 16_384,
  verifiedTokenMsMax: 10 * MINUTE,
  keyFetchMsMax: 5 * SECOND,
  keyLookupsMax: 2,
  keyFetchMsMin: SECOND,
  keyFetchesPerMinuteMax: 240,
  keySetBytesMax: 256 * 1024,
  keySetKeysMax: 100,
  keySetFreshMs: 15 * MINUTE,
  keySetStaleMsMax: 24 * 60 * MINUTE,
  keySetsMax: 256,
  identityEnrollmentMs: 180 * MINUTE,
  routerEnrollmentMs: 180 * MINUTE,
  sessionTimeoutMs: 30 * MINUTE,
  accessTokenMs: 30 * MINUTE,
  refreshTokenMs: 24 * 60 * MINUTE,
  oidcSessionMsMax: 30 * 24 * 60 * MINUTE,
  refreshReuseMs: 2 * MINUTE,
  refreshSessionsMax: 200_000,
  refreshSweepMs: 5 * MINUTE + SECOND,
  staleSessionMsMax: 15 * MINUTE,
  activityFlushMs: 10 * SECOND,
  activityMoveMs: 30 * SECOND,
  activityLogMs: 5 * MINUTE,
  activityBatchMax: 500,
  activitySessionsMax: 200_000,
  sweepMs: 5 * SECOND,
  sweepBatchMax: 500,
  postureLooksMax: 10_000,
  postureEndsMax: 100,
  postureGraceMs: MINUTE,
  posturePrunesMax: 1000,
  postureResponsesMax: 256,
  integrityLookMs: 1500,
  integritySliceMs: 5,
  queryValuesMax: 100,
  configTypesMax: 100,
  longListBytesMin: 512 * 1024,
  longListsMax: 4,
  longListBytesMax: 32 * 1024 * 1024,
  longListBytesOfOthersMax: 4 * 1024 * 1024,
}

/**
 * The shortest inactivity timeout; a shorter one would end sessions faster than their activity
 * spreads.
 */
export const SESSION_TIMEOUT_MS_MIN = MINUTE

/**
 * Defaults with what the configuration says. A session timeout below a minute falls back to the
 * default, and activity spreads often enough for a short timeout.
 */
export function limitsWith(changes: Partial<ApiLimits>): ApiLimits {
  const limits = { ...defaultLimits, ...changes }
  const sessionTimeoutMs =
    limits.sessionTimeoutMs < SESSION_TIMEOUT_MS_MIN
      ? defaultLimits.sessionTimeoutMs
      : limits.sessionTimeoutMs
  const activityFlushMs = Math.min(limits.activityFlushMs, sessionTimeoutMs / 16)
  const activityMoveMs = Math.min(limits.activityMoveMs, sessionTimeoutMs / 8)
  const activityLogMs = Math.min(limits.activityLogMs, sessionTimeoutMs / 4)
  return { ...limits, sessionTimeoutMs, activityFlushMs, activityMoveMs, activityLogMs }
}
