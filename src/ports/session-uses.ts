/** A session with the times that its replicated record contains, UTC ms. */
interface LoggedSession {
  readonly id: string
  readonly createdAt: number
  readonly lastActivityAt: number | null
}

/**
 * The last uses of API sessions at any controller. Controllers share a use as soft state within
 * some seconds, unless it is only a little later than the use that they know already. They write it
 * to the log only after some minutes.
 */
export interface SessionUses {
  /** UTC ms. */
  lastUseMs(session: LoggedSession): number
}

/** The last uses that the replicated records contain, without uses from soft state. */
export const loggedSessionUses: SessionUses = {
  lastUseMs: ({ lastActivityAt, createdAt }) => lastActivityAt ?? createdAt,
}
