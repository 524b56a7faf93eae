import type { Configuration, NodeId } from './types.ts'

/**
 * The highest value that a majority of `voters` has reached. Infinity if there are no voters, so
 * that an absent half of a joint configuration sets no limit.
 */
export function majorityValue(voters: readonly NodeId[], valueOf: (id: NodeId) => number): number {
  if (voters.length === 0) return Infinity
  // The values are sorted on every call, because they change in any order. Another Raft
  // implementation lost a commit because it maintained a sorted list incrementally.
  // @guard 13-quorum-of-an-unsorted-list
  const values = voters.map(valueOf).sort((a, b) => b - a)
  // @guard 14-half-is-a-majority
  return values[Math.floor(voters.length / 2)] ?? 0
}

/**
 * The highest value that a quorum has reached: a majority of the voters, or of each half during a
 * joint change (Raft paper 6).
 */
export function quorumValue(configuration: Configuration, valueOf: (id: NodeId) => number): number {
  // @guard quorum-of-the-incoming-half, quorum-of-the-outgoing-half
  return Math.min(
    majorityValue(configuration.voters, valueOf),
    majorityValue(configuration.outgoingVoters, valueOf),
  )
}

type ElectionOutcome = 'won' | 'lost' | 'pending'

/** The outcome of an election. Votes of non-voters are ignored. */
export function electionOutcome(
  configuration: Configuration,
  votes: ReadonlyMap<NodeId, boolean>,
): ElectionOutcome {
  const granted = quorumValue(configuration, (id) => (votes.get(id) === true ? 1 : 0))
  if (granted >= 1) return 'won'
  const reachable = quorumValue(configuration, (id) => (votes.get(id) === false ? 0 : 1))
  return reachable >= 1 ? 'pending' : 'lost'
}
