/** A session with the times in its replicated record, UTC ms. */
interface LoggedSession {
  readonly id: string
  readonly createdAt: number
  readonly lastActivityAt: number | null
}

/**
 * Last uses of API sessions at any controller. A use is written to the log only after some minutes.
 */
export interface SessionUses {
  /** UTC ms. */
  lastUseMs(session: LoggedSession): number
}

/** Session uses according to the replicated records alone. */
export const loggedSessionUses: SessionUses = {
  lastUseMs: ({ lastActivityAt, createdAt }) => lastActivityAt ?? createdAt,
}
