import type { ApiSession } from '../entities/kinds/api-session.ts'

/** Last uses of API sessions at any controller, which the log contains only after some minutes. */
export interface SessionUses {
  /** UTC ms. */
  lastUseMs(session: ApiSession): number
}

/** Uses as the log contains them. */
export const loggedSessionUses: SessionUses = {
  lastUseMs: ({ lastActivityAt, createdAt }) => lastActivityAt ?? createdAt,
}
