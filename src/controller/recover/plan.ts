import type { Position } from '../../raft/types.ts'
import type { SurvivingMemberFacts, SurvivorMember } from './survivor.ts'

export interface RecoveryPlan {
  /** Generation that the recovered cluster gets. */
  readonly generation: number
  /**
   * Ids of the members that the recovery removes. Each must join again with an empty data folder.
   */
  readonly givenUp: readonly string[]
  /** Warnings that the operator should read before the recovery, one sentence each. */
  readonly warnings: readonly string[]
  /** Text that the operator must type to confirm. */
  readonly confirmation: string
}

type PlannedRecovery =
  | { readonly ok: true; readonly plan: RecoveryPlan }
  /**
   * `reason` is one sentence with a remedy. If `isWaivable`, the operator can override it with
   * `--accept-loss`.
   */
  | { readonly ok: false; readonly reason: string; readonly isWaivable: boolean }

/**
 * Decides whether a cluster without a majority may restart from one of the remaining members.
 * @param own the member from which to restart.
 * @param others facts from the data folders of the other remaining members.
 */
export function planRecovery(
  own: SurvivingMemberFacts,
  others: readonly SurvivingMemberFacts[],
  acceptsLoss: boolean,
): PlannedRecovery {
  const fault = faultOf(own, others) ?? (acceptsLoss ? null : lossOf(own, others))
  if (fault !== null) return { ok: false, ...fault }
  const givenUp = own.members.map(({ id }) => id).filter((id) => id !== own.id)
  return {
    ok: true,
    plan: {
      generation: own.generation + 1,
      givenUp,
      warnings: warningsOf(own, others, givenUp),
      confirmation: `without ${givenUp.join(' ')}`,
    },
  }
}

interface Fault {
  readonly reason: string
  readonly isWaivable: boolean
}

const final = (reason: string): Fault => ({ reason, isWaivable: false })
const waivable = (reason: string): Fault => ({ reason, isWaivable: true })

function faultOf(own: SurvivingMemberFacts, others: readonly SurvivingMemberFacts[]): Fault | null {
  const { id, members } = own
  for (const [at, other] of others.entries()) {
    const fault = faultOfOther(own, other, others.slice(0, at))
    if (fault !== null) return final(fault)
  }
  if (own.fencedBy !== null) {
    return final(
      `${id} is fenced: the cluster was recovered without it into generation ${own.fencedBy}; join that cluster with a ticket instead`,
    )
  }
  if (!members.some((member) => member.id === id)) {
    return final(
      `${id} was removed in configuration ${own.configurationIndex}; recover on one of ${listOf(members)}`,
    )
  }
  const voters = members.filter(({ isVoter }) => isVoter)
  if (members.length === 1) {
    return final(`${id} is the only member; start it (flotilla controller run), nothing is lost`)
  }
  const left = [own, ...others].filter(({ finding }) => finding === null).map((one) => one.id)
  const alive = voters.filter((voter) => left.includes(voter.id))
  if (alive.length * 2 <= voters.length) return null
  return final(
    `${alive.length} of ${voters.length} voters are left (${listOf(alive)}), which is a majority; start them, there is nothing to recover`,
  )
}

function faultOfOther(
  own: SurvivingMemberFacts,
  other: SurvivingMemberFacts,
  before: readonly SurvivingMemberFacts[],
): string | null {
  const { id } = other
  if (other.clusterId !== own.clusterId) {
    return `${id} belongs to cluster ${other.clusterId}, ${own.id} to ${own.clusterId}; use files of the same cluster`
  }
  if (id === own.id || before.some((one) => one.id === id)) {
    return `${id} is given twice; name each survivor once, without the controller of CONFIG`
  }
  if (other.generation > own.generation) {
    return `${id} has generation ${other.generation}, ${own.id} has ${own.generation}: the cluster was already recovered there; start that controller and join it with a ticket`
  }
  if (other.generation < own.generation) {
    return `${id} has the outdated generation ${other.generation}; leave it out`
  }
  return null
}

function lossOf(own: SurvivingMemberFacts, others: readonly SurvivingMemberFacts[]): Fault | null {
  const best = others.reduce((found, one) => (isLater(one.last, found.last) ? one : found), own)
  if (best !== own) {
    return waivable(
      `${best.id} has more entries: its log ends at ${placeOf(best.last)}, the log of ${own.id} at ${placeOf(own.last)}; recover there, or accept the loss of the difference (--accept-loss)`,
    )
  }
  if (own.finding !== null) {
    return waivable(
      `${own.id} is damaged (${own.finding}): recover on another survivor, or accept the loss of unreadable entries (--accept-loss)`,
    )
  }
  const isVoter = own.members.some(({ id, isVoter }) => id === own.id && isVoter)
  if (isVoter) return null
  return waivable(
    `${own.id} is a learner and may lack committed entries; recover on a surviving voter, or accept the loss (--accept-loss)`,
  )
}

function warningsOf(
  own: SurvivingMemberFacts,
  others: readonly SurvivingMemberFacts[],
  givenUp: readonly string[],
): string[] {
  const seen = new Set(others.map(({ id }) => id))
  const unseen = givenUp.filter((id) => !seen.has(id))
  const at = new Date(own.lastMs).toISOString()
  const warnings = [
    `writes that were acknowledged after ${at} (${placeOf(own.last)}) and are on ${unseen.length === 0 ? 'none of the survivors' : `${unseen.join(', ')} alone`} are lost`,
  ]
  warnings.push(
    `nobody answers at the addresses of ${givenUp.join(', ')}; if one of them runs, or is recovered elsewhere, there will be two clusters`,
  )
  const open = own.last.index - own.commit
  if (open > 0) {
    warnings.push(
      `entries after index ${own.commit} (${open}) may be uncommitted; they are kept and take effect, even if their callers got no response`,
    )
  }
  if (unseen.length > 0) {
    warnings.push(
      `no data of ${unseen.join(', ')} was inspected; if one of their data folders is left, inspect it first (--inspect there, --survivor here)`,
    )
  }
  if (own.finding !== null) warnings.push(`${own.finding}: unreadable entries are discarded`)
  return warnings
}

function isLater(a: Position, b: Position): boolean {
  return a.term === b.term ? a.index > b.index : a.term > b.term
}

function placeOf({ term, index }: Position): string {
  return `index ${index} of term ${term}`
}

function listOf(members: readonly Pick<SurvivorMember, 'id'>[]): string {
  return members.map(({ id }) => id).join(', ')
}
