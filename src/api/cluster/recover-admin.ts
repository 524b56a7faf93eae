import { create, toBinary } from '@bufbuild/protobuf'

import { AdminRecoverSchema, CommandKind } from '../../../proto/gen/command_pb.ts'
import { recoveryAuthPolicy } from '../../fsm/apply/authentication.ts'
import { fieldProblem } from '../../lib/problems.ts'
import { newShortId } from '../../lib/random.ts'
import type { StateView } from '../../ports/state-view.ts'
import { detailResponse, type Reply } from '../http/responses/envelope.ts'
import { passwordFault } from '../../auth/factors/password-rules.ts'
import { requestOrigin, type RequestContext } from '../http/request-context.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { adminRecoverySchema, recoveredAdminSchema } from './status-schema.ts'
import type { PasswordVerifier } from '../../auth/factors/password-verifier.ts'
import type { ProposalWriter } from '../http/proposal-writer.ts'
import type { SchemaValue } from '../schemas/typed-schema.ts'

interface AdminRecoveryOperationsDeps {
  readonly state: StateView
  readonly passwords: PasswordVerifier
  readonly writer: ProposalWriter
}

/** The administrator whose access was restored. */
export interface RecoveredAdmin {
  readonly identityId: string
  readonly name: string
  readonly username: string
  readonly authPolicyId: string
}

type Records = Pick<StateView, 'get' | 'findAll'>

/**
 * Operation that restores access for an administrator who has lost the password, or whose auth
 * policy prevents log-in.
 */
export function adminRecoveryOperations(deps: AdminRecoveryOperationsDeps): Operation[] {
  return [
    operationWithBody({
      operationId: 'clusterRecoverAdmin',
      summary: 'Restore the log-in of an administrator with a new password (admin socket only)',
      tag: 'cluster',
      apis: ['fabric'],
      method: 'POST',
      path: '/cluster/recover-admin',
      permission: 'admin',
      body: { schema: adminRecoverySchema, isRequired: true },
      success: 200,
      response: { kind: 'detail', schema: recoveredAdminSchema },
      refusals: [403, 404, 409],
      handle: (call, body) => recover(deps, call, body),
    }),
  ]
}

async function recover(
  { state, passwords, writer }: AdminRecoveryOperationsDeps,
  call: RequestContext,
  { name = '', password }: SchemaValue<typeof adminRecoverySchema.schema>,
): Promise<Reply> {
  checkPassword(state, name, password)
  const message = create(AdminRecoverSchema, {
    name,
    passwordHash: await passwords.hash(call, password),
    authenticatorId: newShortId(),
  })
  const payload = toBinary(AdminRecoverSchema, message)
  const id = await writer.write(requestOrigin(call), { kind: CommandKind.ADMIN_RECOVER, payload })
  return detailResponse(recoveredBy(state, id))
}

/**
 * Checks the password against the auth policy that will apply to the administrator.
 * @throws {Problem} COULD_NOT_VALIDATE.
 */
function checkPassword(state: Records, name: string, password: string): void {
  const identity = state
    .findAll('identity', 'isAdmin', 'true')
    .find((one) => (name === '' ? one.isDefaultAdmin : one.name === name))
  const policy = identity === undefined ? undefined : recoveryAuthPolicy(state, identity)
  const reason = passwordFault(policy, password)
  if (reason !== null) throw fieldProblem('password', reason)
}

function recoveredBy(state: Records, id: string): RecoveredAdmin {
  const identity = state.get('identity', id)
  const authenticator = state
    .findAll('authenticator', 'identityId', id)
    .find((one) => one.method === 'updb')
  return {
    identityId: id,
    name: identity?.name ?? '',
    username: authenticator?.username ?? '',
    authPolicyId: identity?.authPolicyId ?? '',
  }
}
