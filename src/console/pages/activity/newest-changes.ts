/**
 * Filter for entries about terminators that routers create, change and remove as hosts come and go.
 * Such entries are omitted from recent changes: they are numerous, and no person made the changes.
 * An entry that changed no terminator has no entity.
 */
export const BY_ROUTERS =
  '(actor contains "router:" and (entity = "terminator" or action contains "terminator"))'

/**
 * Query for recent changes without sessions, which are frequent and change nothing that other users
 * see, and without the terminators of routers.
 */
export const newestChanges = {
  limit: '50',
  filter: `not (action contains "session" or ${BY_ROUTERS})`,
}
