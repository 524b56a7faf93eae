import {
  passwordLengthMin,
  permissivePrimaryRules,
  permissiveSecondaryRules,
  type PrimaryRules,
  type SecondaryRules,
} from '../../entities/parts/auth-policy-factors.ts'
import type { AuthPolicy } from '../../entities/kinds/auth-policy.ts'
import { isObject } from '../../entities/check-fields.ts'
import type { Json } from '../../lib/text/canonical-json.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { adminLossReason } from '../apply/admins.ts'
import type {
  CommandContext,
  WriteConsequences,
  KindRules,
  ValidatedWrite,
  CompletedWrite,
} from '../apply/command-context.ts'
import { fieldFaultOutcome, refusedOutcome } from '../apply/outcome.ts'
import type { State } from '../records/state.ts'

export const authPolicyRules: KindRules<AuthPolicy> = {
  judgeWrite: judgeAuthPolicy,
  afterWrite: noteSigners,
}

function judgeAuthPolicy(
  state: State,
  { before, after }: ValidatedWrite<AuthPolicy>,
  { logTimeMs }: CommandContext,
): Outcome | null {
  const { primary, secondary } = after
  for (const [field, value, example] of [
    ['primary', primary, permissivePrimaryRules],
    ['secondary', secondary, permissiveSecondaryRules],
  ] as const) {
    if (!hasMembersOf(value, example)) {
      return fieldFaultOutcome({ field, reason: `${field} does not say all that it must` })
    }
  }
  const rules = primary as PrimaryRules
  const fault = boundFault(rules.updb) ?? signerFault(state, rules, secondary as SecondaryRules)
  if (fault !== null || before === undefined) return fault
  const reason = adminLossReason(state, { kind: 'authPolicy', id: before.id, after }, logTimeMs)
  return reason === null ? null : refusedOutcome('ENTITY_CAN_NOT_BE_UPDATED', reason)
}

/**
 * Whether a merged value has the members and types of the example. The state machine checks this,
 * because a patch is merged only when its log entry is applied.
 */
function hasMembersOf(value: Json | undefined, example: Json): boolean {
  if (example === null) return value === null || typeof value === 'string'
  if (Array.isArray(example)) {
    return Array.isArray(value) && value.every((item) => typeof item === 'string')
  }
  if (!isObject(example)) return typeof value === typeof example
  if (!isObject(value)) return false
  const names = Object.keys(example)
  return (
    Object.keys(value).length === names.length &&
    names.every(
      (name) => Object.hasOwn(value, name) && hasMembersOf(value[name], example[name] ?? null),
    )
  )
}

function boundFault(updb: PrimaryRules['updb']): Outcome | null {
  for (const [name, minimum] of [
    ['minPasswordLength', passwordLengthMin],
    ['maxAttempts', 0],
    ['lockoutDurationMinutes', 0],
  ] as const) {
    const value = updb[name]
    if (Number.isSafeInteger(value) && value >= minimum) continue
    return fieldFaultOutcome({
      field: `primary.updb.${name}`,
      reason: `should be at least ${minimum}`,
      value,
    })
  }
  return null
}

/** Fault in a reference to a signer. Fields are named as in OpenZiti. */
function signerFault(
  state: State,
  { extJwt }: PrimaryRules,
  { requireExtJwtSigner }: SecondaryRules,
): Outcome | null {
  for (const [at, id] of extJwt.allowedSigners.entries()) {
    if (state.get('externalJwtSigner', id) === undefined) {
      return unknownSigner(`primary.extJwt.allowedExtJwtSigners[${at}]`, id)
    }
  }
  if (requireExtJwtSigner === null) return null
  return state.get('externalJwtSigner', requireExtJwtSigner) === undefined
    ? unknownSigner('secondary.requiredExtJwtSigner', requireExtJwtSigner)
    : null
}

function unknownSigner(field: string, value: string): Outcome {
  return fieldFaultOutcome(
    { field, reason: 'no external JWT signer has this id', value },
    'NOT_FOUND',
  )
}

function noteSigners({ after }: CompletedWrite<AuthPolicy>, { put }: WriteConsequences): void {
  const { primary, secondary, ...record } = after
  const allowedSignerIds = [...new Set(primary.extJwt.allowedSigners)].sort()
  const required = secondary.requireExtJwtSigner
  const requiredSignerIds = required === null ? [] : [required]
  if (
    allowedSignerIds.join() === record.allowedSignerIds.join() &&
    requiredSignerIds.join() === record.requiredSignerIds.join()
  ) {
    return
  }
  put('authPolicy', record.id, { ...after, allowedSignerIds, requiredSignerIds })
}
