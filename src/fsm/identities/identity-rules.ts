import type { Identity } from '../../entities/kinds/identity.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { isSameJson } from '../../lib/text/canonical-json.ts'
import { adminLossReason } from '../apply/admins.ts'
import { gainsRights } from '../apply/actor-rights.ts'
import type {
  CommandContext,
  WriteConsequences,
  KindRules,
  ValidatedWrite,
  CompletedWrite,
} from '../apply/command-context.ts'
import { fieldFaultOutcome, refusedOutcome } from '../apply/outcome.ts'
import {
  ENROLLMENT_WITHDRAWAL_FEATURE_LEVEL,
  withdrawEnrollments,
} from '../apply/withdraw-enrollments.ts'
import type { State } from '../records/state.ts'
import {
  isSameRoleAttributes,
  roleAttributeExpiryFault,
  roleAttributesAfterWrite,
} from '../expiry/role-attribute-expiry.ts'

export const identityRules: KindRules<Identity> = {
  judgeWrite: judgeIdentity,
  judgeDelete: judgeIdentityDelete,
  afterWrite: followIdentityWrite,
}

function followIdentityWrite(
  written: CompletedWrite<Identity>,
  consequences: WriteConsequences,
): void {
  settleRoleAttributes(written, consequences)
  withdrawReadEnrollments(written, consequences)
}

function settleRoleAttributes(
  { before, after }: CompletedWrite<Identity>,
  { context, put }: WriteConsequences,
): void {
  if (Object.keys(after.roleAttributesExpireAt).length + (after.roleAttributeEndsAt ?? 0) === 0) {
    return
  }
  const settled = roleAttributesAfterWrite(before, after, context.logTimeMs)
  if (!isSameRoleAttributes(after, settled)) put('identity', after.id, { ...after, ...settled })
}

function withdrawReadEnrollments(
  { before, after }: CompletedWrite<Identity>,
  consequences: WriteConsequences,
): void {
  if (before === undefined || consequences.state.featureLevel < ENROLLMENT_WITHDRAWAL_FEATURE_LEVEL)
    return
  // @guard enrollments-read-before-a-promotion--write
  if (gainsRights(before, after)) withdrawEnrollments('identityId', after.id, consequences)
}

function judgeIdentity(
  state: State,
  write: ValidatedWrite<Identity>,
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
  const fault = roleAttributeExpiryFault(before, after, context.logTimeMs)
  if (fault !== null) return fieldFaultOutcome(fault)
  if (changesOwnEnds(state, write, context)) return refusedOutcome('UNAUTHORIZED', ownEnds)
  if (before?.isAdmin !== true) return null
  const change = { kind: 'identity', id: before.id, after } as const
  const reason = adminLossReason(state, change, context.logTimeMs)
  return reason === null ? null : refusedOutcome('ENTITY_CAN_NOT_BE_UPDATED', reason)
}

const ownEnds = 'only another identity may change the ends of your role attributes'

/**
 * Whether a caller who is no administrator changes when its own role attributes expire. The caller
 * could also do so by removing an attribute and adding it again without an expiry.
 */
function changesOwnEnds(
  state: State,
  { before, after }: ValidatedWrite<Identity>,
  { authority, sessionId, logTimeMs }: CommandContext,
): boolean {
  if (authority === 'full' || before === undefined) return false
  const caller = state.get('apiSession', sessionId)?.identityId
  // @guard access-that-ended--own
  if (caller !== before.id) return false
  const written = roleAttributesAfterWrite(before, { ...before, ...after }, logTimeMs)
  return !isSameJson(written.roleAttributesExpireAt, before.roleAttributesExpireAt)
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
