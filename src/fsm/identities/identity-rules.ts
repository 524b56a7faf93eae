import type { Identity } from '../../entities/kinds/identity.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { adminLossReason } from '../apply/admins.ts'
import { gainsRights } from '../apply/authority.ts'
import type {
  CommandContext,
  Consequences,
  KindRules,
  AllowedWrite,
  CompletedWrite,
} from '../apply/context.ts'
import { fieldFaultOutcome, refusedOutcome } from '../apply/outcome.ts'
import { WITHDRAWN_FROM_LEVEL, withdrawEnrollmentsOf } from '../apply/read-enrollments.ts'
import type { State } from '../records/state.ts'

export const identityRules: KindRules<Identity> = {
  judgeWrite: judgeIdentity,
  judgeDelete: judgeIdentityDelete,
  afterWrite: withdrawReadEnrollments,
}

function withdrawReadEnrollments(
  { before, after }: CompletedWrite<Identity>,
  consequences: Consequences,
): void {
  if (before === undefined || consequences.state.featureLevel < WITHDRAWN_FROM_LEVEL) return
  // @guard enrollments-read-before-a-promotion--write
  if (gainsRights(before, after)) withdrawEnrollmentsOf('identityId', after.id, consequences)
}

function judgeIdentity(
  state: State,
  write: AllowedWrite<Identity>,
  context: CommandContext,
): Outcome | null {
  const { before, after } = write
  if (before?.typeId === 'Router' && after.name !== before.name) {
    return fieldFaultOutcome({ field: 'name', reason: 'may not change name of router identities' })
  }
  if ((before?.typeId === 'Router') !== (after.typeId === 'Router')) {
    return fieldFaultOutcome({
      field: 'type',
      reason: 'only routers make identities of the type Router',
    })
  }
  if (before?.isAdmin !== true) return null
  const change = { kind: 'identity', id: before.id, after } as const
  const reason = adminLossReason(state, change, context.logTimeMs)
  return reason === null ? null : refusedOutcome('ENTITY_CAN_NOT_BE_UPDATED', reason)
}

function judgeIdentityDelete(
  state: State,
  record: Identity,
  context: CommandContext,
): Outcome | null {
  if (record.typeId === 'Router' && state.get('router', record.id) !== undefined) {
    return refusedOutcome('ENTITY_CAN_NOT_BE_DELETED', 'it goes with its router')
  }
  if (!record.isAdmin) return null
  const change = { kind: 'identity', id: record.id, after: undefined } as const
  const reason = adminLossReason(state, change, context.logTimeMs)
  return reason === null ? null : refusedOutcome('ENTITY_CAN_NOT_BE_DELETED', reason)
}
