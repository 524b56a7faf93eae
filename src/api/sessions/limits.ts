const SECOND_MS = 1000
const MINUTE_MS = 60_000

/** Limits of logging in and of sessions. */
export const apiSessionLimits = {
  /**
   * Password hashes computed at a time. The program sets it by its cores, because the four threads
   * of libuv also serve the store.
   */
  passwordHashesMax: 1,
  /** Log-ins that wait for a hash; beyond: 429 SERVER_TOO_MANY_REQUESTS. */
  passwordHashesWaitingMax: 64,
  /**
   * Log-ins in progress, shared by sources; beyond the total or its share: 429
   * SERVER_TOO_MANY_REQUESTS.
   */
  logInsMax: 64,
  /** Consecutive failures of one pair of user name and source before it must pause. */
  logInFailuresMax: 10,
  /** First pause. */
  logInPauseMsMin: SECOND_MS,
  /** Longest pause. */
  logInPauseMsMax: MINUTE_MS,
  /**
   * Pairs of user name and source that are stored; the one unused for longest is dropped first.
   */
  logInSourcesMax: 10_000,
  /** A session not used for this long is refused, and removed by the leader. */
  sessionTimeoutMs: 30 * MINUTE_MS,
  /**
   * Ended service sessions that dials and binds open again, per API session and minute; beyond: the
   * router answers that the session is invalid, and the client requests one from a controller.
   */
  sessionReopensMax: 120,
  /** The same for all API sessions together. */
  sessionReopensInAllMax: 12_000,
  /** Lifetime of an OIDC access token. */
  accessTokenMs: 30 * MINUTE_MS,
  /** Lifetime of a refresh token, and of an OIDC session that is not used. */
  refreshTokenMs: 24 * 60 * MINUTE_MS,
  /** Lifetime of an OIDC session from its log-in, however often it is refreshed. */
  oidcSessionMsMax: 30 * 24 * 60 * MINUTE_MS,
  /**
   * A used refresh token is accepted again for this long, because its answer may have been lost.
   */
  refreshReuseMs: 2 * MINUTE_MS,
  /** Sessions whose newest refresh token this controller stores. */
  refreshSessionsMax: 200_000,
  /** Interval for dropping those of ended sessions. */
  refreshSweepMs: 5 * MINUTE_MS + SECOND_MS,
  /**
   * A controller without contact to a leader for longer refuses all sessions, because one of them
   * may have been revoked.
   */
  staleSessionMsMax: 15 * MINUTE_MS,
  /** Interval at which controllers share the last activity of sessions. */
  activityFlushMs: 10 * SECOND_MS,
  /** Smaller changes of the last activity are not shared. */
  activityMoveMs: 30 * SECOND_MS,
  /** Smaller changes of the last activity are not written to the log by the leader. */
  activityLogMs: 5 * MINUTE_MS,
  /** Sessions whose activity one command writes. */
  activityBatchMax: 500,
  /** Sessions whose activity is kept in memory. */
  activitySessionsMax: 200_000,
  /** Interval at which the leader removes expired sessions. */
  sweepMs: 5 * SECOND_MS,
  /** Sessions that it removes at a time. */
  sweepBatchMax: 500,
  /** Service sessions that the leader checks for posture in one `sweepMs`. */
  postureLooksMax: 10_000,
  /** Service sessions that one command ends for posture. */
  postureEndsMax: 100,
  /** Wait for a client to report again, after the leader changed or the report expired. */
  postureGraceMs: MINUTE_MS,
  /**
   * Identities whose posture reports are checked per `sweepMs`, and dropped if no session uses
   * them.
   */
  posturePrunesMax: 1000,
  /** `configTypes` of one log-in. */
  configTypesMax: 100,
}

export type ApiSessionLimits = Readonly<typeof apiSessionLimits>
