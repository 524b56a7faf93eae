import { create, toBinary } from '@bufbuild/protobuf'
import { CommandKind, IntegrityStartSchema } from '../../../proto/gen/command_pb.ts'
import { integrityRunRecordId } from '../../entities/kinds/integrity-run.ts'
import { newShortId } from '../../lib/random.ts'
import { actorName } from '../../ports/actor.ts'
import { requestActor, requestOrigin, type RequestContext } from '../http/request-context.ts'
import {
  acceptedResponse,
  detailResponse,
  emptyResponse,
  rfc3339Text,
} from '../http/responses/envelope.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { emptyBodySchema } from '../schemas/envelope.ts'
import {
  integrityResultSchema,
  snapshotDetailSchema,
  snapshotRequestSchema,
} from './database-schema.ts'
import { findIgnoredFields } from '../schemas/request-body-validator.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { ServiceLogger } from '../../ports/logger.ts'
import type { DatabaseSnapshots } from '../../ports/database-snapshots.ts'
import type { ProposalWriter } from '../http/proposal-writer.ts'
import type { IntegrityRunner } from './integrity-runner.ts'

interface DatabaseOperationsDeps {
  readonly state: StateView
  readonly logger: ServiceLogger
  readonly snapshots: DatabaseSnapshots
  readonly writer: ProposalWriter
  readonly integrity: IntegrityRunner
}

const common = {
  tag: 'database',
  apis: ['management', 'fabric'],
  permission: 'admin',
} as const

/** Operations on the whole stored state. */
export function databaseOperations(deps: DatabaseOperationsDeps): Operation[] {
  return [
    startOperation('checkDataIntegrity', false, deps),
    startOperation('fixDataIntegrity', true, deps),
    {
      ...common,
      operationId: 'dataIntegrityResults',
      summary: 'Show the status of the last data integrity check or fix',
      method: 'GET',
      path: '/database/data-integrity-results',
      success: 200,
      response: { kind: 'detail', schema: integrityResultSchema },
      handle: () => detailResponse(resultOf(deps)),
    },
    ...snapshotOperations(deps),
  ]
}

/** Operations that write a file on the controller that receives the request. */
function snapshotOperations(deps: DatabaseOperationsDeps): Operation[] {
  const about = {
    ...common,
    summary: 'Write a snapshot of the state to a file on this controller',
    method: 'POST',
    success: 200,
    refusals: [507],
  } as const
  const toPath = (operationId: string, path: string): Operation =>
    operationWithBody({
      ...about,
      operationId,
      path,
      apis: ['fabric'],
      body: { schema: snapshotRequestSchema, isRequired: false },
      response: { kind: 'detail', schema: snapshotDetailSchema },
      handle: async (call, body) => {
        const data = { path: await takeSnapshot(deps, call, body.path || null) }
        return detailResponse(data, findIgnoredFields(snapshotRequestSchema.schema, body))
      },
    })
  return [
    {
      ...about,
      apis: ['management'],
      operationId: 'createDatabaseSnapshot',
      path: '/database/snapshot',
      response: { kind: 'detail', schema: emptyBodySchema },
      handle: async (call) => {
        await takeSnapshot(deps, call, null)
        return emptyResponse()
      },
    },
    toPath('createDatabaseSnapshot', '/database'),
    toPath('createDatabaseSnapshotWithPath', '/database/snapshot'),
  ]
}

/**
 * Writes a snapshot. Also logs a line, because the snapshot file contains password hashes and
 * wrapped secrets, and the audit log has no entry about it.
 */
async function takeSnapshot(
  { snapshots, logger }: DatabaseOperationsDeps,
  call: RequestContext,
  wanted: string | null,
): Promise<string> {
  const path = await snapshots.take(wanted)
  logger.warn({ path, actor: actorName(requestActor(call)) }, 'wrote a snapshot of the state')
  return path
}

function startOperation(
  operationId: 'checkDataIntegrity' | 'fixDataIntegrity',
  isFixing: boolean,
  { writer, integrity }: DatabaseOperationsDeps,
): Operation {
  return {
    ...common,
    operationId,
    summary: isFixing
      ? 'Start a data integrity check that repairs derived data'
      : 'Start a data integrity check',
    method: 'POST',
    path: isFixing ? '/database/fix-data-integrity' : '/database/check-data-integrity',
    success: 202,
    response: { kind: 'detail', schema: emptyBodySchema },
    handle: async (call) => {
      const message = create(IntegrityStartSchema, { id: newShortId(), isFixing })
      const payload = toBinary(IntegrityStartSchema, message)
      await writer.write(requestOrigin(call), { kind: CommandKind.INTEGRITY_START, payload })
      integrity.nudge()
      return acceptedResponse()
    },
  }
}

function resultOf({ state }: DatabaseOperationsDeps): Readonly<Record<string, unknown>> {
  const run = state.get('integrityRun', integrityRunRecordId)
  return {
    startTime: timeOrNull(run?.startedAt),
    endTime: timeOrNull(run?.endedAt),
    inProgress: run?.isInProgress ?? false,
    fixingErrors: run?.isFixing ?? false,
    error: run?.error ?? '',
    tooManyErrors: run?.hasMore ?? false,
    results: run?.findings ?? [],
  }
}

function timeOrNull(ms: number | null | undefined): string | null {
  return typeof ms === 'number' ? rfc3339Text(ms) : null
}
