import type { Authenticator } from '../../entities/kinds/authenticator.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { adminLossReason } from '../apply/admins.ts'
import type {
  CommandContext,
  WriteConsequences,
  KindRules,
  ValidatedWrite,
  CompletedWrite,
} from '../apply/command-context.ts'
import { endSessionsReferencing } from '../apply/session-validity.ts'
import { fieldFaultOutcome, refusedOutcome } from '../apply/outcome.ts'
import type { State } from '../records/state.ts'

export const authenticatorRules: KindRules<Authenticator> = {
  judgeWrite: judgeAuthenticator,
  judgeDelete: judgeAuthenticatorDelete,
  afterWrite: followPassword,
}

function judgeAuthenticator(state: State, write: ValidatedWrite<Authenticator>): Outcome | null {
  const { before, after } = write
  if (before === undefined) return newAuthenticatorRefusal(state, after)
  const hasMoved = before.username !== after.username || before.passwordHash !== after.passwordHash
  if (before.method !== 'updb')
    return hasMoved ? refusedOutcome('CAN_NOT_UPDATE_AUTHENTICATOR') : null
  return missingFault(after, updbNeeds)
}

function judgeAuthenticatorDelete(
  state: State,
  { id }: Authenticator,
  { logTimeMs }: CommandContext,
): Outcome | null {
  const reason = adminLossReason(state, { kind: 'authenticator', id, after: undefined }, logTimeMs)
  return reason === null ? null : refusedOutcome('ENTITY_CAN_NOT_BE_DELETED', reason)
}

/**
 * Consequences of a password change: the count of failed attempts is reset, and all sessions of the
 * identity end except the one that changed the password.
 */
function followPassword(
  { before, after }: CompletedWrite<Authenticator>,
  { state, context, remove }: WriteConsequences,
): void {
  if (before?.passwordHash === after.passwordHash) return
  remove('passwordAttempts', after.id)
  if (before === undefined) return
  const { identityId } = after
  // @guard old-password--sessions
  endSessionsReferencing({ state, context }, 'identityId', identityId, context.sessionId)
}

/** Required fields of each method, mapped to their names in requests. */
const updbNeeds = { username: 'username', passwordHash: 'password' } as const
const certNeeds = { certPem: 'certPem', fingerprint: 'certPem' } as const

/**
 * Fault of an authenticator without credentials. Such an authenticator would be useless, and would
 * prevent the creation of a usable one.
 */
function missingFault(
  after: Partial<Authenticator>,
  needs: Readonly<Partial<Record<keyof Authenticator, string>>>,
): Outcome | null {
  for (const [name, field] of Object.entries(needs)) {
    if (after[name as keyof typeof needs]) continue
    return fieldFaultOutcome({ field, reason: `${field} is required` })
  }
  return null
}

function newAuthenticatorRefusal(state: State, after: Partial<Authenticator>): Outcome | null {
  const { identityId = '', method } = after
  if (method !== 'updb' && method !== 'cert') {
    return fieldFaultOutcome({
      field: 'method',
      reason: 'method in body should be one of [updb cert]',
    })
  }
  if (state.get('identity', identityId)?.typeId === 'Router') {
    const reason = 'an identity of the type Router has no authenticators'
    return fieldFaultOutcome({ field: 'identityId', reason, value: identityId })
  }
  for (const id of state.table('authenticator').indexes.ids('identityId', identityId)) {
    if (state.get('authenticator', id)?.method === method) {
      return refusedOutcome('MAX_AUTHENTICATOR_METHODS_REACHED')
    }
  }
  return missingFault(after, method === 'updb' ? updbNeeds : certNeeds) ?? caFault(state, after)
}

function caFault(state: State, { caId }: Partial<Authenticator>): Outcome | null {
  if (!caId || state.get('ca', caId)?.isVerified === true) return null
  return fieldFaultOutcome({
    field: 'certPem',
    reason: 'the CA that issued the certificate is not verified',
  })
}
