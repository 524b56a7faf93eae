import { CommandKind } from '../../../proto/gen/command_pb.ts'
import type { KindName } from '../../entities/kind-records.ts'
import { isSameJson, type JsonObject } from '../../lib/text/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { isGranted } from '../../lib/permissions.ts'
import {
  actorFault,
  type LoggedActor,
  type EnrollmentActor,
  type LoggedSessionActor,
  type CredentialIdField,
} from '../../ports/actor.ts'
import { pendingFactorsWithToken } from './external-tokens.ts'
import { sessionValidity } from './session-validity.ts'
import type { State } from '../records/state.ts'
import type { CommandAuthority, CommandContext } from './command-context.ts'
import { type Refusal, refusedOutcome } from './outcome.ts'

/** Rights of the actor who sends a command. */
interface ActorRights {
  readonly authority: CommandAuthority
  /**
   * Permissions of the actor's identity. A limited caller can act only on identities whose
   * permissions it also has.
   */
  readonly held: readonly string[]
}

const withoutIdentity: ActorRights = { authority: 'full', held: [] }

/**
 * Kinds of records that belong to an identity (`identityId`) and that matter for its security: a
 * caller who can write such a record could act as the identity, or change what it receives.
 */
export const identityOwnedKinds: ReadonlySet<string> = new Set([
  'authenticator',
  'enrollment',
  'mfa',
  'serviceConfig',
])

/**
 * Rights of a command's actor at the time when the command is applied; null: none. The receiving
 * controller has checked the rights with its own state. The state machine checks them again,
 * because a log-out or a revoked permission may precede this entry in the log. A missing field or
 * an unknown permission grants nothing.
 */
export function actorRights(state: State, actor: LoggedActor, kind: number): ActorRights | null {
  // @guard authority-from-absence--apply
  if (actor === undefined || actorFault(actor) !== null) return null
  switch (actor.case) {
    case 'system':
      return withoutIdentity
    case 'session':
      return systemAlone.has(kind) ? null : sessionRights(state, actor.value)
    case 'enrollment':
      return enrollmentRights(actor.value, kind)
    default:
      return null
  }
}

/**
 * The credential that authorizes each of these commands. An enrollment token or JWT authorizes one
 * operation; a router's certificate authorizes the router's own operations.
 */
const shownFor: ReadonlyMap<number, CredentialIdField> = new Map([
  [CommandKind.ENROLL, 'enrollmentId'],
  [CommandKind.CA_ENROLL, 'caId'],
  [CommandKind.ROUTER_EXTEND, 'routerId'],
  [CommandKind.ROUTER_EXTEND_BEGIN, 'routerId'],
  [CommandKind.ROUTER_EXTEND_VERIFY, 'routerId'],
  [CommandKind.TOKEN_ENROLL, 'signerId'],
  [CommandKind.HOSTED_TERMINATOR_CREATE, 'routerId'],
  [CommandKind.HOSTED_TERMINATOR_UPDATE, 'routerId'],
  [CommandKind.HOSTED_TERMINATORS_REMOVE, 'routerId'],
  [CommandKind.CERTIFICATE_ADOPT, 'routerId'],
])

/**
 * Commands that are refused for every session. The RESTORE_… commands replace records of most
 * kinds, and LOG_TIME_RESET sets the time by which sessions and tokens expire; only the host user
 * of a controller causes them. ACCESS_REVOKE follows the removal of a compromised controller.
 * Controllers send CERTIFICATE_ADOPT and PASSWORD_REHASH for a client that has proved its
 * credential but has no session yet, and ACCESS_END and ROUTER_PRESENCE on their own initiative.
 */
// @guard access-after-a-compromise--actor, log-time-of-an-attacker--session
// @guard hashes-of-a-migrated-network--session
const systemAlone: ReadonlySet<number> = new Set([
  CommandKind.RESTORE_BEGIN,
  CommandKind.RESTORE_CHUNK,
  CommandKind.RESTORE_END,
  CommandKind.LOG_TIME_RESET,
  CommandKind.ACCESS_REVOKE,
  CommandKind.CERTIFICATE_ADOPT,
  CommandKind.PASSWORD_REHASH,
  CommandKind.ACCESS_END,
  CommandKind.ROUTER_PRESENCE,
])

function enrollmentRights(actor: EnrollmentActor, kind: number): ActorRights | null {
  const shown = shownFor.get(kind)
  return shown === undefined || actor[shown] === '' ? null : withoutIdentity
}

function sessionRights(state: State, actor: LoggedSessionActor): ActorRights | null {
  const { identityId, sessionId, permission, signerId } = actor
  const standing = sessionValidity(state, sessionId)
  // @guard authority-from-absence--session
  if (standing?.identity.id !== identityId) return null
  // @guard sessions-of-a-disabled-signer--apply
  if (!standing.isHonored) return null
  const { isAdmin, permissions: held } = standing.identity
  if (permission === 'partial') return { authority: 'full', held }
  const shown = { signerId, signerRevision: Number(actor.signerRevision) }
  const pending = standing.pendingFactors
  if (pending.length > 0 && pendingFactorsWithToken(state, pending, shown).length > 0) return null
  if (isAdmin || permission === 'session') return { authority: 'full', held }
  // The last argument is `false` because a command in the log is never a read.
  return isGranted(held, permission, false) ? { authority: 'limited', held } : null
}

/** The part of the state that is needed to find the owner of a record. */
type Records = Pick<State, 'get'>

/**
 * Id of the identity as which a caller who can read or write the record could act; undefined: none.
 */
function ownerOf(kind: KindName, record: JsonObject): string | undefined {
  const ownerId = identityOwnedKinds.has(kind) ? record['identityId'] : undefined
  return typeof ownerId === 'string' ? ownerId : undefined
}

/**
 * Whether a record belongs to a privileged identity, or is the enrollment of a router with
 * permitted names, which may let the router impersonate a controller. A caller who knows the
 * record's secrets could gain this access.
 */
export function isOwnedByPrivileged(records: Records, kind: KindName, record: JsonObject): boolean {
  const ownerId = ownerOf(kind, record)
  if (ownerId !== undefined && isPrivileged(records.get('identity', ownerId))) return true
  // @guard enrollments-read-before-a-promotion--listed
  return kind === 'enrollment' && hasPermittedNames(enrolledRouterOf(records, record))
}

/** The router that an enrollment enrolls; undefined for an enrollment of an identity. */
function enrolledRouterOf(records: Records, enrollment: JsonObject): JsonObject | undefined {
  const id = enrollment['edgeRouterId'] || enrollment['transitRouterId']
  return typeof id === 'string' ? records.get('router', id) : undefined
}

/**
 * Whether the router has permitted names (`allowedNames`) for its certificate. An administrator may
 * permit even the names of a controller.
 */
export function hasPermittedNames(router: JsonObject | undefined): boolean {
  return namesOf(router).length > 0
}

/** Whether a write gives a router an additional name that its certificate may contain. */
export function gainsCertificateNames(before: JsonObject | undefined, after: JsonObject): boolean {
  const known = namesOf(before)
  return namesOf(after).some((name) => !known.includes(name))
}

function namesOf(router: JsonObject | undefined): readonly string[] {
  const names = router?.['allowedNames']
  return Array.isArray(names) ? (names as readonly string[]) : []
}

/** Whether an identity is an administrator or has any permission. */
export function isPrivileged(identity: JsonObject | undefined): boolean {
  // @guard privilege-escalation--tokens
  return identity?.['isAdmin'] === true || permissionsOf(identity).length > 0
}

const untouchable = 'only an administrator may touch an administrator'
const beyond = 'only an administrator may touch an identity that holds permissions you lack'
const unsettable = 'only an administrator may set isAdmin or permissions'
const unnameable = 'only an administrator may set allowedNames'
const unenrollable = 'only an administrator may enroll a router that has allowedNames'

/**
 * Reason why a caller may not act on an identity; null if it may, or if the identity does not
 * exist.
 */
export function identityActionRefusal(
  state: State,
  identityId: string,
  { authority, held }: CommandContext,
): Refusal | null {
  if (authority === 'full') return null
  const reason = identityActionRefusalReason(state, identityId, held)
  return reason === null ? null : refusedOutcome('UNAUTHORIZED', reason)
}

/**
 * Reason why a non-administrator with these permissions may not act on an identity; null if it may,
 * or if the identity does not exist. A caller who can write an identity or its credentials can act
 * as that identity. The identity must therefore not have permissions that the caller lacks.
 */
export function identityActionRefusalReason(
  records: Records,
  identityId: string,
  held: readonly string[],
): string | null {
  const identity = records.get('identity', identityId)
  if (identity === undefined) return null
  if (identity.isAdmin) return untouchable
  // @guard privilege-escalation--write
  return identity.permissions.every((one) => isHeld(held, one)) ? null : beyond
}

/**
 * Whether the list contains the permission or, for `<kind>.<action>`, the permission for the whole
 * kind.
 */
function isHeld(held: readonly string[], permission: string): boolean {
  return (
    held.includes(permission) || (permission.includes('.') && isGranted(held, permission, true))
  )
}

/**
 * Whether an identity gains a right with a write. If so, a caller with limited rights who could act
 * on the identity before the write may be refused afterwards.
 * @param before undefined for a new identity.
 */
export function gainsRights(before: JsonObject | undefined, after: JsonObject): boolean {
  if (before?.['isAdmin'] === true) return false
  if (after['isAdmin'] === true) return true
  const held = permissionsOf(before)
  // @guard enrollments-read-before-a-promotion--held
  return permissionsOf(after).some((one) => !isHeld(held, one))
}

function permissionsOf(identity: JsonObject | undefined): readonly string[] {
  const permissions = identity?.['permissions']
  return Array.isArray(permissions) ? (permissions as readonly string[]) : []
}

interface GuardedWrite {
  readonly kind: KindName
  readonly mode: 'create' | 'replace' | 'patch' | 'delete'
  /** The record before the write; undefined for a creation. */
  readonly before: EntityRecord | undefined
  /** Fields that the write sets. */
  readonly fields: JsonObject
}

/**
 * Reason why a caller with write permission for the kind may not make this write; null when it may.
 */
export function writeRefusal(
  state: State,
  { kind, mode, before, fields }: GuardedWrite,
  { authority, held }: CommandContext,
): Refusal | null {
  if (authority === 'full') return null
  if (kind === 'identity' && setsRights(mode, fields))
    return refusedOutcome('UNAUTHORIZED', unsettable)
  // @guard router-certificate-names--allowed
  if (changesNames(before, fields)) return refusedOutcome('UNAUTHORIZED', unnameable)
  for (const record of before === undefined ? [fields] : [before, fields]) {
    // @guard enrollments-read-before-a-promotion--made
    if (kind === 'enrollment' && hasPermittedNames(enrolledRouterOf(state, record))) {
      return refusedOutcome('UNAUTHORIZED', unenrollable)
    }
    const identityId = kind === 'identity' ? before?.id : ownerOf(kind, record)
    const reason =
      identityId === undefined ? null : identityActionRefusalReason(state, identityId, held)
    if (reason !== null) return refusedOutcome('UNAUTHORIZED', reason)
  }
  return null
}

/**
 * Whether a write changes the permitted names of a router. With certain names, a router could
 * impersonate a controller.
 */
function changesNames(before: EntityRecord | undefined, fields: JsonObject): boolean {
  const { allowedNames: names } = fields
  return names !== undefined && !isSameJson(names, before?.['allowedNames'] ?? [])
}

/**
 * Whether a write sets the administrator flag or the permissions. A replacement (PUT) always sets
 * both, because absent fields become empty.
 */
function setsRights(mode: GuardedWrite['mode'], fields: JsonObject): boolean {
  if (mode === 'replace') return true
  if (mode === 'patch') return 'isAdmin' in fields || 'permissions' in fields
  const permissions = fields['permissions']
  return fields['isAdmin'] === true || (Array.isArray(permissions) && permissions.length > 0)
}
