import type { Configuration, NodeId } from '../../src/raft/types.ts'

// Majorities computed by counting: the reference for the fast arithmetic and for the checks of the
// simulation.

export function isMajority(voters: readonly NodeId[], holds: (id: NodeId) => boolean): boolean {
  return voters.length === 0 || voters.filter(holds).length * 2 > voters.length
}

/** In a joint configuration each half has its own majority (Raft paper 6). */
export function isQuorum(configuration: Configuration, holds: (id: NodeId) => boolean): boolean {
  return isMajority(configuration.voters, holds) && isMajority(configuration.outgoingVoters, holds)
}
