import { type PostureCheck, postureFields } from '../../entities/kinds/posture-check.ts'
import type { ServicePolicy } from '../../entities/kinds/service-policy.ts'
import { isGranted } from '../../lib/permissions.ts'
import type { Json } from '../../lib/text/canonical-json.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { CommandContext, KindRules, ValidatedWrite } from '../apply/command-context.ts'
import { fieldFaultOutcome, refusedOutcome } from '../apply/outcome.ts'
import {
  matchesRoles,
  unorderedIdsSelectedByRoles,
  allPoliciesSelecting,
} from '../records/roles.ts'
import type { State } from '../records/state.ts'

export const postureCheckRules: KindRules<PostureCheck> = {
  judgeWrite: judgePostureCheck,
  judgeDelete: (state, record, context) => judgeLoss(state, record, null, context),
}

function judgePostureCheck(
  state: State,
  { before, after }: ValidatedWrite<PostureCheck>,
  context: CommandContext,
): Outcome | null {
  const fault = contentFault(after)
  if (fault !== null || before === undefined) return fault
  // @guard posture-checks-taken-away--update
  return judgeLoss(state, before, { ...before, ...after }, context)
}

/**
 * Feature level from which a write to a posture check must not remove the check from a service
 * policy that would then require less.
 */
const KEPT_FROM_LEVEL = 2
/** Maximum number of ids that the message of a refusal lists. */
const SHOWN_IDS_MAX = 20

/**
 * Reason why a check may not be deleted (`after` is null) or changed; null when it may. A service
 * policy that selects the check by attribute would then require less of devices. Only callers who
 * may change policies may cause this, and the last check of a policy can be removed only by a
 * change of the policy itself. If a policy selects a check by id, the reference already prevents
 * the deletion.
 */
function judgeLoss(
  state: State,
  before: PostureCheck,
  after: PostureCheck | null,
  { authority, held }: CommandContext,
): Outcome | null {
  if (state.featureLevel < KEPT_FROM_LEVEL) return null
  const losing = allPoliciesSelecting(
    state.table('servicePolicy'),
    'postureCheckRoles',
    before,
  ).filter(({ postureCheckRoles: roles, semantic }) => {
    if (roles.includes(`@${before.id}`)) return false
    // @guard posture-checks-taken-away--semantic
    return after === null || !matchesRoles(after, roles, semantic)
  })
  if (losing.length === 0) return null
  // @guard posture-checks-taken-away--rights
  if (authority === 'limited' && !isGranted(held, 'service-policy.update', false)) {
    return refusedOutcome('UNAUTHORIZED', unpermitted)
  }
  const opened = losing.filter(isLastOf(state, before.id)).map(({ id }) => id)
  // @guard posture-checks-taken-away--last
  if (opened.length === 0) return null
  const value = opened.slice(0, SHOWN_IDS_MAX)
  const reason = `the service policies [${value.join(' ')}] select no other posture check and would ask for none; change their postureCheckRoles first`
  return after === null
    ? fieldFaultOutcome(
        { field: 'postureCheckRoles', reason, value },
        'CAN_NOT_DELETE_REFERENCED_ENTITY',
      )
    : fieldFaultOutcome({ field: 'roleAttributes', reason, value })
}

const unpermitted =
  'a service policy selects the posture check by attribute; only an administrator or a holder of service-policy.update may take the check from it'

/**
 * Whether a check is the only one that a policy selects; equal role lists are evaluated only once.
 */
function isLastOf(state: State, checkId: string): (policy: ServicePolicy) => boolean {
  const known = new Map<string, boolean>()
  return ({ postureCheckRoles: roles, semantic }) => {
    const key = JSON.stringify([semantic, roles])
    const isLast = known.get(key) ?? !selectsAnother(state, { roles, semantic }, checkId)
    known.set(key, isLast)
    return isLast
  }
}

function selectsAnother(
  state: State,
  list: Parameters<typeof unorderedIdsSelectedByRoles>[2][number],
  checkId: string,
): boolean {
  for (const id of unorderedIdsSelectedByRoles(state, 'postureCheck', [list]))
    if (id !== checkId) return true
  return false
}

/**
 * Fault of a check that lacks the fields that its type requires; null if it has them. Without them,
 * it would pass or fail for every device.
 */
function contentFault(after: Partial<PostureCheck>): Outcome | null {
  const { typeId: type } = after
  if (type === undefined || !Object.hasOwn(postureFields, type)) {
    const reason = `typeId in body should be one of [${Object.keys(postureFields).join(' ')}]`
    return fieldFaultOutcome({ field: 'typeId', reason, value: type })
  }
  const missing = postureFields[type].required.find((name) => isEmpty(after[name]))
  return missing === undefined
    ? null
    : fieldFaultOutcome({ field: missing, reason: `${missing} is required` })
}

function isEmpty(value: Json | undefined): boolean {
  if (value === undefined || value === null || value === '') return true
  return Array.isArray(value) && value.length === 0
}
