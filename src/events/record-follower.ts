import type { ApiSession } from '../entities/api-session.ts'
import type { Session } from '../entities/session.ts'
import type { ChangeFeed, EntryFacts, RecordChange } from '../ports/change-feed.ts'
import { positionText } from '../ports/events.ts'
import type { StateView } from '../ports/state-view.ts'
import type { EventBus } from './event-bus.ts'
import type { NewEvent } from './field.ts'
import { publishedRecords } from './published-records.ts'
import { apiSessionEvent } from './subjects/api-session.ts'
import { loggedIn } from './subjects/authentication.ts'
import { entityChanged } from './subjects/entity-change.ts'
import { sessionEvent } from './subjects/session.ts'

/** Makes events of what entries change: of one entry the same ones, in the same order, on every controller. */
export class RecordFollower {
  readonly #bus: EventBus
  readonly #state: Pick<StateView, 'get'>
  readonly #unfollow: () => void

  constructor(bus: EventBus, state: ChangeFeed & Pick<StateView, 'get'>) {
    this.#bus = bus
    this.#state = state
    this.#unfollow = state.follow(Object.keys(publishedRecords), {
      onEntry: (index, changes, facts) => this.#onEntry(index, changes, facts),
      onReplaced: () => bus.noteGap(),
    })
  }

  stop(): void {
    this.#unfollow()
  }

  #onEntry(index: number, told: readonly RecordChange[], facts: EntryFacts): void {
    const { generation } = this.#bus
    const changes = told.length === 1 ? told : told.toSorted(byKind)
    const entry = { index, ...facts }
    const events: NewEvent[] = []
    const committed: NewEvent[] = []
    for (const change of changes) {
      if (isActivityAlone(change)) continue
      const position = { generation, index, sequence: events.length + 1 }
      const made = entityChanged(change, entry, positionText(position))
      events.push(made.changed)
      committed.push(made.committed)
    }
    if (events.length === 0) return
    events.push(...committed)
    for (const change of changes) this.#addSessionEvents(events, change, facts.timeMs)
    this.#bus.emitEntry(index, events)
  }

  #addSessionEvents(events: NewEvent[], change: RecordChange, atMs: number): void {
    const { kind, before, after } = change
    if (before !== undefined && after !== undefined) return
    const type = after === undefined ? 'deleted' : 'created'
    const record = after ?? before
    if (kind === 'session') events.push(sessionEvent(type, record as Session, atMs))
    if (kind !== 'apiSession') return
    const session = record as ApiSession
    events.push(apiSessionEvent(type, session, atMs))
    if (type === 'deleted') return
    // Read now: later entries may change it, and every controller has to say the same.
    const policyId = this.#state.get('identity', session.identityId)?.['authPolicyId']
    events.push(loggedIn(session, typeof policyId === 'string' ? policyId : '', atMs))
  }
}

const kindOrder = new Map(Object.keys(publishedRecords).map((kind, at) => [kind, at]))

/** The feed gives the kinds in the order in which they were first followed, which can differ from controller to controller. */
function byKind(a: RecordChange, b: RecordChange): number {
  return (kindOrder.get(a.kind) ?? 0) - (kindOrder.get(b.kind) ?? 0)
}

/** That a session is used is written now and then for many at once, and is news to nobody. */
function isActivityAlone({ kind, before, after }: RecordChange): boolean {
  if (kind !== 'apiSession' || before === undefined || after === undefined) return false
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  for (const name of ['lastActivityAt', 'updatedAt', 'revision']) names.delete(name)
  return [...names].every((name) => before[name] === after[name])
}
