import { toBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import { ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import type { Entry, Message, MessageBody, NodeId, Term } from '../../src/raft/types.ts'
import { configurationOf, text } from './members.ts'
import { ScriptCluster } from './script-cluster.ts'

// Rules of the Raft paper (Ongaro & Ousterhout 2014) and of Ongaro's dissertation, one test per
// rule.

const three = { voters: ['1', '2', '3'] }

/**
 * Delivers `body` from `from` to node 1, including the disk writes, and returns the answers of node
 * 1.
 */
function ask(cluster: ScriptCluster, from: NodeId, term: Term, body: MessageBody): Message[] {
  cluster.flights = []
  cluster.receive({ ...body, from, to: '1', term } as Message)
  return answers(cluster)
}

function answers(cluster: ScriptCluster): Message[] {
  cluster.settle(['1'])
  return cluster.flights.splice(0)
}

const command = (index: number, term: Term, body = `${term}.${index}`): Entry => ({
  index,
  term,
  timeMs: 1000,
  type: 'command',
  data: text(body),
})

const append = (index: number, term: Term, entries: readonly Entry[], commit = 0): MessageBody => ({
  type: 'appendRequest',
  previous: { index, term },
  commit,
  entries,
})

const requestVote = (term: Term, index: number): MessageBody => ({
  type: 'voteRequest',
  pre: false,
  last: { term, index },
  transfer: false,
})

function restarted(log: Parameters<ScriptCluster['setLog']>[1], list = three): ScriptCluster {
  const cluster = new ScriptCluster(list)
  cluster.setLog('1', log)
  cluster.restart('1')
  return cluster
}

const termsOf = (cluster: ScriptCluster, id: NodeId): Term[] =>
  cluster
    .core(id)
    .entries(cluster.core(id).fullStatus.base.index + 1, Infinity)
    .map((entry) => entry.term)

describe('elections (Raft paper, 5.2 and 5.4.1)', () => {
  test('a node votes for one candidate per term, even after a crash', () => {
    const cluster = restarted({ term: 1, terms: [] })
    const [first] = ask(cluster, '2', 5, requestVote(1, 2))
    expect(first).toMatchObject({ type: 'voteResponse', granted: true, term: 5 })
    cluster.crash('1')
    cluster.restart('1')
    const [other] = ask(cluster, '3', 5, requestVote(9, 99))
    expect(other).toMatchObject({ granted: false, term: 5 })
    const [again] = ask(cluster, '2', 5, requestVote(1, 2))
    expect(again).toMatchObject({ granted: true, term: 5 })
  })

  test('a vote in a new term is stored on disk together with this term', () => {
    const cluster = restarted({ term: 4, vote: '2', terms: [] })
    ask(cluster, '3', 5, requestVote(1, 2))
    expect(cluster.platter('1').hardState).toEqual({ term: 5, votedFor: '3' })
  })

  test.for<[string, Term, number, boolean]>([
    ['a later last term wins over a longer log', 4, 3, true],
    ['an earlier last term loses, however long the log', 2, 99, false],
    ['with equal last terms the longer log wins', 3, 6, true],
    ['equal logs are up to date', 3, 5, true],
    ['with equal last terms the shorter log loses', 3, 4, false],
  ])(
    'a vote depends on how up to date the log of the candidate is: %s',
    ([, lastTerm, lastIndex, granted]) => {
      const cluster = restarted({ term: 3, terms: [2, 3, 3] })
      expect(ask(cluster, '2', 7, requestVote(lastTerm, lastIndex))).toMatchObject([{ granted }])
    },
  )

  test('a candidate that receives a message from the leader of the candidate’s term follows this leader', () => {
    const cluster = new ScriptCluster(three)
    cluster.campaign('1')
    ask(cluster, '2', 1, { type: 'voteResponse', pre: true, granted: true })
    cluster.receive({ type: 'voteResponse', pre: true, granted: true, from: '2', to: '1', term: 2 })
    cluster.settle(['1'])
    expect(cluster.core('1').status).toMatchObject({ role: 'candidate', term: 2 })
    ask(cluster, '3', 2, { type: 'heartbeatRequest', commit: 0, readSequence: 0 })
    expect(cluster.core('1').status).toMatchObject({ role: 'follower', leader: '3' })
  })

  test('votes from nodes that are not voters are not counted', () => {
    const cluster = new ScriptCluster({ voters: ['1', '2', '3'], learners: ['4', '5'] })
    cluster.campaign('1')
    for (const from of ['4', '5']) {
      cluster.receive({ type: 'voteResponse', pre: true, granted: true, from, to: '1', term: 2 })
    }
    expect(cluster.core('1').status.role).toBe('preCandidate')
  })

  test('a learner never campaigns', () => {
    const cluster = new ScriptCluster({ voters: ['1', '2'], learners: ['3'] })
    cluster.tick('3', 500)
    expect(cluster.core('3').status.role).toBe('follower')
    expect(cluster.flights).toEqual([])
  })

  test('a node that receives heartbeats from a leader refuses to vote and keeps its term, except in a leadership transfer', () => {
    const cluster = new ScriptCluster(three)
    cluster.elect('2')
    expect(ask(cluster, '3', 9, requestVote(9, 99))).toEqual([])
    expect(cluster.core('1').status.term).toBe(2)
    const transfer = { ...requestVote(9, 99), transfer: true } as MessageBody
    expect(ask(cluster, '3', 9, transfer)).toMatchObject([{ granted: true, term: 9 }])
  })

  test('a pre-vote does not raise the term and does not use up the vote', () => {
    const cluster = restarted({ term: 3, terms: [] })
    const pre = { ...requestVote(9, 99), pre: true } as MessageBody
    expect(ask(cluster, '2', 4, pre)).toMatchObject([{ granted: true, pre: true, term: 4 }])
    expect(ask(cluster, '3', 4, pre)).toMatchObject([{ granted: true, pre: true, term: 4 }])
    expect(cluster.core('1').fullStatus).toMatchObject({ term: 3, votedFor: null })
  })

  test('a TimeoutNow message from a node other than the leader is ignored', () => {
    const cluster = new ScriptCluster(three)
    cluster.elect('2')
    ask(cluster, '3', 2, { type: 'timeoutNow' })
    expect(cluster.core('1').status).toMatchObject({ role: 'follower', term: 2 })
  })
})

describe('replication (Raft paper, 5.3)', () => {
  test('an append request whose previous entry is missing or has another term is rejected with a hint', () => {
    const cluster = restarted({ term: 3, terms: [2, 2, 3] })
    expect(ask(cluster, '2', 5, append(9, 4, []))).toMatchObject([
      { success: false, rejectedIndex: 9, hint: { index: 5, term: 3 } },
    ])
    expect(ask(cluster, '2', 5, append(5, 2, []))).toMatchObject([
      { success: false, rejectedIndex: 5, hint: { index: 4, term: 2 } },
    ])
  })

  test('a conflicting entry is replaced together with all entries after it', () => {
    const cluster = restarted({ term: 3, terms: [2, 2, 2, 3] })
    ask(cluster, '2', 5, append(3, 2, [command(4, 4)]))
    expect(termsOf(cluster, '1')).toEqual([1, 1, 2, 4])
    expect(cluster.platter('1').entries.map((entry) => entry.term)).toEqual([1, 1, 2, 4])
  })

  test('a late, shorter append request truncates nothing', () => {
    const cluster = restarted({ term: 1, terms: [] })
    ask(cluster, '2', 5, append(2, 1, [command(3, 5), command(4, 5)]))
    expect(ask(cluster, '2', 5, append(2, 1, [command(3, 5)]))).toMatchObject([
      { success: true, matchIndex: 3 },
    ])
    expect(termsOf(cluster, '1')).toEqual([1, 1, 5, 5])
  })

  test('a follower commits only entries that are known to match the leader’s log', () => {
    const cluster = restarted({ term: 3, terms: [3, 3, 3] })
    ask(cluster, '2', 5, append(2, 1, [command(3, 5)], 5))
    expect(cluster.core('1').fullStatus.commit).toBe(3)
    const other = restarted({ term: 3, terms: [3, 3, 3] })
    ask(other, '2', 5, { type: 'heartbeatRequest', commit: 5, readSequence: 0 })
    expect(other.core('1').fullStatus.commit).toBe(2)
  })

  test('a commit index beyond the log of a new learner has no effect', () => {
    const cluster = new ScriptCluster({ voters: ['2', '3'], learners: ['4'] })
    cluster.add('1')
    ask(cluster, '2', 5, { type: 'heartbeatRequest', commit: 900, readSequence: 0 })
    expect(cluster.core('1').fullStatus).toMatchObject({ commit: 0, term: 5 })
  })

  test('an append request that begins before the compaction point is applied from its first new entry', () => {
    const cluster = restarted({ term: 1, terms: [] })
    ask(cluster, '2', 5, append(2, 1, [command(3, 5), command(4, 5)], 4))
    cluster.step('1', { type: 'compact', position: { term: 5, index: 4 } })
    const request = append(2, 1, [command(3, 5), command(4, 5), command(5, 5)], 5)
    expect(ask(cluster, '2', 5, request)).toMatchObject([{ success: true, matchIndex: 5 }])
    expect(cluster.appliedBy('1').map((entry) => entry.index)).toEqual([3, 4, 5])
  })

  test('an append request whose entries are not consecutive is discarded', () => {
    const cluster = restarted({ term: 1, terms: [] })
    expect(ask(cluster, '2', 5, append(2, 1, [command(4, 5)]))).toEqual([])
    expect(ask(cluster, '2', 5, append(2, 1, [command(3, 6)]))).toEqual([])
    expect(termsOf(cluster, '1')).toEqual([1, 1])
  })

  test('repeated, late and reordered responses never lower a peer’s match index', () => {
    const cluster = new ScriptCluster(three)
    cluster.elect('1')
    cluster.propose('1', 'a', 'b')
    cluster.settle()
    const peer = () => cluster.core('1').fullStatus.peers.find((one) => one.id === '2')
    expect(peer()).toMatchObject({ matchIndex: 5, nextIndex: 6 })
    const hint = { term: 1, index: 2 }
    const late = { type: 'appendResponse', matchIndex: 3, hint, rejectedIndex: 4 } as const
    ask(cluster, '2', 2, { ...late, success: true })
    ask(cluster, '2', 2, { ...late, success: false })
    expect(peer()).toMatchObject({ matchIndex: 5, nextIndex: 6, state: 'replicate' })
  })

  test('a lost append request is detected and resent', () => {
    const cluster = new ScriptCluster(three)
    cluster.elect('1')
    cluster.propose('1', 'lost on the way')
    cluster.flights = []
    for (let round = 0; round < 3; round += 1) {
      cluster.tick('1', 2)
      cluster.settle()
    }
    expect(termsOf(cluster, '3')).toEqual([1, 1, 2, 2])
    expect(cluster.core('1').fullStatus.commit).toBe(4)
  })

  test('a late write report does not make entries durable that replaced the written entries', () => {
    const cluster = restarted({ term: 1, terms: [] })
    cluster.holdDisk('1', true)
    cluster.receive({
      ...append(2, 1, [command(3, 2, 'old')]),
      from: '2',
      to: '1',
      term: 2,
    } as Message)
    cluster.receive({
      ...append(2, 1, [command(3, 3, 'new')]),
      from: '3',
      to: '1',
      term: 3,
    } as Message)
    cluster.flights = []
    cluster.holdDisk('1', false)
    const matches = answers(cluster).filter((one) => one.type === 'appendResponse' && one.success)
    expect(matches).toMatchObject([{ term: 2 }, { term: 3, matchIndex: 3 }])
    expect(cluster.platter('1').entries.at(-1)?.term).toBe(3)
  })
})

describe('commit and leaders (Raft paper, 5.4.2)', () => {
  test('a sole voter acknowledges only entries that are on its own disk', () => {
    const cluster = new ScriptCluster({ voters: ['1'] })
    cluster.tick('1')
    cluster.settle()
    cluster.holdDisk('1', true)
    cluster.propose('1', 'a')
    cluster.settle()
    expect(cluster.core('1').fullStatus.commit).toBe(3)
    cluster.holdDisk('1', false)
    cluster.settle()
    expect(cluster.appliedBy('1').at(-1)?.index).toBe(4)
  })

  test('the leader counts its own disk like those of others: two of three are a quorum only when both have written', () => {
    const cluster = new ScriptCluster(three)
    cluster.elect('1')
    cluster.cut('1', '3')
    cluster.holdDisk('1', true)
    cluster.propose('1', 'a')
    cluster.settle()
    expect(cluster.core('1').fullStatus).toMatchObject({
      commit: 3,
      peers: [{ matchIndex: 4 }, {}],
    })
    cluster.holdDisk('1', false)
    cluster.settle()
    expect(cluster.core('1').fullStatus.commit).toBe(4)
  })

  test('a sole voter that restarts applies those entries that its state does not contain yet', () => {
    const cluster = new ScriptCluster({ voters: ['1'] })
    cluster.setLog('1', { term: 1, terms: [1, 1] })
    cluster.restart('1')
    cluster.tick('1')
    cluster.settle()
    expect(cluster.appliedBy('1').map((entry) => entry.index)).toEqual([3, 4, 5])
  })

  test('the number of uncommitted bytes is limited: at the limit a proposal is refused before it is logged', () => {
    const cluster = new ScriptCluster(three, { uncommittedBytesMax: 200 })
    cluster.elect('1')
    cluster.events = []
    cluster.propose('1', 'x'.repeat(100), 'x'.repeat(100))
    expect(cluster.events).toEqual(['1 accepts 2/4', '1 refuses OVERLOADED'])
    cluster.settle()
    cluster.propose('1', 'x'.repeat(100))
    expect(cluster.events.at(-1)).toBe('1 accepts 2/5')
  })

  test('a proposal larger than the log format allows is refused with TOO_LARGE', () => {
    const cluster = new ScriptCluster(three)
    cluster.elect('1')
    cluster.propose('1', 'x'.repeat(8 * 1024 * 1024 + 1))
    expect(cluster.events.at(-1)).toBe('1 refuses TOO_LARGE')
  })

  test('a leadership transfer ends when the leader steps down: if the same node is elected again, it accepts proposals', () => {
    const cluster = new ScriptCluster(three)
    cluster.elect('1')
    for (const other of ['2', '3']) {
      cluster.cut('1', other)
      cluster.cut(other, '1')
    }
    cluster.step('1', { type: 'transfer', target: '2' })
    cluster.tick('1', 6)
    cluster.step('1', { type: 'transfer', target: '3' })
    cluster.tick('1', 7)
    expect(cluster.core('1').status.role).toBe('follower')
    cluster.heal()
    cluster.tick('1', 1)
    cluster.elect('1')
    cluster.events = []
    cluster.propose('1', 'a')
    expect(cluster.events).toEqual(['1 accepts 3/5'])
  })

  test('a leader whose disk hangs transfers leadership to a node whose disk works', () => {
    const cluster = new ScriptCluster(three, { diskStallTicks: 6 })
    cluster.elect('1')
    cluster.holdDisk('1', true)
    cluster.propose('1', 'a')
    for (let round = 0; round < 4; round += 1) {
      cluster.tick('1', 2)
      cluster.settle()
    }
    expect(['2', '3'].map((id) => cluster.core(id).status.role)).toContain('leader')
  })
})

describe('log time in the Raft core', () => {
  const stamps = (cluster: ScriptCluster): number[] =>
    cluster
      .core('1')
      .entries(3, Infinity)
      .map((entry) => entry.timeMs)

  test('a leader whose clock is far ahead of the others writes timestamps that are ahead by at most the allowed skew', () => {
    const cluster = new ScriptCluster(three)
    cluster.elect('1')
    const honestMs = 1_700_000_000_000
    const aheadMs = honestMs + 3_600_000
    for (const from of ['2', '3']) {
      const clockMs = honestMs
      const message = {
        type: 'heartbeatResponse',
        readSequence: 0,
        clockMs,
        from,
        to: '1',
        term: 2,
      }
      cluster.step('1', { type: 'message', message: message as Message, nowMs: aheadMs })
    }
    const proposals = [{ id: 1, data: text('a') }]
    cluster.step('1', { type: 'propose', proposals, nowMs: aheadMs })
    expect(stamps(cluster).at(-1)).toBe(honestMs + 2_000)
  })

  test('a clock that is set back does not decrease log time', () => {
    const cluster = new ScriptCluster(three)
    cluster.elect('1')
    cluster.propose('1', 'a')
    const proposals = [{ id: 9, data: text('b') }]
    cluster.step('1', { type: 'propose', proposals, nowMs: 5 })
    const [, a = 0, b = 0] = stamps(cluster)
    expect(b).toBe(a)
  })

  test('until the leader knows the clock of a peer, proposals wait, and keep their order', () => {
    const cluster = new ScriptCluster(three)
    cluster.campaign('1')
    cluster.deliver('1', '2')
    cluster.deliver('2', '1')
    cluster.settle(['1'])
    cluster.deliver('1', '2')
    cluster.settle(['2'])
    cluster.deliver('2', '1')
    expect(cluster.core('1').status.role).toBe('leader')
    cluster.propose('1', 'a')
    cluster.propose('1', 'b')
    expect(cluster.events).toEqual([])
    cluster.settle()
    expect(cluster.events).toEqual(['1 accepts 2/4', '1 accepts 2/5'])
    expect(stamps(cluster)).toEqual([1000, 1_700_000_000_000, 1_700_000_000_000])
  })
})

describe('membership (Raft paper, 6)', () => {
  test('a configuration change is refused before the leader has committed an entry in its term', () => {
    const cluster = new ScriptCluster({ voters: ['1', '2', '3'], learners: ['4'] })
    cluster.holdDisk('3', true)
    cluster.cut('1', '3')
    cluster.campaign('1')
    cluster.deliver('1', '2')
    cluster.deliver('2', '1')
    cluster.settle(['1'])
    cluster.deliver('1', '2')
    cluster.settle(['2'])
    cluster.deliver('2', '1')
    cluster.change('1', { voters: ['1', '2'] })
    expect(cluster.events).toEqual(['1 refuses CHANGE_IN_PROGRESS'])
  })

  test('a configuration change is refused until the previous change is fully committed', () => {
    const cluster = new ScriptCluster(three)
    cluster.elect('1')
    cluster.change('1', { voters: ['1', '2'] })
    cluster.settle(['1'])
    cluster.deliver('1', '2')
    cluster.settle(['2'])
    cluster.deliver('2', '1')
    // The joint configuration is committed and left, but no other disk has the entry that leaves it
    // yet.
    const { configuration, isConfigurationCommitted } = cluster.core('1').status
    expect(configuration).toEqual({ voters: ['1', '2'], outgoingVoters: [], learners: [] })
    expect(isConfigurationCommitted).toBe(false)
    cluster.events = []
    cluster.change('1', { voters: ['1'] })
    cluster.settle()
    cluster.change('1', { voters: ['1'] })
    expect(cluster.events).toEqual(['1 refuses CHANGE_IN_PROGRESS', '1 accepts 2/6'])
  })

  test('a configuration change computed from an outdated configuration is refused', () => {
    const cluster = new ScriptCluster({ voters: ['1', '2', '3'], learners: ['4'] })
    cluster.elect('1')
    const { configurationIndex: before } = cluster.core('1').status
    cluster.change('1', { voters: ['1', '2', '3'] }, before)
    cluster.settle()
    const { configurationIndex: after } = cluster.core('1').status
    cluster.events = []
    // This configuration is derived from one in which 4 was still a member.
    cluster.change('1', { voters: ['1', '2', '3'], learners: ['4', '5'] }, before)
    expect(cluster.core('1').status.configuration.learners).toEqual([])
    cluster.change('1', { voters: ['1', '2', '3'], learners: ['5'] }, after)
    expect(cluster.events[0]).toBe('1 refuses CHANGE_IN_PROGRESS')
    expect(cluster.events[1]).toMatch(/^1 accepts/)
  })

  test('a member that returns with another disk must first become a learner, and its replication starts from an empty log', () => {
    const cluster = new ScriptCluster(three)
    cluster.elect('1')
    const stores = new Map([['3', 2]])
    cluster.events = []
    cluster.change('1', { voters: ['1', '2', '3'], stores })
    cluster.cut('1', '3')
    cluster.cut('3', '1')
    cluster.change('1', { voters: ['1', '2'], learners: ['3'], stores })
    expect(cluster.events).toEqual(['1 refuses NOT_CAUGHT_UP', '1 accepts 2/4'])
    const peer = cluster.core('1').fullStatus.peers.find((one) => one.id === '3')
    expect(peer).toMatchObject({ matchIndex: 0, state: 'probe' })
  })

  test('a node with a wiped disk may not vote, because it does not know its configuration', () => {
    const cluster = new ScriptCluster(three)
    cluster.wipe('1', 1)
    const [vote] = ask(cluster, '2', 2, requestVote(2, 9))
    expect(vote).toMatchObject({ type: 'voteResponse', granted: false })
    for (let at = 0; at < 60; at += 1) cluster.tick('1')
    expect(cluster.core('1').status.role).toBe('follower')
  })

  test('acknowledgments of an old disk do not count for the disk that replaced it', () => {
    const cluster = new ScriptCluster(three)
    cluster.elect('1')
    const stores = new Map([['3', 2]])
    cluster.cut('1', '3')
    cluster.cut('3', '1')
    cluster.change('1', { voters: ['1', '2'], learners: ['3'], stores })
    const { index } = cluster.core('1').fullStatus.last
    const hint = { term: 0, index: 0 }
    const told = { type: 'appendResponse', success: true, rejectedIndex: 0, hint } as const
    const match = (): unknown =>
      cluster.core('1').fullStatus.peers.find(({ id }) => id === '3')?.matchIndex
    const late = { ...told, matchIndex: index - 1, from: '3', to: '1', term: 2 } as const
    cluster.receive(late, 1)
    expect(match()).toBe(0)
    cluster.receive(late, 2)
    expect(match()).toBe(index - 1)
  })

  test('acknowledgments of a new disk do not count before the leader’s configuration contains that disk', () => {
    const cluster = new ScriptCluster(three)
    cluster.elect('1')
    cluster.cut('1', '2')
    cluster.cut('1', '3')
    cluster.propose('1', 'x')
    cluster.settle(['1'])
    const { commit, last } = cluster.core('1').fullStatus
    const hint = { term: 0, index: 0 }
    const told = { type: 'appendResponse', success: true, rejectedIndex: 0, hint } as const
    const message = { ...told, matchIndex: last.index, from: '3', to: '1', term: 2 } as const
    cluster.receive(message, 2)
    expect(cluster.core('1').fullStatus.commit).toBe(commit)
    cluster.receive(message, 1)
    expect(cluster.core('1').fullStatus.commit).toBe(last.index)
  })

  test.for<[string, readonly NodeId[], readonly NodeId[]]>([
    ['another voter leaves', ['1'], ['3']],
    ['another voter joins', ['1', '2', '4'], ['3']],
    ['another disk is replaced', ['1'], ['2', '3']],
  ])(
    'a change that replaces the disk of a voter is refused if in the same change %s',
    ([, voters, learners]) => {
      const cluster = new ScriptCluster({ ...three, learners: ['4'] })
      cluster.elect('1')
      const stores = new Map(learners.map((id) => [id, 2]))
      cluster.events = []
      cluster.change('1', { voters, learners, stores })
      expect(cluster.events).toEqual(['1 refuses INVALID_CONFIGURATION'])
    },
  )

  test.for<[string, readonly NodeId[]]>([
    ['no voters', []],
    ['a member named twice', ['1', '1']],
  ])('a configuration with %s is refused', ([, voters]) => {
    const cluster = new ScriptCluster(three)
    cluster.elect('1')
    cluster.events = []
    cluster.change('1', { voters })
    expect(cluster.events).toEqual(['1 refuses INVALID_CONFIGURATION'])
  })

  test('a new leader completes a joint configuration that it inherited', () => {
    const cluster = new ScriptCluster({ voters: ['1', '2', '3'], learners: ['4'] })
    cluster.elect('1')
    cluster.change('1', { voters: ['1', '2', '3', '4'] })
    for (const to of ['2', '3', '4']) cluster.deliver('1', to)
    for (const id of ['2', '3', '4']) cluster.settle([id])
    cluster.crash('1')
    cluster.elect('2')
    expect(cluster.core('2').status.configuration).toEqual({
      voters: ['1', '2', '3', '4'],
      outgoingVoters: [],
      learners: [],
    })
  })

  test('a response with a higher term from a node that is not a member does not depose the leader', () => {
    const cluster = new ScriptCluster(three)
    cluster.elect('1')
    const hint = { term: 0, index: 0 }
    const body = { type: 'appendResponse', success: false, matchIndex: 0, hint, rejectedIndex: 0 }
    ask(cluster, '9', 99, body as MessageBody)
    expect(cluster.core('1').status).toMatchObject({ role: 'leader', term: 2 })
  })
})

describe('snapshots (Raft paper, 7)', () => {
  const configuration = toBinary(ConfigurationSchema, configurationOf(three))
  const snapshot = (index: number, term: Term): MessageBody => ({
    type: 'snapshot',
    position: { index, term },
    configuration,
  })

  test('a snapshot that contains only committed entries of the node is ignored', () => {
    const cluster = restarted({ term: 1, terms: [] })
    ask(cluster, '2', 5, append(2, 1, [command(3, 5), command(4, 5)], 4))
    cluster.step('1', { type: 'compact', position: { term: 5, index: 4 } })
    expect(ask(cluster, '2', 5, snapshot(3, 5))).toMatchObject([{ success: true, matchIndex: 4 }])
    expect(cluster.events).toEqual([])
  })

  test('a snapshot whose last entry is already in the log does not replace the log', () => {
    const cluster = restarted({ term: 1, terms: [] })
    ask(cluster, '2', 5, append(2, 1, [command(3, 5), command(4, 5)]))
    ask(cluster, '2', 5, snapshot(3, 5))
    expect(termsOf(cluster, '1')).toEqual([1, 1, 5, 5])
    expect(cluster.core('1').fullStatus.commit).toBe(3)
  })

  test('an uncommitted configuration is discarded with the log that a snapshot replaces', () => {
    const cluster = new ScriptCluster({ voters: ['1', '2', '3'], learners: ['4'] })
    cluster.elect('1')
    cluster.change('1', { voters: ['1', '2', '4'] })
    ask(cluster, '2', 5, snapshot(9, 5))
    expect(cluster.core('1').status).toMatchObject({
      configurationIndex: 9,
      configuration: { voters: ['1', '2', '3'], outgoingVoters: [] },
    })
  })

  test('a snapshot is acknowledged only after the log on disk was replaced', () => {
    const cluster = restarted({ term: 1, terms: [] })
    cluster.holdDisk('1', true)
    expect(ask(cluster, '2', 5, snapshot(9, 4))).toEqual([])
    cluster.holdDisk('1', false)
    expect(answers(cluster)).toMatchObject([{ success: true, matchIndex: 9, term: 5 }])
    expect(cluster.platter('1').base).toEqual({ index: 9, term: 4 })
  })

  test('a node does not report its disk as complete while a snapshot replaces the log on disk', () => {
    const cluster = restarted({ term: 5, terms: [1, 1] })
    expect(cluster.core('1').fullStatus.isOnDiskWhole).toBe(true)
    cluster.holdDisk('1', true)
    ask(cluster, '2', 5, snapshot(9, 4))
    expect(cluster.core('1').fullStatus.isOnDiskWhole).toBe(false)
    cluster.holdDisk('1', false)
    cluster.settle(['1'])
    expect(cluster.core('1').fullStatus).toMatchObject({
      isOnDiskWhole: true,
      onDisk: { term: 5, last: { index: 9, term: 4 } },
    })
  })

  test('a restart between the installation of a snapshot and the replacement of the log completes the replacement', () => {
    const cluster = restarted({ term: 1, terms: [] })
    cluster.holdDisk('1', true)
    ask(cluster, '2', 5, snapshot(9, 4))
    cluster.crash('1')
    expect(cluster.platter('1').base.index).toBe(0)
    cluster.holdDisk('1', false)
    cluster.restart('1')
    cluster.settle(['1'])
    expect(cluster.core('1').fullStatus).toMatchObject({ commit: 9, base: { index: 9, term: 4 } })
    expect(cluster.platter('1').base).toEqual({ index: 9, term: 4 })
  })
})

describe('reads (Raft dissertation, 6.4)', () => {
  test('a response to a heartbeat that was sent before the read began does not confirm the read', () => {
    const cluster = new ScriptCluster(three)
    cluster.elect('1')
    cluster.tick('1', 2)
    const early = cluster.flights.splice(0)
    cluster.step('1', { type: 'read', id: 7 })
    cluster.flights = early
    cluster.settle()
    expect(cluster.events).toEqual([])
    cluster.tick('1', 2)
    cluster.settle()
    expect(cluster.events).toEqual(['1 reads at 3'])
  })

  test('reads that arrive while a heartbeat round is in progress start no further round immediately, and all are answered', () => {
    const cluster = new ScriptCluster(three)
    cluster.elect('1')
    cluster.flights = []
    for (let id = 1; id <= 5; id += 1) cluster.step('1', { type: 'read', id })
    const rounds = new Set(
      cluster.flights.map((one) => (one.type === 'heartbeatRequest' ? one.readSequence : 0)),
    )
    expect([...rounds]).toEqual([1])
    cluster.settle()
    expect(cluster.events).toHaveLength(5)
  })

  test('reads are refused if too many are already waiting', () => {
    const cluster = new ScriptCluster(three, { readsMax: 2 })
    cluster.elect('1')
    for (let id = 1; id <= 3; id += 1) cluster.step('1', { type: 'read', id })
    expect(cluster.events).toEqual(['1 refuses the read OVERLOADED'])
  })
})
