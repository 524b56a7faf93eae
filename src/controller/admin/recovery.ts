import { create, toBinary } from '@bufbuild/protobuf'

import { AdminRecoverSchema, CommandKind } from '../../../proto/gen/command_pb.ts'
import { passwordFault } from '../../api/auth/password-rules.ts'
import { hashPassword } from '../../api/auth/password.ts'
import type { Authenticator } from '../../entities/authenticator.ts'
import type { Identity } from '../../entities/identity.ts'
import { recoveryPolicyOf } from '../../fsm/authentication.ts'
import { Problem, fieldProblem } from '../../lib/problems.ts'
import { newShortId } from '../../lib/random.ts'
import type { Proposer } from '../../ports/proposer.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { AdminVerbs } from './server.ts'

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
        passwordHash: await hashPassword(checkedPassword(parts.state, name, password)),
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

/** By the policy that its holder will log in by. */
function checkedPassword(
  state: Pick<StateView, 'get' | 'findAll'>,
  name: string,
  password: unknown,
): string {
  if (typeof password !== 'string') throw fieldProblem('password', 'must be a text')
  const identity = (state.findAll('identity', 'isAdmin', 'true') as Identity[]).find((one) =>
    name === '' ? one.isDefaultAdmin : one.name === name,
  )
  const policy = identity === undefined ? undefined : recoveryPolicyOf(state, identity)
  const reason = passwordFault(policy, password)
  if (reason === null) return password
  throw fieldProblem('password', reason)
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
