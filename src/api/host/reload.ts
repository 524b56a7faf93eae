import type { NamedSchema } from '../../entities/operations.ts'
import {
  arraySchema,
  closedObjectSchema,
  booleanSchema,
  textSchema,
} from '../../entities/response-schemas.ts'
import { detailResponse } from '../http/responses/envelope.ts'
import { requestActor } from '../http/request-context.ts'
import type { Operation } from '../http/operation.ts'
import type { ReloadControl } from './reload-control.ts'

interface ReloadOperationsDeps {
  readonly reloads: ReloadControl
}

const nullableText = { type: ['string', 'null'] } as const

const result: NamedSchema = {
  name: 'configurationReloadDetail',
  schema: closedObjectSchema({
    path: textSchema,
    changed: arraySchema(
      closedObjectSchema({
        key: textSchema,
        from: nullableText,
        to: nullableText,
        isInForce: booleanSchema,
      }),
    ),
    changedFiles: arraySchema(
      closedObjectSchema({
        key: textSchema,
        path: textSchema,
        isInForce: booleanSchema,
        isRejected: booleanSchema,
      }),
    ),
    refusedCertificates: nullableText,
  }),
}

/**
 * Operations that reload the configuration of the controller that receives the request; each
 * controller has its own configuration.
 */
export function reloadOperations({ reloads }: ReloadOperationsDeps): Operation[] {
  return [
    {
      operationId: 'reloadConfiguration',
      summary: 'Read the configuration of this controller again, and apply what needs no restart',
      tag: 'cluster',
      apis: ['fabric'],
      method: 'POST',
      path: '/configuration/reload',
      permission: 'admin',
      needsNoState: true,
      success: 200,
      response: { kind: 'detail', schema: result },
      refusals: [403, 409],
      handle: async (call) => detailResponse(await reloads.reload(requestActor(call))),
    },
  ]
}
