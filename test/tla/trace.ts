import { assert } from '../../src/lib/assert.ts'
import type { RaftCore, RaftCoreStart, FullCoreStatus } from '../../src/raft/core.ts'
import type { CoreEffects } from '../../src/raft/effects.ts'
import type { CoreInput } from '../../src/raft/input.ts'
import type { Message } from '../../src/raft/types.ts'
import { Naming } from './naming.ts'
import type { CoreObserver } from './observe.ts'
import { withoutTheUnheard } from './prune.ts'
import { explainStep, stateOf, type Step } from './steps.ts'
import type {
  Server,
  Trace,
  TraceAction,
  TraceAfter,
  TraceEntry,
  TraceEvent,
  TraceMessage,
} from './trace-event.ts'

interface Life {
  readonly server: Server
  /**
   * The last reported record. A record is never changed, so another object means another
   * configuration.
   */
  record: FullCoreStatus['configurationRecord'] | null
}

/**
 * Records the steps of the cores of one process as actions of FlotillaRaft.tla. For each step it
 * names the assumed action and the state that the Raft core reports afterwards; the specification
 * decides whether that is permitted. It also records a step that matches no action, which the
 * specification then rejects.
 */
export class TraceWriter implements CoreObserver {
  readonly #naming = new Naming()
  readonly #events: TraceEvent[] = []
  readonly #lives = new Map<RaftCore, Life>()
  readonly #joined = new Set<Server>()
  #formed: readonly TraceEntry[] | null = null

  get trace(): Trace {
    const events = withoutTheUnheard(this.#events)
    return { servers: this.#naming.servers, formed: this.#formed ?? [], events }
  }

  onStart(core: RaftCore, start: RaftCoreStart): void {
    const server = this.#naming.server(start.id, start.storeId ?? new Uint8Array(0))
    this.#lives.set(core, { server, record: null })
    const { hardState, base, entries } = start.log
    const last = entries.at(-1) ?? base
    const common = {
      term: hardState.term,
      votedFor: hardState.votedFor ?? '',
      applied: start.applied.index,
      commit: core.fullStatus.commit,
    }
    if (this.#joined.has(server)) {
      const found = { lastIndex: last.index, lastTerm: last.term }
      this.#report(core, [{ action: 'Restart', ...common, ...found }])
      return
    }
    this.#joined.add(server)
    const kept = this.#naming.entries(entries)
    this.#formed ??= kept.slice(0, common.commit)
    const told = this.#naming.members(start.configuration)
    const join = { base: base.index, entries: kept, told }
    this.#report(core, [{ action: 'Join', ...common, ...join }])
  }

  onStep(core: RaftCore, input: CoreInput, before: FullCoreStatus): void {
    const after = core.fullStatus
    const step: Step = {
      input,
      before,
      after,
      message: input.type === 'message' ? this.#heard(input.message, input.storeId) : null,
      entriesAfter: (index) =>
        after.last.index > index
          ? this.#naming.entries(core.entries(index + 1, after.last.index))
          : [],
    }
    const actions = explainStep(step)
    if (actions.length > 0) this.#report(core, actions)
    else if (isMoved(before, after)) {
      this.#report(core, [{ action: 'Unexplained', input: input.type }])
    }
  }

  onEffects(core: RaftCore, effects: CoreEffects): void {
    const { server } = this.#lifeOf(core)
    const before = this.#events.length
    for (const operation of effects.disk) {
      if (operation.type === 'reset') {
        this.#events.push({ server, action: 'Reset', index: operation.position.index })
      }
      if (operation.type !== 'write') continue
      const { hardState, entries } = operation.write
      this.#events.push({
        server,
        action: 'Write',
        term: hardState?.term ?? 0,
        votedFor: hardState?.votedFor ?? '',
        first: entries[0]?.index ?? 1,
        entries: this.#naming.entries(entries),
      })
    }
    for (const { message, afterToken } of effects.messages) {
      const sent = this.#messageOf(message, server)
      if (sent === null) continue
      const send = { message: sent, token: afterToken, isLost: false }
      this.#events.push({ server, action: 'Send', ...send })
    }
    if (this.#events.length > before) this.#events.push({ server, action: 'Ready' })
  }

  #lifeOf(core: RaftCore): Life {
    const life = this.#lives.get(core)
    assert(life !== undefined, 'a core is seen from its start')
    return life
  }

  /**
   * The reported state belongs to the last action of the step, because the Raft core is not
   * observed between the actions.
   */
  #report(core: RaftCore, actions: readonly TraceAction[]): void {
    const { server } = this.#lifeOf(core)
    const last = actions.length - 1
    for (const [at, action] of actions.entries()) {
      this.#events.push({ ...action, server, ...(at < last ? {} : { after: this.#after(core) }) })
    }
  }

  #after(core: RaftCore): TraceAfter {
    const life = this.#lifeOf(core)
    const now = core.fullStatus
    const isOtherConfig = life.record !== now.configurationRecord
    life.record = now.configurationRecord
    return {
      term: now.term,
      votedFor: now.votedFor ?? '',
      state: stateOf(now.role),
      lastIndex: now.last.index,
      lastTerm: now.last.term,
      commit: now.commit,
      ...(isOtherConfig ? { config: this.#naming.members(now.configurationRecord) } : {}),
      ...(now.role === 'leader' ? { match: this.#matchOf(now) } : {}),
    }
  }

  #matchOf({ peers, configurationRecord }: FullCoreStatus): [Server, number][] {
    return peers.map(({ id, matchIndex }) => {
      const member = configurationRecord.members.find((one) => one.id === id)
      return [this.#naming.server(id, member?.storeId ?? new Uint8Array(0)), matchIndex]
    })
  }

  #heard(message: Message, storeId: Uint8Array | undefined): TraceMessage | null {
    return this.#messageOf(message, this.#naming.server(message.from, storeId ?? new Uint8Array(0)))
  }

  /** @returns null for a message that the specification does not contain. */
  #messageOf(message: Message, msource: Server): TraceMessage | null {
    const header = { mterm: message.term, msource, mdest: message.to }
    switch (message.type) {
      case 'voteRequest': {
        const { term, index } = message.last
        const last = { mlastLogTerm: term, mlastLogIndex: index }
        return message.pre ? null : { mtype: 'RequestVoteRequest', ...header, ...last }
      }
      case 'voteResponse':
        if (!message.pre) {
          return { mtype: 'RequestVoteResponse', ...header, mvoteGranted: message.granted }
        }
        return message.granted ? null : { mtype: 'Answer', ...header }
      case 'appendRequest':
        return {
          mtype: 'AppendEntriesRequest',
          ...header,
          mprevLogIndex: message.previous.index,
          mprevLogTerm: message.previous.term,
          mentries: this.#naming.entries(message.entries),
          mcommitIndex: message.commit,
        }
      case 'appendResponse': {
        const { success, matchIndex } = message
        const answer = { msuccess: success, mmatchIndex: matchIndex }
        return { mtype: 'AppendEntriesResponse', ...header, ...answer }
      }
      case 'heartbeatRequest':
      case 'commitNotice':
        return { mtype: 'Heartbeat', ...header, mcommitIndex: message.commit }
      case 'heartbeatResponse':
        return { mtype: 'Answer', ...header }
      case 'timeoutNow':
      case 'snapshot':
        return null
    }
  }
}

function isMoved(before: FullCoreStatus, after: FullCoreStatus): boolean {
  const seen = ({ term, votedFor, role, last, commit, configurationRecord }: FullCoreStatus) => [
    term,
    votedFor,
    stateOf(role),
    last.index,
    last.term,
    commit,
    configurationRecord,
  ]
  const [then, now] = [seen(before), seen(after)]
  return then.some((value, at) => value !== now[at])
}
