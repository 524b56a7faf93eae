import { expect, onTestFinished, test } from 'vitest'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { RaftCore } from '../../src/raft/core.ts'
import type { CoreStatus, ProposalResult } from '../../src/raft/effects.ts'
import {
  defaultRaftNodeLimits,
  type RaftNodeCallbacks,
  type RaftNodeLimits,
  type Scheduler,
} from '../../src/raft/node-start.ts'
import { RaftNode, systemScheduler } from '../../src/raft/node.ts'
import { type CoreOptions, defaultCoreOptions } from '../../src/raft/options.ts'
import type { Disk, DiskWrite, Entry, Message, NodeId, Position } from '../../src/raft/types.ts'
import { configurationOf, formingEntries, text } from './members.ts'
import { eventually } from '../support/eventually.ts'

// The driver on the real event loop. These tests check which messages it holds back; the simulation
// checks the same with faults.

/** A disk that reports writes as durable only when the test says so. */
class ManualDisk implements Disk {
  onDurable: (token: number) => void = () => undefined
  onFailed: (error: Error) => void = () => undefined
  isHeld = false
  readonly calls: string[] = []
  readonly writes: DiskWrite[] = []
  #lastToken = 0

  write(write: DiskWrite): void {
    this.writes.push(write)
    this.#done('write', write.token)
  }

  compact(position: Position): void {
    this.calls.push(`compact ${position.index}`)
  }

  reset(position: Position, token: number): void {
    this.#done(`reset ${position.index}`, token)
  }

  settle(): void {}

  release(): void {
    this.isHeld = false
    this.onDurable(this.#lastToken)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  #done(call: string, token: number): void {
    this.calls.push(call)
    this.#lastToken = token
    if (!this.isHeld)
      setImmediate(() => {
        if (!this.isHeld) this.onDurable(token)
      })
  }
}

interface Harness {
  readonly node: RaftNode
  readonly disk: ManualDisk
  readonly sent: Message[]
  readonly applied: Entry[]
  readonly results: ProposalResult[]
  readonly fatal: Error[]
  status: CoreStatus | null
}

interface HarnessOptions {
  readonly send?: (message: Message) => void
  readonly core?: Partial<CoreOptions>
  readonly limits?: Partial<RaftNodeLimits>
  readonly callbacks?: Partial<RaftNodeCallbacks>
  readonly clock?: Clock
  readonly scheduler?: Scheduler
  /** Whether committed entries are reported applied automatically. */
  readonly isApplying?: boolean
}

function harness(id: NodeId, voters: readonly NodeId[], options: HarnessOptions = {}): Harness {
  const configuration = configurationOf({ voters })
  const entries = formingEntries(configuration)
  const disk = new ManualDisk()
  const core = RaftCore.restore({
    id,
    options: { ...defaultCoreOptions, ...options.core },
    random: seededRandom(id.charCodeAt(0)),
    log: {
      hardState: { term: 1, votedFor: null },
      base: { term: 0, index: 0 },
      entries,
      commit: 2,
      boot: 1,
      owed: null,
    },
    applied: { term: 1, index: 2 },
    configuration,
    appliedTimeMs: 0,
  })
  const made: Omit<Harness, 'node'> = {
    disk,
    sent: [],
    applied: [],
    results: [],
    fatal: [],
    status: null,
  }
  const node: RaftNode = new RaftNode({
    core,
    disk,
    transport: {
      send: (message) => {
        made.sent.push(message)
        options.send?.(message)
      },
    },
    clock: options.clock ?? systemClock,
    scheduler: options.scheduler ?? systemScheduler,
    limits: { ...defaultRaftNodeLimits, tickMs: 10, ...options.limits },
    callbacks: {
      onCommitted: (committed) => {
        made.applied.push(...committed)
        const last = committed.at(-1)
        if (options.isApplying !== false && last !== undefined)
          node.applied(last.index, last.timeMs)
      },
      onProposals: (results) => made.results.push(...results),
      onStatus: (status) => {
        made.status = status
      },
      onSendSnapshot: (to) => {
        node.snapshotFailed(to)
      },
      onRestore: () => Promise.resolve(),
      onFatal: (error) => made.fatal.push(error),
      ...options.callbacks,
    },
  })
  const whole: Harness = Object.assign(made, { node })
  node.start()
  onTestFinished(() => {
    node.stop()
  })
  return whole
}

const proposals = (first: number, count: number): { id: number; data: Uint8Array }[] =>
  Array.from({ length: count }, (_, at) => ({ id: first + at, data: text(`${first + at}`) }))

const until = (condition: () => void): Promise<void> => eventually(condition, { interval: 5 })

async function soleLeader(options: HarnessOptions = {}): Promise<Harness> {
  const one = harness('1', ['1'], options)
  await until(() => {
    expect(one.status?.role).toBe('leader')
    expect(one.applied).toHaveLength(1)
  })
  return one
}

function three(): Map<NodeId, Harness> {
  const all = new Map<NodeId, Harness>()
  for (const id of ['1', '2', '3']) {
    const send = (message: Message): void => {
      all.get(message.to)?.node.receive(message)
    }
    all.set(id, harness(id, ['1', '2', '3'], { send }))
  }
  return all
}

async function leaderOf(all: ReadonlyMap<NodeId, Harness>): Promise<Harness> {
  let leader: Harness | undefined
  await until(() => {
    leader = [...all.values()].find((one) => one.status?.role === 'leader')
    expect(leader).toBeDefined()
  })
  if (leader === undefined) throw new Error('no leader')
  return leader
}

test('three nodes elect a leader, and all nodes apply the leader’s entries in the same order', async () => {
  const all = three()
  const leader = await leaderOf(all)
  leader.node.propose(proposals(1, 500))
  for (const one of all.values()) {
    await until(() => {
      expect(one.applied.filter((entry) => entry.type === 'command')).toHaveLength(500)
    })
  }
  const [first, ...others] = [...all.values()].map((one) => one.applied)
  for (const other of others) expect(other).toEqual(first)
  expect(leader.results.filter((result) => result.ok)).toHaveLength(500)
})

test('proposals in one event loop turn share one write', async () => {
  const one = await soleLeader()
  const before = one.disk.writes.length
  for (const proposal of proposals(1, 64)) one.node.propose([proposal])
  await until(() => {
    expect(one.applied.at(-1)?.index).toBe(3 + 64)
  })
  expect(one.disk.writes.slice(before).map((write) => write.entries.length)).toEqual([64])
})

test('a node that is the only member applies an entry only after its own disk has stored the entry', async () => {
  const one = await soleLeader()
  one.disk.isHeld = true
  one.node.propose(proposals(1, 1))
  await until(() => {
    expect(one.results).toMatchObject([{ ok: true, index: 4 }])
  })
  expect(one.node.status().commit).toBe(3)
  expect(one.applied.at(-1)?.index).toBe(3)
  one.disk.release()
  await until(() => {
    expect(one.applied.at(-1)?.index).toBe(4)
  })
})

test('an append response waits until its write is durable, but a heartbeat response does not', async () => {
  const one = harness('1', ['1', '2', '3'])
  const message = { from: '2', to: '1', term: 2 } as const
  one.node.receive({ ...message, type: 'heartbeatRequest', commit: 0, readSequence: 1 })
  await until(() => {
    expect(one.sent).toMatchObject([{ type: 'heartbeatResponse' }])
  })
  one.disk.isHeld = true
  const entry: Entry = { index: 3, term: 2, timeMs: 1000, type: 'command', data: text('a') }
  const previous = { term: 1, index: 2 }
  one.node.receive({ ...message, type: 'appendRequest', previous, commit: 3, entries: [entry] })
  one.node.receive({ ...message, type: 'heartbeatRequest', commit: 0, readSequence: 2 })
  await until(() => {
    expect(one.sent.at(-1)).toMatchObject({ type: 'heartbeatResponse', readSequence: 2 })
  })
  expect(one.sent.some((sent) => sent.type === 'appendResponse')).toBe(false)
  expect(one.applied).toEqual([])
  one.disk.release()
  await until(() => {
    expect(one.sent.at(-1)).toMatchObject({ type: 'appendResponse', success: true, matchIndex: 3 })
    expect(one.applied).toEqual([entry])
  })
})

test('the log is reset only after the received state is installed, and later writes wait for the reset', async () => {
  let finish: () => void = () => undefined
  const one = harness('1', ['1', '2', '3'], {
    callbacks: { onRestore: () => new Promise((resolve) => (finish = resolve)) },
  })
  const message = { from: '2', to: '1', term: 2 } as const
  const position = { term: 2, index: 50 }
  const configuration = one.node.status().configurationRecord
  const { toBinary } = await import('@bufbuild/protobuf')
  const { ConfigurationSchema } = await import('../../proto/gen/membership_pb.ts')
  const bytes = toBinary(ConfigurationSchema, configuration)
  one.node.receive({ ...message, type: 'snapshot', position, configuration: bytes })
  const entry: Entry = { index: 51, term: 2, timeMs: 1000, type: 'command', data: text('a') }
  one.node.receive({
    ...message,
    type: 'appendRequest',
    previous: position,
    commit: 51,
    entries: [entry],
  })
  await until(() => {
    expect(one.node.status().last.index).toBe(51)
  })
  expect(one.disk.calls).toEqual(['write'])
  expect(one.applied).toEqual([])
  finish()
  await until(() => {
    expect(one.disk.calls).toEqual(['write', 'reset 50', 'write'])
    expect(one.applied).toEqual([entry])
    expect(one.sent.at(-1)).toMatchObject({ type: 'appendResponse', success: true, matchIndex: 51 })
  })
})

test('a node with too many unapplied entries delivers no further ones until some are applied, and refuses proposals as OVERLOADED', async () => {
  const one = await soleLeader({ core: { applyLagEntriesMax: 10 }, isApplying: false })
  one.node.propose(proposals(1, 25))
  await until(() => {
    expect(one.applied.at(-1)?.index).toBe(12)
    expect(one.node.status().commit).toBe(28)
  })
  one.node.propose(proposals(100, 1))
  await until(() => {
    expect(one.results.at(-1)).toEqual({ id: 100, ok: false, code: 'OVERLOADED' })
  })
  one.node.applied(12, 0)
  await until(() => {
    expect(one.applied.at(-1)?.index).toBe(22)
  })
})

test('proposals above the limit for one event loop turn are refused and not queued', async () => {
  const one = await soleLeader({ limits: { inboxProposalsMax: 3 } })
  one.node.propose(proposals(1, 5))
  await until(() => {
    expect(one.results).toHaveLength(5)
  })
  expect(one.results.filter((result) => !result.ok).map((result) => result.id)).toEqual([4, 5])
})

test('messages above the limit of the inbox are discarded, as if the network had lost them', async () => {
  const one = harness('1', ['1', '2', '3'], { limits: { inboxMessagesMax: 2 } })
  for (let readSequence = 1; readSequence <= 5; readSequence += 1) {
    const body = { type: 'heartbeatRequest', commit: 0, readSequence } as const
    one.node.receive({ ...body, from: '2', to: '1', term: 2 })
  }
  await until(() => {
    expect(one.sent.length).toBeGreaterThan(0)
  })
  expect(one.sent.map((sent) => 'readSequence' in sent && sent.readSequence)).toEqual([1, 2])
})

test('the leader answers reads, and other nodes refuse them', async () => {
  const all = three()
  const leader = await leaderOf(all)
  const results = await Promise.all([leader.node.readIndex(), leader.node.readIndex()])
  for (const result of results) expect(result).toMatchObject({ ok: true })
  const follower = [...all.values()].find((one) => one !== leader)
  expect(await follower?.node.readIndex()).toMatchObject({ ok: false, code: 'NOT_LEADER' })
})

test('a leadership transfer moves leadership, and resolves to false at a node that does not lead and for an unknown target', async () => {
  const all = three()
  const leader = await leaderOf(all)
  await until(() => {
    expect(leader.node.status().peers.every((peer) => peer.matchIndex === 3)).toBe(true)
  })
  expect(await leader.node.transferLeadership(null)).toBe(true)
  const next = await leaderOf(all)
  expect(next).not.toBe(leader)
  expect(await leader.node.transferLeadership(null)).toBe(false)
  expect(await next.node.transferLeadership('nobody')).toBe(false)
})

test('a configuration change resolves once it is logged, and the status shows when the change is complete', async () => {
  const all = three()
  const leader = await leaderOf(all)
  const keep = [leader.node.status().id, '1', '2', '3'].slice(0, 3)
  const voters = [...new Set(keep)].slice(0, 2)
  await until(() => {
    expect(leader.node.status().commit).toBeGreaterThanOrEqual(3)
  })
  const result = await leader.node.changeConfiguration(configurationOf({ voters }))
  expect(result.ok).toBe(true)
  await until(() => {
    expect(leader.status).toMatchObject({
      isConfigurationCommitted: true,
      configuration: { voters: [...voters].sort(), outgoingVoters: [] },
    })
  })
})

/** Virtual time, with the timer and turns that a node has scheduled. */
class ManualLoop {
  nowMs = 0
  firings = 0
  #timer: { readonly dueMs: number; readonly task: () => void } | null = null
  readonly #turns: (() => void)[] = []

  readonly clock = { nowMs: () => this.nowMs, monotonicMs: () => this.nowMs }
  readonly scheduler: Scheduler = {
    soon: (task) => this.#turns.push(task),
    after: (delayMs, task) => {
      const timer = { dueMs: this.nowMs + delayMs, task }
      this.#timer = timer
      return () => {
        if (this.#timer === timer) this.#timer = null
      }
    },
  }

  turn(): void {
    for (let task = this.#turns.shift(); task !== undefined; task = this.#turns.shift()) task()
  }

  /** Advances time and runs every timer and turn that becomes due. */
  pass(ms: number): void {
    const endMs = this.nowMs + ms
    for (let timer = this.#timer; timer !== null && timer.dueMs <= endMs; timer = this.#timer) {
      this.nowMs = timer.dueMs
      this.#fire()
    }
    this.nowMs = endMs
  }

  /** Advances time while nothing runs, as in a stalled process. */
  stall(ms: number): void {
    this.nowMs += ms
    if (this.#timer !== null && this.#timer.dueMs <= this.nowMs) this.#fire()
  }

  #fire(): void {
    this.firings += 1
    const timer = this.#timer
    this.#timer = null
    timer?.task()
    this.turn()
  }
}

/** Node 1 as a follower of node 2 in term 2 that has just received a message from its leader. */
function follower(): {
  readonly loop: ManualLoop
  readonly one: Harness
  readonly hear: () => void
} {
  const loop = new ManualLoop()
  const one = harness('1', ['1', '2', '3'], loop)
  const body = { type: 'heartbeatRequest', commit: 0, readSequence: 1 } as const
  const hear = (): void => {
    one.node.receive({ ...body, from: '2', to: '1', term: 2 })
    loop.turn()
  }
  hear()
  expect(one.node.status()).toMatchObject({ leader: '2', leaderSilenceTicks: 0 })
  return { loop, one, hear }
}

test('at most two ticks run after a stall, not all those that were missed', () => {
  const { loop, one } = follower()
  loop.stall(1000)
  expect(one.node.status()).toMatchObject({ role: 'follower', leaderSilenceTicks: 2 })
})

test('a follower that receives heartbeats wakes up only for periodic checks, and still counts every tick', () => {
  const { loop, one, hear } = follower()
  loop.pass(50)
  hear()
  const before = loop.firings
  for (let heartbeat = 0; heartbeat < 20; heartbeat += 1) {
    loop.pass(20)
    hear()
    expect(one.node.status()).toMatchObject({ role: 'follower', leaderSilenceTicks: 0 })
  }
  // The timer fires at every fifth of the forty ticks.
  expect(loop.firings - before).toBe(8)
  loop.pass(30)
  one.node.applied(2, 0)
  loop.turn()
  expect(one.node.status().leaderSilenceTicks).toBe(3)
})

test('the election timeout has the same number of ticks, no matter how often the node wakes up', () => {
  const ticksToCampaign = (stepMs: number): number => {
    const { loop, one } = follower()
    const startMs = loop.nowMs
    while (one.node.status().role === 'follower') {
      loop.pass(stepMs)
      one.node.applied(2, 0)
      loop.turn()
    }
    return Math.floor((loop.nowMs - startMs) / 10)
  }
  const { electionTimeoutTicks, electionTimeoutTicksMax } = defaultCoreOptions
  const ticks = [1, 3, 10].map(ticksToCampaign)
  expect(ticks).toEqual([ticks[0], ticks[0], ticks[0]])
  expect(ticks[0]).toBeGreaterThanOrEqual(electionTimeoutTicks)
  expect(ticks[0]).toBeLessThanOrEqual(electionTimeoutTicksMax)
})

test.for<[string, (one: Harness) => void]>([
  [
    'a disk that fails',
    (one) => {
      one.disk.onFailed(new Error('EIO'))
    },
  ],
  [
    'a callback that throws',
    (one) => {
      one.node.propose(proposals(1, 1))
    },
  ],
])('%s stops the node permanently, and is reported once', async ([, provoke]) => {
  let isBroken = false
  const one = await soleLeader({
    callbacks: {
      onProposals: () => {
        if (isBroken) throw new Error('broken')
      },
    },
  })
  isBroken = true
  provoke(one)
  provoke(one)
  await until(() => {
    expect(one.fatal).toHaveLength(1)
  })
  expect(await one.node.readIndex()).toMatchObject({ ok: false })
  const sent = one.sent.length
  one.node.receive({
    type: 'heartbeatRequest',
    commit: 0,
    readSequence: 1,
    from: '2',
    to: '1',
    term: 9,
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(one.sent).toHaveLength(sent)
})
