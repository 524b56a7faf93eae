/** A session with the times that its replicated record contains, UTC ms. */
interface LoggedSession {
  readonly id: string
  readonly createdAt: number
  readonly lastActivityAt: number | null
}

/**
 * The last uses of API sessions at any controller. Controllers share a use immediately as soft
 * state, and write it to the log only after some minutes.
 */
export interface SessionUses {
  /** UTC ms. */
  lastUseMs(session: LoggedSession): number
}

/** The last uses that the replicated records contain, without uses from soft state. */
export const loggedSessionUses: SessionUses = {
  lastUseMs: ({ lastActivityAt, createdAt }) => lastActivityAt ?? createdAt,
}
