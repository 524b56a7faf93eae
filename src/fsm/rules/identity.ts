import type { EntityRecord } from '../../lib/entity-record.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { hasOtherAdmin, lastAdminReason } from '../commands/admins.ts'
import type { CommandContext } from '../commands/context.ts'
import { refused } from '../commands/outcome.ts'
import type { State } from '../state.ts'
import type { KindRules, Write } from './kind-rules.ts'

export const identityRules: KindRules = {
  judgeWrite: judgeIdentity,
  judgeDelete: judgeIdentityDelete,
}

function judgeIdentity(state: State, write: Write, context: CommandContext): Outcome | null {
  const { before, after } = write
  if (before?.['isAdmin'] !== true || after['isAdmin'] === true) return null
  if (hasOtherAdmin(state, before.id, context.logTimeMs)) return null
  return refused('ENTITY_CAN_NOT_BE_UPDATED', lastAdminReason)
}

function judgeIdentityDelete(
  state: State,
  record: EntityRecord,
  context: CommandContext,
): Outcome | null {
  if (record['isAdmin'] !== true || hasOtherAdmin(state, record.id, context.logTimeMs)) return null
  return refused('ENTITY_CAN_NOT_BE_DELETED', lastAdminReason)
}
