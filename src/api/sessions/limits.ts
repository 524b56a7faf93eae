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
   * Maximum log-ins in progress, divided among source addresses; above the total or the source's
   * share: 429 SERVER_TOO_MANY_REQUESTS.
   */
  logInsMax: 64,
  /**
   * Consecutive failures with the same user name from the same source address, after which further
   * attempts must pause.
   */
  logInFailuresMax: 10,
  /** First pause. */
  logInPauseMsMin: SECOND_MS,
  /** Longest pause. */
  logInPauseMsMax: MINUTE_MS,
  /**
   * Maximum stored pairs of user name and source; the least recently used pair is dropped first.
   */
  logInSourcesMax: 10_000,
  /** A session that was not used for this time is refused, and the leader removes it. */
  sessionTimeoutMs: 30 * MINUTE_MS,
  /**
   * Maximum ended service sessions that dials and binds reopen, per API session and minute. Above
   * that, the router reports to the client that the session is invalid, and the client requests a
   * new one from a controller.
   */
  sessionReopensMax: 120,
  /** Maximum reopened service sessions per minute for all API sessions together. */
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
  /** Maximum sessions whose newest refresh token this controller stores. */
  refreshSessionsMax: 200_000,
  /** Interval at which refresh tokens of ended sessions are dropped. */
  refreshSweepMs: 5 * MINUTE_MS + SECOND_MS,
  /**
   * A controller that has had no contact with a leader for longer than this refuses all sessions,
   * because any of them may have been revoked.
   */
  staleSessionMsMax: 15 * MINUTE_MS,
  /** Interval at which controllers send each other the last activity of sessions. */
  activityFlushMs: 10 * SECOND_MS,
  /**
   * The last activity of a session is sent to the other controllers only if it is later than the
   * previous value by more than this.
   */
  activityMoveMs: 30 * SECOND_MS,
  /**
   * The leader writes the last activity of a session to the log only if it is later than the
   * previous value by more than this.
   */
  activityLogMs: 5 * MINUTE_MS,
  /** Maximum sessions whose activity one command writes. */
  activityBatchMax: 500,
  /** Maximum sessions whose activity is stored in memory. */
  activitySessionsMax: 200_000,
  /** Interval at which the leader removes expired sessions. */
  sweepMs: 5 * SECOND_MS,
  /** Maximum sessions that the leader removes at a time. */
  sweepBatchMax: 500,
  /** Interval at which the leader ends policies and role attributes whose time has passed. */
  accessEndMs: 500,
  /**
   * Another controller ends these policies and role attributes if the leader is later than this.
   */
  accessEndLateMs: 5 * SECOND_MS,
  /** Maximum service sessions whose posture the leader checks in one `sweepMs`. */
  postureLooksMax: 10_000,
  /** Maximum service sessions that one command ends because of failed posture checks. */
  postureEndsMax: 100,
  /**
   * Time that a client has to report its posture again, after the leader changed or the report
   * expired. Checks of the second factor apply during this time.
   */
  postureGraceMs: MINUTE_MS,
  /**
   * Maximum identities per `sweepMs` whose posture reports are checked; reports that no session
   * uses are dropped.
   */
  posturePrunesMax: 1000,
  /**
   * Time after the start of a controller during which a request for a service session waits until a
   * router that its client can use has reconnected.
   */
  routerReturnMs: MINUTE_MS,
  /**
   * Maximum time that one request waits for a router; after that, the response lists the routers
   * without addresses.
   */
  routerReturnWaitMs: 5 * SECOND_MS,
  /** Maximum requests that wait for a router; further ones are answered without a wait. */
  routerReturnWaitersMax: 1024,
  /** Interval at which each waiting request checks its routers. */
  routerReturnPollMs: 250,
  /** Maximum `configTypes` in one log-in. */
  configTypesMax: 100,
}

export type ApiSessionLimits = Readonly<typeof apiSessionLimits>
