import type { NamedSchema } from '../../entities/operations.ts'
import {
  type LogLevelControl,
  type SwitchableLogLevel,
  switchableLogLevels,
} from './log-level-control.ts'
import { detailAnswer } from '../answers/envelope.ts'
import type { Operation } from '../operation.ts'
import { ignoredFieldsOf } from '../schemas/validation.ts'
import { actorOfCall } from '../call.ts'

interface Needs {
  readonly logLevel: LogLevelControl
}

const wanted: NamedSchema = {
  name: 'logLevelUpdate',
  schema: {
    type: 'object',
    properties: { level: { type: 'string', enum: [...switchableLogLevels] } },
    required: ['level'],
  },
}

const shown: NamedSchema = {
  name: 'logLevelDetail',
  schema: {
    type: 'object',
    properties: {
      level: { type: 'string', description: 'current level' },
      configured: { type: 'string', description: 'level after a restart' },
    },
    required: ['level', 'configured'],
    additionalProperties: false,
  },
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

/** The log level of the controller that is asked; each has its own. */
export function logLevelOperations({ logLevel }: Needs): Operation[] {
  return [
    {
      ...common,
      operationId: 'detailLogLevel',
      summary: 'Show the log level of this controller',
      method: 'GET',
      refusals: [401, 429, 503],
      handle: () => detailAnswer({ ...logLevel.get() }),
    },
    {
      ...common,
      operationId: 'updateLogLevel',
      summary: 'Set the log level of this controller until it restarts',
      method: 'PUT',
      body: { schema: wanted, isRequired: true },
      refusals: [400, 401, 413, 429, 503],
      handle: (call) => {
        const { level } = call.body as { readonly level: SwitchableLogLevel }
        const state = logLevel.set(level, actorOfCall(call))
        return detailAnswer({ ...state }, ignoredFieldsOf(wanted.schema, call.body))
      },
    },
  ]
}
