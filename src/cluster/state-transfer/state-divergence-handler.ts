import type { Clock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/error-code.ts'
import type { ReplicatedStateMachine } from '../../ports/replicated-state-machine.ts'
import type { PeerChannel } from '../peer-channel.ts'
import type { StoreReceiver } from '../../ports/state-store.ts'
import type { Index, NodeId } from '../../raft/types.ts'
import type { AlarmRaiser } from '../alarm-table.ts'
import { DIGEST_INTERVAL_ENTRIES, DigestRing, type DigestComparison } from './digest-ring.ts'
import type { MainThreadProgress } from '../thread-channel.ts'
import type { Logger } from '../logger.ts'
import type { Presence } from '../soft-state/presence-topic.ts'
import { Quarantine, quarantineLimits, type QuarantineRecord } from './quarantine.ts'
import { StateTransferServer } from './state-transfer-server.ts'
import { fetchDigests, fetchState } from './state-transfer-client.ts'

/** Callbacks with which the handler of a wrong state controls the rest of the controller. */
interface StateGuardHooks {
  /**
   * Called when the controller must stop answering or sending anything from its state; consensus
   * continues.
   */
  readonly onQuarantine: () => void
  /** Pauses applying until a caller resumes it or replaces the state. */
  readonly hold: () => void
  readonly resumeApply: () => void
  /**
   * Rebuilds everything that is derived from the state, before the controller answers requests from
   * the new state.
   */
  readonly derive: () => Promise<void>
  /** Called when another state was installed; applying continues with the entries after it. */
  readonly onReplaced: () => void
  readonly onRelease: () => void
  /** Transfers leadership, because a leader in quarantine cannot answer requests. */
  readonly handOver: () => void
  /** Called when the controller can neither keep nor replace its state; the process must stop. */
  readonly onFatal: (error: Error) => void
}

interface StateGuardDeps extends StateGuardHooks {
  readonly selfId: NodeId
  readonly machine: ReplicatedStateMachine
  readonly peers: PeerChannel
  readonly clock: Clock
  readonly alarms: AlarmRaiser
  readonly log: Logger
  readonly mark: QuarantineRecord | null
  readonly voters: () => readonly NodeId[]
  readonly leaderId: () => NodeId | null
  /** Whether a member reports that it answers no requests from its state, or is about to stop. */
  readonly isFailing: (id: NodeId) => boolean
  /**
   * Number of received chunks of a snapshot that the leader sends without a request; null if there
   * is none.
   */
  readonly receivedChunks: () => number | null
  readonly dropReceived: () => void
  /** Maximum bytes per second that this controller sends to members that rebuild their state. */
  readonly bytesPerSecond: number
}

type OwnDigest = Pick<MainThreadProgress, 'digestIndex' | 'digest' | 'entitiesDigest'>

const HAND_OVER_MS = 1000
const PROVE_MS = 250
/**
 * Time after which a stalled snapshot from the leader is dropped, because no other state can be
 * fetched during its transfer.
 */
const RECEIVE_STALL_MS = 60_000
/**
 * Time after which another digest replaces one that waits for confirmation: members compute digests
 * only at some indexes, so the other members may have none at this index.
 */
const PROVE_AT_MS_MAX = 2000

/**
 * Compares this controller's state with the states of the others at the same index. If they differ,
 * it queries the connected voters. When a majority agrees on another state, this controller enters
 * quarantine, replaces its state with that of one of them, and leaves quarantine once a majority
 * has the same state.
 */
export class StateDivergenceHandler {
  readonly #deps: StateGuardDeps
  readonly #digests = new DigestRing()
  readonly #divergence: DivergenceWatch
  readonly #quarantine: Quarantine
  readonly #desk: StateTransferServer
  #digest: OwnDigest = { digestIndex: 0, digest: '', entitiesDigest: '' }
  #appliedAtSweep: Index = 0
  #isAsking = false
  #rebuilding: Promise<void> | null = null
  /**
   * True if a snapshot from the leader will replace the state, or the process stops, so that no
   * other state must be fetched.
   */
  #isUnwanted = false
  #isReplacing = false
  #isStopped = false
  #isHeld = false
  #holdUntilMs = 0
  /** Members whose state is that of the majority. */
  #agreeing: readonly NodeId[] = []
  #handOverDueMs = 0
  #proveDueMs = 0
  #received: { readonly chunks: number; readonly sinceMs: number } | null = null
  #provingAt: { readonly index: Index; readonly sinceMs: number } | null = null

  constructor(deps: StateGuardDeps) {
    this.#deps = deps
    const { alarms, clock, log, mark, peers, machine, bytesPerSecond } = deps
    this.#divergence = new DivergenceWatch(alarms)
    this.#quarantine = new Quarantine({ alarms, clock, log, mark })
    this.#desk = new StateTransferServer({
      peers,
      machine,
      clock,
      digestAt: (index) => this.#digests.at(index),
      isQuarantined: () => this.isQuarantined,
      bytesPerSecond,
    })
    if (this.isQuarantined) this.#beginHold()
  }

  /** True while this controller must not answer from its state. */
  get isQuarantined(): boolean {
    return this.#quarantine.isQuarantined
  }

  /**
   * True while no entries are applied, because the state is wrong and waits for its replacement.
   */
  get isHeld(): boolean {
    return this.#isHeld
  }

  get ownDigest(): OwnDigest {
    return this.#digest
  }

  /** Called after each applied entry. Computes a digest where one is due. */
  onApplied(index: Index): void {
    if (index % DIGEST_INTERVAL_ENTRIES === 0) this.#record()
  }

  /**
   * Computes a digest if no entries were applied since the last call and the current index has
   * none. Closes unused snapshots, and advances a quarantine. Called periodically.
   * @returns whether a digest was computed.
   */
  sweep(): boolean {
    const isTaken = this.#recordAtRest()
    this.#desk.sweep()
    if (this.isQuarantined) this.#workOnQuarantine()
    return isTaken
  }

  onPresence(id: NodeId, { isFailing, startedAtMs, digestIndex, digest }: Presence): void {
    // A member that reports itself as failing does not answer requests from its state, so its
    // digest is ignored.
    if (isFailing) this.#digests.forget(id)
    if (isFailing || this.#isWrong) return
    const found = this.#digests.compare(id, digestIndex, digest, this.#digest.digestIndex)
    this.#divergence.note(id, startedAtMs, found)
    if (found?.isSame === false) void this.#judge(found.index)
  }

  keepMembers(ids: readonly NodeId[]): void {
    this.#divergence.keep(ids)
  }

  /**
   * Makes room for a snapshot from the leader, which is about to arrive: drops a state that this
   * controller is fetching from another member.
   */
  async makeRoom(): Promise<void> {
    this.#isUnwanted = true
    try {
      await this.#rebuilding
    } finally {
      this.#isUnwanted = this.#isStopped
    }
  }

  /**
   * Called before another state replaces the current one. A call of `endReplacing` follows unless
   * the replacement fails, which stops the controller.
   */
  beginReplacing(): void {
    this.#isReplacing = true
    this.#desk.endAll()
  }

  /** Called when the state machine has the new state. */
  endReplacing(): void {
    this.#isReplacing = false
    this.#isHeld = false
    this.#digests.clear()
    this.#divergence.clear()
    this.#provingAt = null
    this.#quarantine.replaced(this.#deps.machine.progress().applied)
    this.#record()
  }

  /** Resolves when no rebuild is in progress. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#isUnwanted = true
    this.#desk.endAll()
    await this.#rebuilding
  }

  /** Whether the current state is known to be wrong. */
  get #isWrong(): boolean {
    return this.#quarantine.phase === 'rebuilding'
  }

  #beginHold(): void {
    this.#isHeld = true
    this.#holdUntilMs = this.#deps.clock.monotonicMs() + quarantineLimits.holdMsMax
  }

  #record(): void {
    const { index, state, entities } = this.#deps.machine.digests()
    this.#digests.record(index, state)
    this.#digest = { digestIndex: index, digest: state, entitiesDigest: entities }
  }

  /**
   * Computes a digest while there are no entries to apply: idle members stay at the same index
   * between two multiples of the interval, so their states can be compared there as well.
   */
  #recordAtRest(): boolean {
    const { applied } = this.#deps.machine.progress()
    const isChangeFinished = applied === this.#appliedAtSweep && !this.#isReplacing && !this.#isHeld
    this.#appliedAtSweep = applied
    if (!isChangeFinished || applied === this.#digest.digestIndex) return false
    this.#record()
    return true
  }

  /**
   * Queries the connected voters for their digests at `index`, and acts on the result of the
   * majority.
   */
  async #judge(index: Index): Promise<void> {
    const { peers, selfId, voters } = this.#deps
    const own = this.#digests.at(index)
    if (own === null || own === '' || this.#isAsking || this.#isWrong) return
    this.#isAsking = true
    const ready = peers.readyPeers()
    const asked = voters().filter((id) => id !== selfId && ready.includes(id))
    const heard = await fetchDigests(peers, asked, index)
    this.#isAsking = false
    // The responses are ignored if the state was replaced meanwhile, because they concern the
    // former state.
    if (this.#isStopped || this.#isReplacing || this.#digests.at(index) !== own) return
    const verdict = evaluateDigests({ selfId, own, heard, voters: voters() })
    if (verdict.kind === 'odd') this.#onOdd(index, verdict.agreeing)
    if (verdict.kind === 'fine' && this.#quarantine.agreed(index)) {
      this.#deps.log.info(
        { index },
        `quarantine lifted: state matches the majority at index ${index}`,
      )
      this.#deps.onRelease()
    }
  }

  #onOdd(index: Index, agreeing: readonly NodeId[]): void {
    if (!this.#quarantine.foundOdd(index, agreeing)) return
    this.#agreeing = agreeing
    this.#provingAt = null
    this.#desk.endAll()
    if (this.#isWrong) {
      this.#beginHold()
      this.#deps.hold()
    }
    this.#deps.onQuarantine()
  }

  #workOnQuarantine(): void {
    const { clock, leaderId, selfId, handOver } = this.#deps
    const nowMs = clock.monotonicMs()
    if (leaderId() === selfId && nowMs >= this.#handOverDueMs) {
      this.#handOverDueMs = nowMs + HAND_OVER_MS
      handOver()
    }
    if (this.#rebuilding === null && this.#quarantine.isRebuildDue(nowMs) && this.#isFree(nowMs)) {
      this.#rebuilding = this.#rebuild().finally(() => {
        this.#rebuilding = null
      })
    }
    if (this.#quarantine.phase === 'proving' && nowMs >= this.#proveDueMs) this.#prove(nowMs)
  }

  #isFree(nowMs: number): boolean {
    if (this.#isUnwanted || this.#isReplacing) return false
    const chunks = this.#deps.receivedChunks()
    if (chunks === null) {
      this.#received = null
      return true
    }
    if (this.#received?.chunks !== chunks) this.#received = { chunks, sinceMs: nowMs }
    if (nowMs - this.#received.sinceMs > RECEIVE_STALL_MS) this.#deps.dropReceived()
    return false
  }

  #prove(nowMs: number): void {
    this.#proveDueMs = nowMs + PROVE_MS
    const isStale = nowMs - (this.#provingAt?.sinceMs ?? -Infinity) > PROVE_AT_MS_MAX
    if (isStale) this.#provingAt = { index: this.#digest.digestIndex, sinceMs: nowMs }
    if (this.#provingAt !== null) void this.#judge(this.#provingAt.index)
  }

  async #rebuild(): Promise<void> {
    this.#isHeld = true
    this.#deps.hold()
    let receiver: StoreReceiver
    try {
      const from = this.#source()
      const { machine, log } = this.#deps
      const { applied } = machine.progress()
      log.info({ peer: from, applied }, `fetching state from ${from}`)
      receiver = await fetchState(this.#deps, from, applied, () => this.#isUnwanted)
    } catch (error) {
      this.#onNotRebuilt(errorMessage(error))
      return
    }
    if (this.#isUnwanted) {
      await receiver.abandon()
      this.#onNotRebuilt('it is no longer needed')
      return
    }
    await this.#replaceBy(receiver)
  }

  #onNotRebuilt(reason: string): void {
    this.#quarantine.failed(reason)
    if (this.#isStopped || this.#deps.clock.monotonicMs() < this.#holdUntilMs) return
    this.#isHeld = false
    this.#deps.resumeApply()
  }

  async #replaceBy(receiver: StoreReceiver): Promise<void> {
    this.beginReplacing()
    try {
      await this.#deps.machine.restore(receiver)
      await this.#deps.derive()
    } catch (error) {
      this.#deps.onFatal(new Error(`cannot rebuild the state: ${String(error)}`))
      return
    }
    this.endReplacing()
    this.#deps.onReplaced()
  }

  /**
   * Member from which to fetch the state: members of the majority first. Within the majority and
   * within the others, the leader is last because it has the most load. Each attempt selects the
   * next member.
   */
  #source(): NodeId {
    const { peers, isFailing, leaderId } = this.#deps
    const rank = (id: NodeId): number =>
      (this.#agreeing.includes(id) ? 0 : 2) + (id === leaderId() ? 1 : 0)
    const usable = peers.readyPeers().filter((id) => !isFailing(id))
    const best = [...usable].sort((a, b) => rank(a) - rank(b))
    const source = best[this.#quarantine.failures % Math.max(1, best.length)]
    if (source === undefined) throw new Error('no connected member responds')
    return source
  }
}

/**
 * Raises the alarm STATE_DIVERGED for members whose state differs from this controller's. Two
 * members alone cannot find out which state is wrong, so this class takes no member out of service;
 * the {@link StateDivergenceHandler} does so by majority.
 */
export class DivergenceWatch {
  readonly #alarms: AlarmRaiser
  /**
   * Members whose state differed: the index of the difference, and the start time of the process
   * that had the other state.
   */
  readonly #diverged = new Map<NodeId, { readonly at: Index; readonly startedAtMs: number }>()

  constructor(alarms: AlarmRaiser) {
    this.#alarms = alarms
  }

  /**
   * Raises or clears the alarm for a member, after a comparison of states.
   * @param found null when the states could not be compared.
   */
  note(id: NodeId, startedAtMs: number, found: DigestComparison | null): void {
    const known = this.#diverged.get(id)
    if (found?.isSame === false) {
      this.#diverged.set(id, { at: found.index, startedAtMs })
      this.#alarms.raise('STATE_DIVERGED', { member: id, index: found.index })
      return
    }
    if (known === undefined) return
    // The alarm is cleared when the member has restarted and so reloaded its state, or when its
    // state is equal again.
    const isAnew = known.startedAtMs !== startedAtMs
    if (isAnew || (found !== null && found.index > known.at)) this.#settle(id)
  }

  /** Drops alarms about former members. */
  keep(members: readonly NodeId[]): void {
    const gone = [...this.#diverged.keys()].filter((id) => !members.includes(id))
    for (const id of gone) this.#settle(id)
  }

  /**
   * Drops all comparisons and their alarms, because the state of this controller was replaced.
   */
  clear(): void {
    for (const id of Array.from(this.#diverged.keys())) this.#settle(id)
  }

  #settle(id: NodeId): void {
    this.#diverged.delete(id)
    this.#alarms.clear('STATE_DIVERGED', id)
  }
}

/** State digests of members at one index. */
interface DigestsAtIndex {
  readonly selfId: NodeId
  readonly own: string
  /** Digests that other members sent; some may be missing. */
  readonly heard: ReadonlyMap<NodeId, string>
  readonly voters: readonly NodeId[]
}

/**
 * Result of comparing the states of all members.
 * - fine: a majority of the voters has this controller's state; `odd` are the members that differ.
 * - odd: a majority has another state; `agreeing` are its members.
 * - tie: all voters responded, and no state has a majority.
 * - open: too few voters responded.
 */
type StateVerdict =
  | { readonly kind: 'fine'; readonly odd: readonly NodeId[] }
  | { readonly kind: 'odd'; readonly agreeing: readonly NodeId[] }
  | { readonly kind: 'tie' }
  | { readonly kind: 'open' }

/**
 * Decides whose state is wrong. Only a majority of the voters at the same index can show that. A
 * smaller group may itself be wrong, and one faulty or malicious member could otherwise take
 * healthy ones out of service.
 */
export function evaluateDigests({ selfId, own, heard, voters }: DigestsAtIndex): StateVerdict {
  const all = new Map(heard).set(selfId, own)
  const holders = new Map<string, NodeId[]>()
  for (const id of new Set(voters)) {
    const digest = all.get(id)
    if (digest === undefined) continue
    holders.set(digest, [...(holders.get(digest) ?? []), id])
  }
  const votes = new Set(voters).size
  const majority = [...holders].find(([, ids]) => ids.length * 2 > votes)
  if (majority === undefined) {
    const isAllHeard = [...holders.values()].flat().length === votes
    return { kind: isAllHeard ? 'tie' : 'open' }
  }
  const [right, agreeing] = majority
  if (right !== own) return { kind: 'odd', agreeing: [...agreeing].sort() }
  const odd = [...heard].filter(([, digest]) => digest !== own).map(([id]) => id)
  return { kind: 'fine', odd: odd.sort() }
}
