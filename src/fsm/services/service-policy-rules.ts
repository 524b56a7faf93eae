import type { ServicePolicy } from '../../entities/kinds/service-policy.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type {
  ValidatedWrite,
  CommandContext,
  CompletedWrite,
  WriteConsequences,
  KindRules,
} from '../apply/command-context.ts'
import { fieldFaultOutcome } from '../apply/outcome.ts'
import type { State } from '../records/state.ts'

export const servicePolicyRules: KindRules<ServicePolicy> = {
  judgeWrite: judgeServicePolicy,
  afterWrite: settleEnd,
}

/**
 * A write may leave an expiry that has passed unchanged, but may set only an expiry in the future.
 */
function judgeServicePolicy(
  _state: State,
  { before, after }: ValidatedWrite<ServicePolicy>,
  { logTimeMs }: CommandContext,
): Outcome | null {
  const { expiresAt = null } = after
  if (expiresAt === null || expiresAt === before?.expiresAt || expiresAt > logTimeMs) return null
  return fieldFaultOutcome({ field: 'expiresAt', reason: 'expiresAt must be in the future' })
}

/**
 * Updates whether the policy is effective: with a later expiry, or none, an expired policy becomes
 * effective again.
 */
function settleEnd(
  { after }: CompletedWrite<ServicePolicy>,
  { context, put }: WriteConsequences,
): void {
  const { id, expiresAt } = after
  const isEnded = expiresAt !== null && expiresAt <= context.logTimeMs
  if (isEnded !== after.isEnded) put('servicePolicy', id, { ...after, isEnded })
}
