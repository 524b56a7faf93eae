import type { ChangeFeed } from '../../ports/change-feed.ts'
import type { RouterModel } from '../../ports/router-model.ts'
import type { State } from '../records/state.ts'
import { modelSourceKinds, modelChanges, findModelIdentity, wholeModelEvents } from './model.ts'

/**
 * Creates the model that routers receive.
 * @param state returns the current state; called at each use.
 */
export function createRouterModel(feed: ChangeFeed, state: () => State): RouterModel {
  return {
    get appliedIndex() {
      return state().position.index
    },
    all: () => wholeModelEvents(state()),
    identity: (id) => findModelIdentity(state(), id),
    disabledForNow: () => disabledForNow(state()),
    follow: (follower) =>
      feed.follow(modelSourceKinds, {
        onEntry: (index, changes) => {
          const events = modelChanges(state(), changes)
          if (events.length > 0) follower.onEntry(index, events)
        },
        onReplaced: () => follower.onReplaced(),
      }),
  }
}

function* disabledForNow(
  state: State,
): Iterable<{ readonly id: string; readonly untilMs: number }> {
  for (const { record } of state.table('identity').rows.values()) {
    const { id, disabledAt, disabledUntil } = record
    if (disabledAt !== null && disabledUntil !== null) yield { id, untilMs: disabledUntil }
  }
}
