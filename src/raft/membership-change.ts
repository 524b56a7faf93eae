import type { Configuration as ConfigurationRecord } from '../../proto/gen/membership_pb.ts'
import {
  encodeConfiguration,
  enterJoint,
  hasOtherStore,
  isJoint,
  isWellFormedTarget,
} from './configuration.ts'
import type { ProposalRefusalCode } from './effects.ts'
import type { Input } from './input.ts'
import { appendAsLeader } from './leader-log.ts'
import type { RaftState } from './state.ts'
import type { Index } from './types.ts'

/** Every change is joint, whatever it touches: one path, and the one that is proven (paper 6). */
export function changeConfiguration(
  state: RaftState,
  { id, target, basedOn, nowMs }: Extract<Input, { readonly type: 'changeConfiguration' }>,
): void {
  state.nowMs = nowMs
  const code = refusalOf(state, target, basedOn ?? state.memberships.current.index)
  if (code !== null) {
    state.proposalResults.push({ id, ok: false, code })
    return
  }
  // @guard 15-change-of-one-before-an-own-commit:1
  const joint = enterJoint(state.memberships.current.record, target)
  const { index, term } = appendAsLeader(state, 'configuration', encodeConfiguration(joint))
  state.proposalResults.push({ id, ok: true, index, term })
}

function refusalOf(
  state: RaftState,
  target: ConfigurationRecord,
  basedOn: Index,
): ProposalRefusalCode | null {
  if (state.role !== 'leader' || state.transfer !== null) return 'NOT_LEADER'
  const { index, configuration } = state.memberships.current
  // One change at a time, and none before an entry of the own term is committed: otherwise a change
  // of an earlier leader may still be about, and the two majorities need not meet (Ongaro,
  // raft-dev, 2015-07-10).
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
 * A voter whose disk was lost may have elected a leader of a later term, and forgot it: counted in
 * the old half, it would help to commit what that leader overwrites. Whoever elected it without
 * that vote meets every majority of the other old voters; so those, and nobody else, must be the
 * new half.
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
 * A voter that has to be sent the log first would stop the cluster meanwhile (dissertation 4.2.1).
 * And one that does not hold the committed configuration that names its disk abstains: from one
 * voter to two, a leader that died with the joint entry on its own disk alone would wait for the
 * vote of the new one, and that one for the leader to send it the configuration. What was
 * acknowledged up to a committed index stays, so a promoted learner holds its vote from then on.
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
