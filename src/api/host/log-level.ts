import type { NamedSchema } from '../../entities/operations.ts'
import { closedObjectSchema } from '../../entities/response-schemas.ts'
import { type LogLevelControl, switchableLogLevels } from './log-level-control.ts'
import { detailResponse } from '../http/responses/envelope.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { findIgnoredFields } from '../schemas/request-body-validator.ts'
import { objectSchema } from '../schemas/typed-schema.ts'
import { requestActor } from '../http/request-context.ts'

interface LogLevelOperationsDeps {
  readonly logLevel: LogLevelControl
}

const wanted = objectSchema(
  'logLevelUpdate',
  { level: { type: 'string', enum: switchableLogLevels } },
  ['level'],
)

const shown: NamedSchema = {
  name: 'logLevelDetail',
  schema: closedObjectSchema({
    level: { type: 'string', description: 'current level' },
    configured: { type: 'string', description: 'level after a restart' },
  }),
}

const common = {
  tag: 'cluster',
  apis: ['fabric'],
  permission: 'admin',
  needsNoState: true,
  path: '/log-level',
  success: 200,
  response: { kind: 'detail', schema: shown },
} as const

/**
 * Operations on the log level of the controller that receives the request; each controller has its
 * own level.
 */
export function logLevelOperations({ logLevel }: LogLevelOperationsDeps): Operation[] {
  return [
    {
      ...common,
      operationId: 'detailLogLevel',
      summary: 'Show the log level of this controller',
      method: 'GET',
      handle: () => detailResponse({ ...logLevel.get() }),
    },
    operationWithBody({
      ...common,
      operationId: 'updateLogLevel',
      summary: 'Set the log level of this controller until it restarts',
      method: 'PUT',
      body: { schema: wanted, isRequired: true },
      handle: (call, body) => {
        const state = logLevel.set(body.level, requestActor(call))
        return detailResponse({ ...state }, findIgnoredFields(wanted.schema, body))
      },
    }),
  ]
}
