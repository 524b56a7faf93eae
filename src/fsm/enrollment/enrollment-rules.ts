import { usernameSchema } from '../../entities/kinds/authenticator.ts'
import type { Enrollment } from '../../entities/kinds/enrollment.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { CommandContext, Consequences, KindRules, Write, Written } from '../apply/context.ts'
import { faulty, notFound } from '../apply/outcome.ts'
import type { State } from '../records/state.ts'

export const enrollmentRules: KindRules = {
  judgeWrite: judgeEnrollment,
  afterWrite: replaceOfRouter,
}

/**
 * Kinds of routers that an enrollment is for, by field; each leads from there to its enrollments.
 */
const routerKinds = { edgeRouterId: 'edgeRouter', transitRouterId: 'transitRouter' } as const

function judgeEnrollment(state: State, write: Write, context: CommandContext): Outcome | null {
  const { before, after } = write
  if (before !== undefined) return expiryFault(after, context)
  for (const [field, kind] of Object.entries(routerKinds)) {
    const id = textOf(after, field)
    if (id === '') continue
    return state.get(kind, id) === undefined ? notFound(kind, id) : expiryFault(after, context)
  }
  return (
    identityFault(state, textOf(after, 'identityId')) ??
    methodFault(after) ??
    expiryFault(after, context) ??
    detailFault(state, after) ??
    outstandingRefusal(state, after)
  )
}

function textOf(fields: JsonObject, name: string): string {
  const value = fields[name]
  return typeof value === 'string' ? value : ''
}

function identityFault(state: State, id: string): Outcome | null {
  const identity = state.get('identity', id)
  const value = id.slice(0, 128)
  if (identity === undefined) {
    return faulty({ field: 'identityId', reason: 'identity not found', value })
  }
  if (identity['typeId'] !== 'Router') return null
  const reason = 'an identity of the type Router has no enrollments: its router has'
  return faulty({ field: 'identityId', reason, value })
}

const identityMethods = ['ott', 'ottca', 'updb']

function methodFault(after: JsonObject): Outcome | null {
  const method = textOf(after, 'method')
  if (identityMethods.includes(method)) return null
  const reason = `method in body should be one of [${identityMethods.join(' ')}]`
  return faulty({ field: 'method', reason, value: method })
}

/** Fault by log time: the same on every controller. */
function expiryFault(after: JsonObject, { logTimeMs }: CommandContext): Outcome | null {
  const { expiresAt } = after
  if (typeof expiresAt === 'number' && expiresAt > logTimeMs) return null
  return faulty({ field: 'expiresAt', reason: 'expiresAt must be in the future' })
}

/** Fault in what its method needs beside the identity. */
function detailFault(state: State, after: JsonObject): Outcome | null {
  const method = textOf(after, 'method')
  if (method === 'ottca') {
    const caId = textOf(after, 'caId')
    if (state.get('ca', caId) !== undefined) return null
    return faulty({ field: 'caId', reason: 'ca not found', value: caId.slice(0, 128) })
  }
  return method === 'updb' ? usernameFault(textOf(after, 'username')) : null
}

function usernameFault(username: string): Outcome | null {
  if (username === '') return faulty({ field: 'username', reason: 'username is required' })
  const { minLength, maxLength } = usernameSchema
  if (username.length >= minLength && username.length <= maxLength) return null
  const reason = `username in body should be ${minLength} to ${maxLength} chars long`
  return faulty({ field: 'username', reason })
}

/** One that has expired stands in the way too: it can be refreshed or deleted. */
function outstandingRefusal(state: State, after: JsonObject): Outcome | null {
  const method = textOf(after, 'method')
  const ids = state.table('enrollment').indexes.ids('identityId', textOf(after, 'identityId'))
  for (const id of ids) {
    if (state.get<Enrollment>('enrollment', id)?.method !== method) continue
    const reason = `the identity has an outstanding enrollment of the method ${method}`
    return faulty({ field: 'method', reason, value: method }, 'ENROLLMENT_EXISTS')
  }
  return null
}

/** A router has one enrollment at most: the last one. */
function replaceOfRouter({ before, after }: Written, { state, remove }: Consequences): void {
  if (before !== undefined) return
  for (const field of Object.keys(routerKinds)) {
    const routerId = textOf(after, field)
    if (routerId === '') continue
    for (const id of Array.from(state.table('enrollment').indexes.ids(field, routerId))) {
      if (id !== after.id) remove('enrollment', id)
    }
  }
}
