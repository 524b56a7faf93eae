import type { Actor } from '../../../proto/gen/command_pb.ts'
import type { Identity } from '../../entities/identity.ts'
import { isGranted } from '../../entities/permissions.ts'
import type { JsonObject } from '../../lib/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { pendingFactors } from '../authentication.ts'
import type { State } from '../state.ts'
import type { CommandContext } from './context.ts'
import { refused } from './outcome.ts'
import type { Refusal } from './outcome.ts'

/**
 * `full`: an administrator, the holder of a session in its own matters, or a controller itself. `limited`: somebody who
 * was given a permission, which reaches no administrator.
 */
export type Authority = 'full' | 'limited'

/** Kinds whose records belong to an identity, by `identityId`, and let others act as it or change what it gets. */
export const ownedKinds: ReadonlySet<string> = new Set([
  'authenticator',
  'enrollment',
  'mfa',
  'serviceConfig',
])

/**
 * What the caller of a command may do as the log stands there; null: nothing. The gate judged the same from what its
 * controller had applied: a log-out or a right taken away before this entry counts, wherever it was asked for.
 */
export function authorityOf(state: State, actor: Actor | undefined): Authority | null {
  if (actor === undefined || actor.permission === '') return 'full'
  if (actor.sessionId !== '' && state.get('apiSession', actor.sessionId) === undefined) return null
  const identity = state.get<Identity>('identity', actor.identityId)
  if (identity === undefined) return null
  if (actor.permission === 'partial') return 'full'
  if (pendingFactors(state, identity).length > 0) return null
  if (identity.isAdmin || actor.permission === 'session') return 'full'
  // What comes through the log is no read.
  return isGranted(identity.permissions, actor.permission, false) ? 'limited' : null
}

/** What of the state is needed to tell whose record it is. */
type Records = Pick<State, 'get'>

/** Whether a record is an administrator, or belongs to one and lets whoever knows it act as that one. */
export function isOfAdmin(records: Records, kind: string, record: JsonObject): boolean {
  if (kind === 'identity') return record['isAdmin'] === true
  const ownerId = ownedKinds.has(kind) ? record['identityId'] : null
  return typeof ownerId === 'string' && isAdmin(records, ownerId)
}

function isAdmin(records: Records, identityId: string): boolean {
  return records.get('identity', identityId)?.['isAdmin'] === true
}

const untouchable = 'only an administrator may touch an administrator'
const unsettable = 'only an administrator may set isAdmin or permissions'

/** Why a caller may not act on an identity; null when it may, and when there is none. */
export function identityGuard(
  state: State,
  identityId: string,
  { authority }: CommandContext,
): Refusal | null {
  if (authority === 'full' || !isAdmin(state, identityId)) return null
  return refused('UNAUTHORIZED', untouchable)
}

export interface GuardedWrite {
  readonly kind: string
  readonly mode: 'create' | 'replace' | 'patch' | 'delete'
  /** Undefined at create. */
  readonly before: EntityRecord | undefined
  /** Those given. */
  readonly fields: JsonObject
}

/** Why a caller may not write that record, though it may write others of the kind; null when it may. */
export function writeGuard(
  state: State,
  { kind, mode, before, fields }: GuardedWrite,
  { authority }: CommandContext,
): Refusal | null {
  if (authority === 'full') return null
  if (kind === 'identity' && setsRights(mode, fields)) return refused('UNAUTHORIZED', unsettable)
  const isTouched =
    (before !== undefined && isOfAdmin(state, kind, before)) || isOfAdmin(state, kind, fields)
  return isTouched ? refused('UNAUTHORIZED', untouchable) : null
}

/** A replacement says both, whatever it says. */
function setsRights(mode: GuardedWrite['mode'], fields: JsonObject): boolean {
  if (mode === 'replace') return true
  if (mode === 'patch') return 'isAdmin' in fields || 'permissions' in fields
  const permissions = fields['permissions']
  return fields['isAdmin'] === true || (Array.isArray(permissions) && permissions.length > 0)
}
