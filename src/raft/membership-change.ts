import type { Configuration as ConfigurationRecord } from '../../proto/gen/membership_pb.ts'
import {
  encodeConfiguration,
  enterJointConfiguration,
  hasOtherStore,
  isJoint,
  isWellFormedTarget,
} from './configuration.ts'
import type { ProposalRefusalCode } from './effects.ts'
import type { CoreInput } from './input.ts'
import { appendAsLeader } from './leader-log.ts'
import type { RaftState } from './state.ts'
import type { Index } from './types.ts'

/**
 * Every change uses joint consensus, even a change of a single member. One code path is then
 * enough, and it is the one whose safety is proven (paper 6).
 */
export function changeConfiguration(
  state: RaftState,
  { id, target, basedOn, nowMs }: Extract<CoreInput, { readonly type: 'changeConfiguration' }>,
): void {
  state.nowMs = nowMs
  const code = refusalCode(state, target, basedOn ?? state.memberships.current.index)
  if (code !== null) {
    state.proposalResults.push({ id, ok: false, code })
    return
  }
  // @guard 15-change-of-one-before-an-own-commit:1
  const joint = enterJointConfiguration(state.memberships.current.record, target)
  const { index, term } = appendAsLeader(state, 'configuration', encodeConfiguration(joint))
  state.proposalResults.push({ id, ok: true, index, term })
}

function refusalCode(
  state: RaftState,
  target: ConfigurationRecord,
  basedOn: Index,
): ProposalRefusalCode | null {
  if (state.role !== 'leader' || state.transfer !== null) return 'NOT_LEADER'
  const { index, configuration } = state.memberships.current
  // Only one change may be in progress, and none may begin before an entry of the leader's own term
  // is committed. Otherwise a change of an earlier leader may still be in progress, and the
  // majorities of the two changes need not overlap (Ongaro, raft-dev, 2015-07-10).
  // @guard change-derived-from-before
  const isUnderWay = index > state.commit || isJoint(configuration) || index !== basedOn
  // @guard one-change-at-a-time, own-term-gate-on-membership
  // @guard 15-change-of-one-before-an-own-commit:2
  if (isUnderWay || !state.hasCommittedInTerm) return 'CHANGE_IN_PROGRESS'
  if (!isWellFormedTarget(target)) return 'INVALID_CONFIGURATION'
  if (!isReadyToVote(state, target)) return 'NOT_CAUGHT_UP'
  // @guard one-disk-is-replaced-at-a-time
  return replacesSafely(state, target) ? null : 'INVALID_CONFIGURATION'
}

/**
 * Whether the replacement of a voter's disk is safe. A voter that lost its disk may have voted for
 * a leader of a later term without remembering it. If it counted among the old voters, it could
 * help to commit entries that contradict that leader. The majority that elected that leader,
 * without the lost vote, overlaps every majority of the other old voters. The new voters must
 * therefore be exactly the other old voters.
 */
function replacesSafely(state: RaftState, target: ConfigurationRecord): boolean {
  const { record, configuration } = state.memberships.current
  const replaced = target.members.filter((member) => {
    const before = record.members.find((known) => known.id === member.id)
    return before?.voter === true && hasOtherStore(before, member)
  })
  if (replaced.length === 0) return true
  const others = configuration.voters.filter((id) => id !== replaced[0]?.id)
  const voters = target.members.filter(({ voter }) => voter)
  return voters.length === others.length && voters.every(({ id }) => others.includes(id))
}

/**
 * Whether every new voter is ready. A voter that lacks much of the log would prevent commits until
 * it catches up (dissertation 4.2.1). A voter that lacks the committed configuration that lists its
 * disk does not vote. For example, when a cluster grows from one voter to two, the old leader could
 * crash with the joint entry only on its own disk. It would then wait for the new voter's vote,
 * while the new voter waits for the configuration. A promoted learner always keeps its right to
 * vote, because entries that it acknowledged up to a committed index are permanent.
 */
function isReadyToVote(state: RaftState, target: ConfigurationRecord): boolean {
  const { record, configuration, index } = state.memberships.current
  for (const member of target.members) {
    if (!member.voter) continue
    const before = record.members.find((known) => known.id === member.id)
    // @guard other-disk-is-a-learner-first
    if (before === undefined || hasOtherStore(before, member)) return false
    if (configuration.voters.includes(member.id)) continue
    const progress = state.progress.get(member.id)
    // @guard learner-holds-the-configuration-before-it-votes
    if (progress?.state !== 'replicate' || progress.matchIndex < index) return false
    // @guard new-voter-has-nearly-all
    if (progress.matchIndex + state.options.promotionLagEntriesMax < state.log.lastIndex) {
      return false
    }
  }
  return true
}
