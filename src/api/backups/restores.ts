import type {
  OpenFactor,
  RestoreAnnouncement,
  RestoreControl,
  RestoreEnding,
} from './restore-control.ts'
import { detailAnswer, emptyAnswer } from '../answers/envelope.ts'
import type { Operation } from '../operation.ts'
import { nothing } from '../schemas/envelope.ts'
import {
  restoreBegin,
  restoreChunk,
  restored,
  restoreEnd,
  restoreFactors,
  sealedFactors,
} from './restores-schema.ts'
import { answerTimes } from '../cluster/answer-times.ts'
import { actorOfCall } from '../call.ts'

interface Needs {
  readonly restores: RestoreControl
}

/** Replacing the records of the running cluster by those of a backup (docs/backup.md). */
export function restoreOperations({ restores }: Needs): Operation[] {
  const common = {
    tag: 'cluster',
    apis: ['fabric'],
    permission: 'admin',
    success: 200,
    method: 'POST',
    refusals: [400, 401, 403, 409, 429, 503],
    answerMsMax: answerTimes.restoreMsMax,
  } as const
  return [
    {
      ...common,
      operationId: 'clusterRestoreBegin',
      summary: 'Start staging a restore (admin socket only)',
      path: '/cluster/restore/begin',
      body: { schema: restoreBegin, isRequired: true },
      response: { kind: 'detail', schema: nothing },
      handle: async (call) => {
        const given = { allowsOtherCluster: false, ...(call.body as Partial<RestoreAnnouncement>) }
        await restores.begin(given as RestoreAnnouncement, actorOfCall(call))
        return emptyAnswer()
      },
    },
    {
      ...common,
      operationId: 'clusterRestoreChunk',
      summary: 'Stage a chunk of a restore (admin socket only)',
      path: '/cluster/restore/chunk',
      body: { schema: restoreChunk, isRequired: true },
      response: { kind: 'detail', schema: nothing },
      handle: async (call) => {
        const given = call.body as ChunkBody
        const bytes = Uint8Array.from(Buffer.from(given.bytes, 'base64'))
        await restores.stage({ ...given, bytes }, actorOfCall(call))
        return emptyAnswer()
      },
    },
    {
      ...common,
      operationId: 'clusterRestoreEnd',
      summary: 'Replace all records by the staged ones, or discard those (admin socket only)',
      path: '/cluster/restore/end',
      body: { schema: restoreEnd, isRequired: true },
      response: { kind: 'detail', schema: restored },
      handle: async (call) => {
        const given = { isAbandoned: false, ifIndex: 0, reason: '', ...(call.body as EndBody) }
        return detailAnswer(await restores.end(given, actorOfCall(call)))
      },
    },
    {
      ...common,
      operationId: 'clusterRestoreFactors',
      summary: 'Encrypt the second factors of a backup for this cluster (admin socket only)',
      path: '/cluster/restore/factors',
      body: { schema: restoreFactors, isRequired: true },
      response: { kind: 'detail', schema: sealedFactors },
      handle: async (call) => {
        const { factors } = call.body as { readonly factors: readonly FactorBody[] }
        return detailAnswer(await restores.seal(factors.map(factorOf)))
      },
    },
  ]
}

interface ChunkBody {
  readonly id: string
  readonly number: number
  readonly bytes: string
  readonly endsBlock: boolean
}

type EndBody = Pick<RestoreEnding, 'id' | 'sha256'> & Partial<RestoreEnding>
type FactorBody = Omit<OpenFactor, 'secret'> & { readonly secret: string }

function factorOf({ secret, ...rest }: FactorBody): OpenFactor {
  return { ...rest, secret: Uint8Array.from(Buffer.from(secret, 'base64')) }
}
