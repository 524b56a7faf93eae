import { fromBinary } from '@bufbuild/protobuf'
import { type AdminRecover, AdminRecoverSchema } from '../../../proto/gen/command_pb.ts'
import {
  permissivePrimaryRules,
  permissiveSecondaryRules,
} from '../../entities/parts/auth-policy-factors.ts'
import type { Authenticator } from '../../entities/kinds/authenticator.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { identityAuthPolicy, recoveryAuthPolicy } from '../apply/authentication.ts'
import type { State } from '../records/state.ts'
import type { CommandContext } from '../apply/command-context.ts'
import { endSessionsReferencing } from '../apply/session-validity.ts'
import { deleteMfa } from './mfa.ts'
import { acceptedOutcome, fieldFaultOutcome, refusedOutcome } from '../apply/outcome.ts'
import { deleteIdentityPasswordAttempts } from './password-attempt.ts'
import { createWriteConsequences } from '../apply/references.ts'

/**
 * Sets the password of an administrator and removes everything that prevents a log-in with it:
 * disablement, a lockout, MFA, a policy that does not allow passwords or requires a second factor.
 * Ends the sessions of the administrator, because an attacker may use them. All of this is one log
 * entry.
 */
export function recoverAdmin(state: State, payload: Uint8Array, context: CommandContext): Outcome {
  const message = fromBinary(AdminRecoverSchema, payload)
  const identity = administratorNamed(state, message.name)
  if (identity === undefined) {
    const who =
      message.name === '' ? 'default administrator' : `administrator named ${message.name}`
    return refusedOutcome('NOT_FOUND', `there is no ${who.slice(0, 256)}`)
  }
  const known = passwordOf(state, identity.id)
  if (known === undefined && isTaken(state, 'username', identity.name)) {
    const reason = `another identity logs in as ${identity.name}; rename its user name or recover another administrator`
    return fieldFaultOutcome({ field: 'username', reason })
  }
  const { put } = createWriteConsequences(state, context)
  const authPolicyId = usablePolicyId(state, identity, context)
  endSessionsReferencing({ state, context }, 'identityId', identity.id)
  put('identity', identity.id, {
    ...identity,
    authPolicyId,
    disabledAt: null,
    disabledUntil: null,
  })
  putPassword(state, identity, known, message, context)
  deleteIdentityPasswordAttempts(state, identity.id)
  deleteMfa(state, identity.id, context)
  const fields = authPolicyId === identity.authPolicyId ? [] : ['authPolicyId']
  context.touched.unshift({ action: 'patch', entity: 'identity', id: identity.id, fields })
  return acceptedOutcome(identity.id)
}

function administratorNamed(state: State, name: string): Identity | undefined {
  for (const id of state.table('identity').indexes.ids('isAdmin', 'true')) {
    const identity = state.get('identity', id)
    if (identity === undefined) continue
    if (name === '' ? identity.isDefaultAdmin : identity.name === name) return identity
  }
  return undefined
}

function passwordOf(state: State, identityId: string): Authenticator | undefined {
  for (const id of state.table('authenticator').indexes.ids('identityId', identityId)) {
    const known = state.get('authenticator', id)
    if (known?.method === 'updb') return known
  }
  return undefined
}

function isTaken(state: State, field: string, value: string): boolean {
  return state.table('authenticator').indexes.owner(field, value) !== undefined
}

function putPassword(
  state: State,
  identity: Identity,
  known: Authenticator | undefined,
  { authenticatorId, passwordHash }: AdminRecover,
  context: CommandContext,
): void {
  const id = known?.id ?? authenticatorId
  const made = { method: 'updb', identityId: identity.id, username: identity.name }
  createWriteConsequences(state, context).put('authenticator', id, {
    ...made,
    ...known,
    passwordHash,
  })
  const action = known === undefined ? 'create' : 'patch'
  context.touched.push({ action, entity: 'authenticator', id, fields: ['passwordHash'] })
}

/**
 * Id of the auth policy for the recovered administrator: the identity's own policy if it allows the
 * log-in, otherwise the default policy if that one does. Otherwise the id of a new policy, so that
 * the recovery affects no other identity.
 */
function usablePolicyId(state: State, identity: Identity, context: CommandContext): string {
  const known = recoveryAuthPolicy(state, identity)
  if (known !== undefined) {
    return identityAuthPolicy(state, identity) === known ? identity.authPolicyId : known.id
  }
  const id = `recovery-${context.index}`
  createWriteConsequences(state, context).put('authPolicy', id, {
    name: nameFor(state, id),
    primary: permissivePrimaryRules,
    secondary: permissiveSecondaryRules,
  })
  context.touched.push({ action: 'create', entity: 'authPolicy', id, fields: [] })
  return id
}

/**
 * An unused name for the new policy: names are unique, and another record may have the preferred
 * name.
 */
function nameFor(state: State, id: string): string {
  let name = id
  while (state.table('authPolicy').indexes.owner('name', name) !== undefined) name += '-'
  return name
}
