import { expect, test } from 'vitest'
import { seededRandom } from '../../src/lib/random.ts'
import { electionOutcome, majorityValue, quorumValue } from '../../src/raft/quorum.ts'
import type { Configuration, NodeId } from '../../src/raft/types.ts'
import { isMajority, isQuorum } from './slow-quorum.ts'

// Compares the quorum arithmetic with a slow implementation that only counts voters.

function slowMajorityValue(voters: readonly NodeId[], valueOf: (id: NodeId) => number): number {
  if (voters.length === 0) return Infinity
  const reached = [0, ...voters.map(valueOf)].filter((candidate) =>
    isMajority(voters, (id) => valueOf(id) >= candidate),
  )
  return Math.max(...reached)
}

const random = seededRandom(7)
const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
const someOf = (list: readonly NodeId[]): NodeId[] => list.filter(() => random.next() < 0.5)

function drawConfiguration(): Configuration {
  const voters = someOf(names)
  return {
    voters: voters.length > 0 ? voters : ['a'],
    outgoingVoters: random.next() < 0.5 ? someOf(names) : [],
    learners: someOf(['x', 'y']),
  }
}

test('the quorum value equals the value of a slow computation, in any order of members and in both halves of a joint configuration', () => {
  for (let round = 0; round < 5_000; round += 1) {
    const configuration = drawConfiguration()
    const values = new Map([...names, 'x', 'y'].map((id) => [id, random.integer(0, 5)]))
    const valueOf = (id: NodeId): number => values.get(id) ?? 0
    const { voters, outgoingVoters } = configuration
    expect(majorityValue(voters, valueOf)).toBe(slowMajorityValue(voters, valueOf))
    expect(quorumValue(configuration, valueOf)).toBe(
      Math.min(slowMajorityValue(voters, valueOf), slowMajorityValue(outgoingVoters, valueOf)),
    )
  }
})

test('an election is won with a majority in both halves of a joint configuration, lost when that is impossible, and otherwise undecided', () => {
  for (let round = 0; round < 5_000; round += 1) {
    const configuration = drawConfiguration()
    const votes = new Map<NodeId, boolean>()
    for (const id of [...names, 'x', 'y']) {
      if (random.next() < 0.6) votes.set(id, random.next() < 0.5)
    }
    const hopeful = new Map(names.map((id) => [id, votes.get(id) ?? true]))
    const isWon = isQuorum(configuration, (id) => votes.get(id) === true)
    const isPossible = isQuorum(configuration, (id) => hopeful.get(id) === true)
    const expected = isWon ? 'won' : isPossible ? 'pending' : 'lost'
    expect(electionOutcome(configuration, votes)).toBe(expected)
  }
})

test.for([
  [1, 1],
  [2, 2],
  [3, 2],
  [4, 3],
  [5, 3],
  [6, 4],
  [7, 4],
])('of %i voters, %i are a majority and one fewer is not', ([count = 0, needed = 0]) => {
  const voters = names.slice(0, count)
  const reachedBy = (holders: number): number =>
    majorityValue(voters, (id) => (voters.indexOf(id) < holders ? 1 : 0))
  expect(reachedBy(needed)).toBe(1)
  expect(reachedBy(needed - 1)).toBe(0)
})
