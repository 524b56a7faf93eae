import type { DecryptedFactor, RestoreControl } from './restore-control.ts'
import { detailResponse, emptyResponse } from '../http/responses/envelope.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { emptyBodySchema } from '../schemas/envelope.ts'
import {
  type UnencryptedFactorBody,
  restoreBeginSchema,
  restoreChunkSchema,
  restoreResultSchema,
  restoreEndSchema,
  restoreFactorsSchema,
  encryptedFactorsSchema,
} from './restores-schema.ts'
import { responseTimeLimits } from '../cluster/response-time-limits.ts'
import { requestActor } from '../http/request-context.ts'

interface RestoreOperationsDeps {
  readonly restores: RestoreControl
}

/**
 * Operations that replace the records of the running cluster with the records in a backup
 * (docs/operate/backup-and-restore.md).
 */
export function restoreOperations({ restores }: RestoreOperationsDeps): Operation[] {
  const common = {
    tag: 'cluster',
    apis: ['fabric'],
    permission: 'admin',
    success: 200,
    method: 'POST',
    refusals: [403, 409],
    answerMsMax: responseTimeLimits.restoreMsMax,
  } as const
  return [
    operationWithBody({
      ...common,
      operationId: 'clusterRestoreBegin',
      summary: 'Start staging a restore (admin socket only)',
      path: '/cluster/restore/begin',
      body: { schema: restoreBeginSchema, isRequired: true },
      response: { kind: 'detail', schema: emptyBodySchema },
      handle: async (call, given) => {
        await restores.begin({ allowsOtherCluster: false, ...given }, requestActor(call))
        return emptyResponse()
      },
    }),
    operationWithBody({
      ...common,
      operationId: 'clusterRestoreChunk',
      summary: 'Stage a chunk of a restore (admin socket only)',
      path: '/cluster/restore/chunk',
      body: { schema: restoreChunkSchema, isRequired: true },
      response: { kind: 'detail', schema: emptyBodySchema },
      handle: async (call, given) => {
        const bytes = Uint8Array.from(Buffer.from(given.bytes, 'base64'))
        await restores.stage({ ...given, bytes }, requestActor(call))
        return emptyResponse()
      },
    }),
    operationWithBody({
      ...common,
      operationId: 'clusterRestoreEnd',
      summary: 'Replace all records by the staged ones, or discard those (admin socket only)',
      path: '/cluster/restore/end',
      body: { schema: restoreEndSchema, isRequired: true },
      response: { kind: 'detail', schema: restoreResultSchema },
      handle: async (call, given) => {
        const ending = { isAbandoned: false, ifIndex: 0, reason: '', ...given }
        return detailResponse(await restores.end(ending, requestActor(call)))
      },
    }),
    operationWithBody({
      ...common,
      operationId: 'clusterRestoreFactors',
      summary: 'Encrypt the second factors of a backup for this cluster (admin socket only)',
      path: '/cluster/restore/factors',
      body: { schema: restoreFactorsSchema, isRequired: true },
      response: { kind: 'detail', schema: encryptedFactorsSchema },
      handle: async (_call, { factors }) =>
        detailResponse(await restores.seal(factors.map(factorOf))),
    }),
  ]
}

function factorOf({ secret, ...rest }: UnencryptedFactorBody): DecryptedFactor {
  return { ...rest, secret: Uint8Array.from(Buffer.from(secret, 'base64')) }
}
