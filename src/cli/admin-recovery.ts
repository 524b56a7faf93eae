import { create, toBinary } from '@bufbuild/protobuf'

import { AdminRecoverSchema, CommandKind } from '../../proto/gen/command_pb.ts'
import { hashPassword } from '../api/auth/password.ts'
import { passwordSchema } from '../entities/authenticator.ts'
import type { Authenticator } from '../entities/authenticator.ts'
import type { Identity } from '../entities/identity.ts'
import { Problem, fieldProblem } from '../lib/problems.ts'
import { newShortId } from '../lib/random.ts'
import type { Proposer } from '../ports/proposer.ts'
import type { StateView } from '../ports/state-view.ts'
import type { AdminVerbs } from './admin-server.ts'

export interface RecoveredAdmin {
  readonly identityId: string
  readonly name: string
  readonly username: string
  readonly authPolicyId: string
}

/** The verb that brings an administrator back whose password is lost or whom a policy shuts out. */
export function recoveryVerbs(parts: {
  readonly proposer: Proposer
  readonly state: Pick<StateView, 'get' | 'findAll'>
}): AdminVerbs {
  return {
    'recover-admin': async (params, by) => {
      const { name = '', password } = params
      if (typeof name !== 'string') throw fieldProblem('name', 'must be a text')
      const message = create(AdminRecoverSchema, {
        name,
        passwordHash: await hashPassword(checkedPassword(password)),
        authenticatorId: newShortId(),
      })
      const { outcome } = await parts.proposer.propose({
        kind: CommandKind.ADMIN_RECOVER,
        payload: toBinary(AdminRecoverSchema, message),
        actor: by,
      })
      if (outcome.ok) return recovered(parts.state, outcome.id)
      const { code, fault, detail } = outcome
      throw new Problem(code, {
        ...(fault === null ? {} : { fault }),
        ...(detail === null ? {} : { detail }),
      })
    },
  }
}

function checkedPassword(password: unknown): string {
  const { minLength, maxLength } = passwordSchema
  const length = typeof password === 'string' ? [...password].length : 0
  if (typeof password === 'string' && length >= minLength && length <= maxLength) return password
  throw fieldProblem('password', `should be ${minLength} to ${maxLength} characters long`)
}

function recovered(state: Pick<StateView, 'get' | 'findAll'>, id: string): RecoveredAdmin {
  const identity = state.get<Identity>('identity', id)
  const authenticator = state
    .findAll('authenticator', 'identityId', id)
    .find((one) => one['method'] === 'updb') as Authenticator | undefined
  return {
    identityId: id,
    name: identity?.name ?? '',
    username: authenticator?.username ?? '',
    authPolicyId: identity?.authPolicyId ?? '',
  }
}
