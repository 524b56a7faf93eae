const SECOND_MS = 1000
const MINUTE_MS = 60_000

/** Limits for log-ins and sessions. */
export const apiSessionLimits = {
  /**
   * Maximum concurrent password hashes. The program sets this limit from the number of cores,
   * because the four libuv threads also serve the store.
   */
  passwordHashesMax: 1,
  /** Maximum log-ins that wait for a password hash; above that: 429 SERVER_TOO_MANY_REQUESTS. */
  passwordHashesWaitingMax: 64,
  /**
   * Maximum log-ins in progress, shared fairly among sources; above the total or the source's
   * share: 429 SERVER_TOO_MANY_REQUESTS.
   */
  logInsMax: 64,
  /**
   * Consecutive failures with the same user name from the same source, after which further attempts
   * must pause.
   */
  logInFailuresMax: 10,
  /** First pause after too many failures. */
  logInPauseMsMin: SECOND_MS,
  /** Longest pause after too many failures. */
  logInPauseMsMax: MINUTE_MS,
  /**
   * Maximum stored pairs of user name and source; the least recently used pair is dropped first.
   */
  logInSourcesMax: 10_000,
  /**
   * A session without OIDC that was not used for this time is refused, and the leader removes it.
   */
  sessionTimeoutMs: 30 * MINUTE_MS,
  /**
   * Maximum ended service sessions that dials and binds reopen, per API session and minute. Above
   * that, the router reports an invalid session to the client, and the client requests a new
   * session from a controller.
   */
  sessionReopensMax: 120,
  /**
   * Maximum service sessions that one controller reopens per minute, for all API sessions together.
   */
  sessionReopensInAllMax: 12_000,
  /** Lifetime of an OIDC access token. */
  accessTokenMs: 30 * MINUTE_MS,
  /** Lifetime of a refresh token, and of an unused OIDC session. */
  refreshTokenMs: 24 * 60 * MINUTE_MS,
  /** Maximum lifetime of an OIDC session from its log-in, no matter how often it is refreshed. */
  oidcSessionMsMax: 30 * 24 * 60 * MINUTE_MS,
  /**
   * For this time, a used refresh token is accepted again, because the response with its successor
   * may have been lost.
   */
  refreshReuseMs: 2 * MINUTE_MS,
  /** Maximum sessions for which this controller records which refresh token was last used. */
  refreshSessionsMax: 200_000,
  /**
   * Interval at which controllers drop what they recorded about refresh tokens of ended sessions.
   */
  refreshSweepMs: 5 * MINUTE_MS + SECOND_MS,
  /**
   * A controller that has had no contact with a leader for longer than this refuses all sessions,
   * because any of them may have been revoked.
   */
  staleSessionMsMax: 15 * MINUTE_MS,
  /** Interval at which controllers send each other the last activity of sessions. */
  activityFlushMs: 10 * SECOND_MS,
  /**
   * The last activity of a session is sent to the other controllers, and written to the log, only
   * if it is later than the previous value by more than this time.
   */
  activityMoveMs: 30 * SECOND_MS,
  /** Interval at which the leader writes the last activity of sessions to the log. */
  activityLogMs: 5 * MINUTE_MS,
  /** Maximum sessions whose last activity one command writes. */
  activityBatchMax: 500,
  /** Maximum sessions whose last activity is stored in memory. */
  activitySessionsMax: 200_000,
  /**
   * Interval at which the leader removes expired sessions, checks posture, and encrypts second
   * factors again after a key rotation.
   */
  sweepMs: 5 * SECOND_MS,
  /**
   * Maximum sessions that the leader removes, and second factors that it encrypts again, in one
   * sweep.
   */
  sweepBatchMax: 500,
  /**
   * Interval at which the leader ends policies and role attributes whose expiry time has passed.
   */
  accessEndMs: 500,
  /** If the leader has not ended expired access after this time, another controller does it. */
  accessEndLateMs: 5 * SECOND_MS,
  /** Maximum service sessions whose posture the leader checks in one sweep (`sweepMs`). */
  postureLooksMax: 10_000,
  /** Maximum service sessions that one command ends because of failed posture checks. */
  postureEndsMax: 100,
  /**
   * Time that a client has to report its posture: after a new leader was elected, after the
   * client's reports were lost, and after an OIDC client without reports got a service session.
   * Checks of the second factor apply during this time.
   */
  postureGraceMs: MINUTE_MS,
  /**
   * Maximum identities in one sweep (`sweepMs`) whose posture reports are checked; reports that
   * belong to no session are dropped.
   */
  posturePrunesMax: 1000,
  /**
   * Time after the start of a controller during which a request for a service session waits until a
   * router that the client may use has reconnected.
   */
  routerReturnMs: MINUTE_MS,
  /**
   * Maximum time that one request waits for a router to connect; after that, the response lists the
   * routers without addresses. Routers of OpenZiti 1.x dial every 5 s.
   */
  routerReturnWaitMs: 6 * SECOND_MS,
  /**
   * Maximum time that one request waits if one of the routers is connected but has not reported its
   * addresses yet. Routers of OpenZiti 1.x report them up to 10 s after they have connected.
   */
  routerReportWaitMs: 17 * SECOND_MS,
  /** Maximum requests that wait for a router; further requests are answered immediately. */
  routerReturnWaitersMax: 1024,
  /** Interval at which each waiting request checks its routers. */
  routerReturnPollMs: 250,
  /**
   * Maximum `configTypes`: a form or authorization request of OIDC ignores further ones; any other
   * request with more gets 400 COULD_NOT_VALIDATE.
   */
  configTypesMax: 100,
}

export type ApiSessionLimits = Readonly<typeof apiSessionLimits>
