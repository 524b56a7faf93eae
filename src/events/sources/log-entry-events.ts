import {
  type ChangeFeed,
  type LogEntryFacts,
  isChangeOfKind,
  type RecordChange,
} from '../../ports/change-feed.ts'
import type { StateView } from '../../ports/state-view.ts'
import { EntryEvents } from '../entry-events.ts'
import type { EventBus } from '../event-bus.ts'
import { publishedKinds } from '../published-records.ts'

/**
 * Emits the events of each log entry. Every controller emits the same events in the same order for
 * an entry.
 */
export class LogEntryEvents {
  readonly #bus: EventBus
  readonly #state: Pick<StateView, 'get'>
  readonly #unfollow: () => void

  constructor(bus: EventBus, state: ChangeFeed & Pick<StateView, 'get'>) {
    this.#bus = bus
    this.#state = state
    this.#unfollow = state.follow([...publishedKinds, 'accessEnd'], {
      onEntry: (index, changes, facts) => this.#onEntry(index, changes, facts),
      onReplaced: () => bus.noteGap(),
    })
  }

  stop(): void {
    this.#unfollow()
  }

  #onEntry(index: number, changes: readonly RecordChange[], facts: LogEntryFacts): void {
    const { timeMs, audit } = facts
    const policyIds = this.#policyIds(changes)
    this.#bus.emitEntry(new EntryEvents(this.#bus, { index, timeMs, audit, changes, policyIds }))
  }

  #policyIds(changes: readonly RecordChange[]): ReadonlyMap<string, string> {
    let found: Map<string, string> | null = null
    for (const change of changes) {
      if (!isChangeOfKind(change, 'apiSession')) continue
      const { before, after } = change
      if (before !== undefined || after === undefined) continue
      const { id, identityId } = after
      const policyId = this.#state.get('identity', identityId)?.authPolicyId
      found ??= new Map()
      found.set(id, policyId ?? '')
    }
    return found ?? noPolicies
  }
}

const noPolicies: ReadonlyMap<string, string> = new Map()
