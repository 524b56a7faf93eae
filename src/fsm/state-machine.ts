import { create, fromBinary } from '@bufbuild/protobuf'
import type { KindName } from '../entities/kind-records.ts'
import { type Configuration, ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import { AssertionError } from '../lib/assert.ts'
import type { Clock } from '../lib/clock.ts'
import { errorMessage } from '../lib/error-code.ts'
import type {
  ChangeFeed,
  ChangeListener,
  LogEntryFacts,
  RecordChange,
} from '../ports/change-feed.ts'
import type {
  AppliedEntry,
  StateDigests,
  ReplicatedStateMachine,
} from '../ports/replicated-state-machine.ts'
import type {
  ApplyProgress,
  StateStore,
  StoreReceiver,
  StoreSnapshot,
} from '../ports/state-store.ts'
import type { RouterModel } from '../ports/router-model.ts'
import { noRouterStatuses, type RouterStatuses } from '../ports/router-status.ts'
import type { ListQuery, ListResult, StateView } from '../ports/state-view.ts'
import type { Entry, Index, Position } from '../raft/types.ts'
import { applyLogEntry } from './apply-log-entry.ts'
import { listAudit } from './audit-query.ts'
import { loadState } from './records/load.ts'
import { StateReader } from './state-reader.ts'
import { createRouterModel } from './router-model/create-router-model.ts'
import { IndexWaiters, type ScheduleTimer, scheduleWithTimer } from './records/index-waiters.ts'
import { WriteBehind, writeBehindDefaults, type WriteBehindLimits } from './records/write-behind.ts'
import { ClusterState } from './access/cluster-state.ts'

interface StateMachineDeps {
  readonly store: StateStore
  /**
   * Used only by reads, which must know, for example, whether an identity is disabled at present.
   * The apply step never uses the clock.
   */
  readonly clock: Clock
  readonly schedule?: ScheduleTimer
  readonly limits?: WriteBehindLimits
  /**
   * For tests that damage the state in memory: called with the first state, and with each state
   * that replaces another.
   */
  readonly onState?: (state: ClusterState) => void
}

/**
 * The replicated state machine of a controller. It applies log entries and serves reads. The state
 * is in memory; changes are written to the store later (write-behind).
 */
export class StateMachine
  extends StateReader
  implements ReplicatedStateMachine, StateView, ChangeFeed
{
  onPersisted: (position: Position) => void = () => undefined
  onFailed: (error: Error) => void = () => undefined
  /**
   * Called in the apply step, after the entry that completes a restore of a backup; must not throw.
   */
  onRecordsReplaced: (index: Index) => void = () => undefined
  /**
   * Status of the connected routers, for details and filters. The apply step never reads the
   * status.
   */
  routers: RouterStatuses = noRouterStatuses
  /** The data model that edge routers receive, and with which they decide about access. */
  readonly routerModel: RouterModel = createRouterModel(this, () => this.state)
  readonly #deps: StateMachineDeps
  readonly #waiters: IndexWaiters
  #writeBehind: WriteBehind
  /**
   * The error of an entry that could not be applied, or of a snapshot that could not be restored.
   * After an entry failed, the state may be changed only in part, so it must not be used or stored.
   */
  #failure: Error | null = null
  #isRestoring = false
  readonly #followers = new Followers()

  private constructor(deps: StateMachineDeps, state: ClusterState) {
    super(state, deps.clock, () => this.routers)
    this.#deps = deps
    this.#waiters = new IndexWaiters(deps.schedule ?? scheduleWithTimer)
    deps.onState?.(state)
    this.#writeBehind = this.#newWriteBehind()
  }

  /**
   * Opens the state in a store.
   * @throws when the store is damaged, or has a feature level that this version does not know.
   */
  static async open(deps: StateMachineDeps): Promise<StateMachine> {
    return new StateMachine(deps, await loadState(deps.store, new ClusterState()))
  }

  #newWriteBehind(): WriteBehind {
    const { store, schedule = scheduleWithTimer, limits = writeBehindDefaults } = this.#deps
    const made = new WriteBehind(store, schedule, limits, this.state.position)
    made.onPersisted = (position) => {
      this.onPersisted(position)
    }
    made.onFailed = (error) => {
      this.onFailed(error)
    }
    return made
  }

  progress(): ApplyProgress {
    return {
      applied: this.state.position.index,
      persisted: this.#writeBehind.persisted.index,
    }
  }

  persistedMark(): {
    readonly position: Position
    readonly configuration: Configuration
    readonly timeMs: number
    readonly cameBySnapshot: boolean
  } {
    const mark = this.#deps.store.mark()
    if (mark === null) {
      const configuration = create(ConfigurationSchema)
      return { position: { term: 0, index: 0 }, configuration, timeMs: 0, cameBySnapshot: false }
    }
    const bytes = Uint8Array.from(Buffer.from(mark.configuration, 'base64'))
    const configuration = fromBinary(ConfigurationSchema, bytes)
    const cameBySnapshot = this.#deps.store.cameBySnapshot()
    return { position: mark.position, configuration, timeMs: mark.timeMs, cameBySnapshot }
  }

  apply(entry: Entry): AppliedEntry {
    if (this.#failure !== null) throw this.#failure
    if (this.#isRestoring)
      throw new AssertionError('nothing is applied while a snapshot takes the place of the state')
    if (entry.index <= this.state.position.index) {
      return { index: entry.index, origin: null, outcome: null, audit: null }
    }
    try {
      const applied = applyLogEntry(this.state, entry)
      this.#writeBehind.noteApplied(this.state)
      this.#notifyFollowers(entry.index, applied.audit)
      this.#waiters.reached(entry.index)
      return applied
    } catch (error) {
      const reason = errorMessage(error)
      this.#failure = new Error(`entry ${entry.index} can not be applied: ${reason}`, {
        cause: error,
      })
      void this.#writeBehind.stop()
      throw this.#failure
    }
  }

  get isBehind(): boolean {
    const { dirtyCharactersMax } = this.#deps.limits ?? writeBehindDefaults
    return this.state.dirtyCharacters >= dirtyCharactersMax
  }

  digests(): StateDigests {
    return {
      index: this.state.position.index,
      state: this.state.stateDigest(),
      entities: this.state.entitiesDigest(),
    }
  }

  async snapshot(): Promise<StoreSnapshot> {
    await this.#writeBehind.flush(this.state)
    return await this.#deps.store.snapshot()
  }

  async receive(): Promise<StoreReceiver> {
    return await this.#deps.store.receive()
  }

  async restore(receiver: StoreReceiver): Promise<void> {
    if (this.#isRestoring) throw new AssertionError('one snapshot is restored at a time')
    this.#isRestoring = true
    try {
      await this.#writeBehind.stop()
      await receiver.swap()
      this.state = await loadState(this.#deps.store, new ClusterState())
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error(String(error))
      throw this.#failure
    }
    this.#isRestoring = false
    this.#failure = null
    this.#deps.onState?.(this.state)
    this.#writeBehind = this.#newWriteBehind()
    for (const kind of this.#followers.kinds()) this.state.changes.watch(kind)
    this.#followers.onReplaced()
    this.#waiters.reached(this.state.position.index)
    this.onPersisted(this.state.position)
  }

  follow(kinds: readonly KindName[], of: ChangeListener): () => void {
    for (const kind of kinds) this.state.changes.watch(kind)
    return this.#followers.add(kinds, of)
  }

  /** Notifies subscribers that one log entry replaced all records. */
  #notifyReplaced(): void {
    this.#followers.onReplaced()
    this.onRecordsReplaced(this.state.position.index)
  }

  #notifyFollowers(index: Index, audit: AppliedEntry['audit']): void {
    if (this.state.changes.takeReplaced()) this.#notifyReplaced()
    const changes = this.state.changes.take(this.state.tables)
    if (changes.length === 0) return
    this.#followers.onEntry(index, changes, { timeMs: this.state.logTimeMs, audit })
  }

  /** Ids of all records of a table, in any order. */
  ids(kind: KindName): Iterable<string> {
    return this.state.table(kind).rows.keys()
  }

  /**
   * Ids of all records of a table, in the same order on every controller. The caller must read them
   * in one turn of the event loop.
   */
  sortedIds(kind: KindName): Iterable<string> {
    return this.state.table(kind).ids
  }

  async close(): Promise<void> {
    this.#waiters.dismiss()
    if (this.#failure === null) await this.#writeBehind.flush(this.state)
    await this.#writeBehind.stop()
    await this.#deps.store.close()
  }

  get appliedIndex(): Index {
    return this.state.position.index
  }

  get setbackMs(): number {
    return this.state.setbackMs
  }

  waitForApplied(index: Index, timeoutMs: number): Promise<boolean> {
    if (index <= this.state.position.index) return Promise.resolve(true)
    return this.#waiters.wait(index, timeoutMs)
  }

  listAudit(query: ListQuery): Promise<ListResult> {
    return listAudit(this.state.audit, query, () => new Promise((go) => setImmediate(go)))
  }
}

/**
 * Subscribers to record changes outside of the apply step, with the kinds that each of them
 * follows.
 */
class Followers {
  readonly #all = new Set<{ readonly kinds: ReadonlySet<KindName>; readonly of: ChangeListener }>()

  /**
   * Adds a subscriber for some kinds of records.
   * @returns a function that removes the subscriber.
   */
  add(kinds: readonly KindName[], of: ChangeListener): () => void {
    const follower = { kinds: new Set(kinds), of }
    this.#all.add(follower)
    return () => {
      this.#all.delete(follower)
    }
  }

  /** Kinds that at least one subscriber follows. */
  *kinds(): Generator<KindName> {
    for (const { kinds } of this.#all) yield* kinds
  }

  /** Notifies the subscribers that all records may have changed. */
  onReplaced(): void {
    for (const { of } of this.#all) of.onReplaced()
  }

  onEntry(index: Index, changes: readonly RecordChange[], facts: LogEntryFacts): void {
    for (const { kinds, of } of this.#all) {
      const isAll = changes.every(({ kind }) => kinds.has(kind))
      const own = isAll ? changes : changes.filter(({ kind }) => kinds.has(kind))
      try {
        if (own.length > 0) of.onEntry(index, own, facts)
      } catch {
        // An error of a subscriber must not stop the apply step, because the subscriber can rebuild
        // its data from the records.
        of.onReplaced()
      }
    }
  }
}
