const SECOND_MS = 1000
const MINUTE_MS = 60_000

/** Limits of logging in and of sessions. */
export const apiSessionLimits = {
  /**
   * Maximum concurrent password hashes. The program sets it by the number of cores, because the
   * four threads of libuv also serve the store.
   */
  passwordHashesMax: 1,
  /** Maximum log-ins that wait for a hash; beyond: 429 SERVER_TOO_MANY_REQUESTS. */
  passwordHashesWaitingMax: 64,
  /**
   * Maximum log-ins in progress, shared by sources; beyond the total or the source's share: 429
   * SERVER_TOO_MANY_REQUESTS.
   */
  logInsMax: 64,
  /** Consecutive failures of one pair of user name and source after which it must pause. */
  logInFailuresMax: 10,
  /** First pause. */
  logInPauseMsMin: SECOND_MS,
  /** Longest pause. */
  logInPauseMsMax: MINUTE_MS,
  /**
   * Maximum stored pairs of user name and source; the one that was unused for the longest time is
   * dropped first.
   */
  logInSourcesMax: 10_000,
  /** A session that was unused for this time is refused, and the leader removes it. */
  sessionTimeoutMs: 30 * MINUTE_MS,
  /**
   * Maximum ended service sessions that dials and binds open again, per API session and minute.
   * Beyond it, the router answers that the session is invalid, and the client requests one from a
   * controller.
   */
  sessionReopensMax: 120,
  /** As above, for all API sessions together. */
  sessionReopensInAllMax: 12_000,
  /** Lifetime of an OIDC access token. */
  accessTokenMs: 30 * MINUTE_MS,
  /** Lifetime of a refresh token, and of an unused OIDC session. */
  refreshTokenMs: 24 * 60 * MINUTE_MS,
  /** Maximum lifetime of an OIDC session from its log-in, however often it is refreshed. */
  oidcSessionMsMax: 30 * 24 * 60 * MINUTE_MS,
  /**
   * A used refresh token is accepted again for this time, because its answer may have been lost.
   */
  refreshReuseMs: 2 * MINUTE_MS,
  /** Maximum sessions whose newest refresh token this controller stores. */
  refreshSessionsMax: 200_000,
  /** Interval at which refresh tokens of ended sessions are dropped. */
  refreshSweepMs: 5 * MINUTE_MS + SECOND_MS,
  /**
   * A controller without contact to a leader for a longer time refuses all sessions, because any of
   * them may have been revoked.
   */
  staleSessionMsMax: 15 * MINUTE_MS,
  /** Interval at which controllers share the last activity of sessions. */
  activityFlushMs: 10 * SECOND_MS,
  /** The last activity of a session is shared only if it moved by more than this. */
  activityMoveMs: 30 * SECOND_MS,
  /**
   * The leader writes the last activity of a session to the log only if it moved by more than this.
   */
  activityLogMs: 5 * MINUTE_MS,
  /** Maximum sessions whose activity one command writes. */
  activityBatchMax: 500,
  /** Maximum sessions whose activity is kept in memory. */
  activitySessionsMax: 200_000,
  /** Interval at which the leader removes expired sessions. */
  sweepMs: 5 * SECOND_MS,
  /** Maximum sessions that it removes at a time. */
  sweepBatchMax: 500,
  /** Interval at which the leader ends access whose time is over. */
  accessEndMs: 500,
  /** Another controller does so if the leader is later than this. */
  accessEndLateMs: 5 * SECOND_MS,
  /** Maximum service sessions that the leader checks for posture in one `sweepMs`. */
  postureLooksMax: 10_000,
  /** Maximum service sessions that one command ends because of posture. */
  postureEndsMax: 100,
  /** Wait for a client to report again, after the leader changed or the report expired. */
  postureGraceMs: MINUTE_MS,
  /**
   * Maximum identities per `sweepMs` whose posture reports are checked, and dropped if no session
   * uses them.
   */
  posturePrunesMax: 1000,
  /**
   * Time after the start of a controller in which new service sessions wait for a router of their
   * client to reconnect.
   */
  routerReturnMs: MINUTE_MS,
  /** Longest such wait; beyond it, the response contains the routers without an address. */
  routerReturnWaitMs: 5 * SECOND_MS,
  /** Maximum requests that wait for a router; further ones are answered without a wait. */
  routerReturnWaitersMax: 1024,
  /** Maximum `configTypes` of one log-in. */
  configTypesMax: 100,
}

export type ApiSessionLimits = Readonly<typeof apiSessionLimits>
