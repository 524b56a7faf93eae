/** A session as the log contains it. UTC ms. */
interface LoggedSession {
  readonly id: string
  readonly createdAt: number
  readonly lastActivityAt: number | null
}

/** Last uses of API sessions at any controller, which the log contains only after some minutes. */
export interface SessionUses {
  /** UTC ms. */
  lastUseMs(session: LoggedSession): number
}

/** Uses as the log contains them. */
export const loggedSessionUses: SessionUses = {
  lastUseMs: ({ lastActivityAt, createdAt }) => lastActivityAt ?? createdAt,
}
