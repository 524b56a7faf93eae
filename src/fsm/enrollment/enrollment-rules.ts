import type { Enrollment } from '../../entities/kinds/enrollment.ts'
import { usernameSchema } from '../../entities/kinds/authenticator.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type {
  CommandContext,
  WriteConsequences,
  KindRules,
  ValidatedWrite,
  CompletedWrite,
} from '../apply/command-context.ts'
import { fieldFaultOutcome, notFoundOutcome } from '../apply/outcome.ts'
import type { State } from '../records/state.ts'

export const enrollmentRules: KindRules<Enrollment> = {
  judgeWrite: judgeEnrollment,
  afterWrite: replaceOfRouter,
}

/**
 * Kinds of routers that can be enrolled, by the field of the enrollment that references the router.
 */
const routerKinds = { edgeRouterId: 'edgeRouter', transitRouterId: 'transitRouter' } as const
const routerFields = ['edgeRouterId', 'transitRouterId'] as const

function judgeEnrollment(
  state: State,
  write: ValidatedWrite<Enrollment>,
  context: CommandContext,
): Outcome | null {
  const { before, after } = write
  if (before !== undefined) return expiryFault(after, context)
  for (const field of routerFields) {
    const kind = routerKinds[field]
    const id = after[field] ?? ''
    if (id === '') continue
    return state.get(kind, id) === undefined
      ? notFoundOutcome(kind, id)
      : expiryFault(after, context)
  }
  return (
    identityFault(state, after.identityId ?? '') ??
    methodFault(after) ??
    expiryFault(after, context) ??
    detailFault(state, after) ??
    outstandingRefusal(state, after)
  )
}

function identityFault(state: State, id: string): Outcome | null {
  const identity = state.get('identity', id)
  const value = id.slice(0, 128)
  if (identity === undefined) {
    return fieldFaultOutcome({ field: 'identityId', reason: 'identity not found', value })
  }
  if (identity.typeId !== 'Router') return null
  const reason = 'an identity of the type Router has no enrollments: its router has'
  return fieldFaultOutcome({ field: 'identityId', reason, value })
}

const identityMethods: readonly string[] = ['ott', 'ottca', 'updb']

function methodFault(after: Partial<Enrollment>): Outcome | null {
  const method = after.method ?? ''
  if (identityMethods.includes(method)) return null
  const reason = `method in body should be one of [${identityMethods.join(' ')}]`
  return fieldFaultOutcome({ field: 'method', reason, value: method })
}

/**
 * Fault in the expiry. The expiry is compared with log time, because log time is the same on every
 * controller.
 */
function expiryFault(after: Partial<Enrollment>, { logTimeMs }: CommandContext): Outcome | null {
  const { expiresAt } = after
  if (typeof expiresAt === 'number' && expiresAt > logTimeMs) return null
  return fieldFaultOutcome({ field: 'expiresAt', reason: 'expiresAt must be in the future' })
}

/**
 * Fault in the fields that an enrollment method requires in addition to the identity; null if there
 * is none.
 */
function detailFault(state: State, after: Partial<Enrollment>): Outcome | null {
  const method = after.method ?? ''
  if (method === 'ottca') {
    const caId = after.caId ?? ''
    if (state.get('ca', caId) !== undefined) return null
    return fieldFaultOutcome({ field: 'caId', reason: 'ca not found', value: caId.slice(0, 128) })
  }
  return method === 'updb' ? usernameFault(after.username ?? '') : null
}

function usernameFault(username: string): Outcome | null {
  if (username === '')
    return fieldFaultOutcome({ field: 'username', reason: 'username is required' })
  const { minLength, maxLength } = usernameSchema
  if (username.length >= minLength && username.length <= maxLength) return null
  const reason = `username in body should be ${minLength} to ${maxLength} chars long`
  return fieldFaultOutcome({ field: 'username', reason })
}

/**
 * Refusal if the identity already has an enrollment with this method; null if it has none. Even an
 * expired enrollment prevents a new one, but a caller can refresh or delete it.
 */
function outstandingRefusal(state: State, after: Partial<Enrollment>): Outcome | null {
  const method = after.method ?? ''
  const ids = state.table('enrollment').indexes.ids('identityId', after.identityId ?? '')
  for (const id of ids) {
    if (state.get('enrollment', id)?.method !== method) continue
    const reason = `the identity has an outstanding enrollment of the method ${method}`
    return fieldFaultOutcome({ field: 'method', reason, value: method }, 'ENROLLMENT_EXISTS')
  }
  return null
}

/**
 * Removes the other enrollments of a router when a new one is created, so that only the new token
 * can enroll the router.
 */
function replaceOfRouter(
  { before, after }: CompletedWrite<Enrollment>,
  { state, remove }: WriteConsequences,
): void {
  if (before !== undefined) return
  for (const field of routerFields) {
    const routerId = after[field]
    if (routerId === '') continue
    for (const id of Array.from(state.table('enrollment').indexes.ids(field, routerId))) {
      if (id !== after.id) remove('enrollment', id)
    }
  }
}
