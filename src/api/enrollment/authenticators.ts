import { create, toBinary } from '@bufbuild/protobuf'
import { AuthenticatorRequestExtendSchema, CommandKind } from '../../../proto/gen/command_pb.ts'
import { emptyResponse } from '../http/responses/envelope.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { emptyBodySchema } from '../schemas/envelope.ts'
import { authenticatorExtensionRequestSchema } from '../sessions/sessions-schema.ts'
import { requestOrigin } from '../http/request-context.ts'
import type { ProposalWriter } from '../http/proposal-writer.ts'

interface AuthenticatorOperationsDeps {
  readonly writer: ProposalWriter
}

/**
 * Operations on the authenticators of all identities, in addition to reading and writing their
 * fields.
 */
export function authenticatorOperations({ writer }: AuthenticatorOperationsDeps): Operation[] {
  return [
    operationWithBody({
      operationId: 'requestExtendAuthenticator',
      summary: 'Request that a certificate be renewed at the next log-in',
      tag: 'authenticators',
      apis: ['management'],
      permission: 'authenticator.update',
      method: 'POST',
      path: '/authenticators/{id}/request-extend',
      body: { schema: authenticatorExtensionRequestSchema, isRequired: true },
      success: 200,
      response: { kind: 'detail', schema: emptyBodySchema },
      refusals: [403, 404, 409],
      handle: async (call, { rollKeys }) => {
        const message = create(AuthenticatorRequestExtendSchema, {
          id: call.param('id'),
          rollKeys: rollKeys === true,
        })
        const payload = toBinary(AuthenticatorRequestExtendSchema, message)
        await writer.write(requestOrigin(call), {
          kind: CommandKind.AUTHENTICATOR_REQUEST_EXTEND,
          payload,
        })
        return emptyResponse()
      },
    }),
  ]
}
