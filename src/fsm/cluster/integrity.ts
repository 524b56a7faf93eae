import { fromBinary } from '@bufbuild/protobuf'
import {
  IntegrityClaimSchema,
  IntegrityDetachSchema,
  type IntegrityEnd,
  IntegrityEndSchema,
  IntegrityRebuildSchema,
  IntegrityStartSchema,
} from '../../../proto/gen/command_pb.ts'
import { type IntegrityRun, integrityRunRecordId } from '../../entities/kinds/integrity-run.ts'
import { findEntity } from '../../entities/registry.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { indexedElements } from '../records/indexes.ts'
import type { State } from '../records/state.ts'
import type { CommandContext } from '../apply/command-context.ts'
import { acceptedOutcome, notFoundOutcome, refusedOutcome } from '../apply/outcome.ts'
import { detachReference } from '../apply/references.ts'

export const integrityLimits = {
  /** Maximum number of findings that a run stores. The result shows whether there are more. */
  findingsMax: 1000,
  /** Maximum characters of the description of one finding; longer descriptions are truncated. */
  descriptionCharactersMax: 512,
  /**
   * Maximum characters of an index element that a description quotes; longer elements are
   * truncated.
   */
  elementCharactersMax: 128,
  /** Maximum characters of the error that a run stores; longer errors are truncated. */
  errorCharactersMax: 512,
} as const

function runOf(state: State): IntegrityRun | undefined {
  return state.get('integrityRun', integrityRunRecordId)
}

/**
 * Starts an integrity run, which checks or repairs. The whole cluster has at most one run at a
 * time.
 */
export function startIntegrityRun(
  state: State,
  payload: Uint8Array,
  { logTimeMs, index }: CommandContext,
): Outcome {
  const { id: runId, isFixing } = fromBinary(IntegrityStartSchema, payload)
  const run = runOf(state)
  if (run?.isInProgress === true) {
    return refusedOutcome('RATE_LIMITED', 'a check or fix of the data integrity is under way')
  }
  state.put('integrityRun', {
    id: integrityRunRecordId,
    createdAt: run?.createdAt ?? logTimeMs,
    updatedAt: logTimeMs,
    revision: index,
    runId,
    isFixing,
    isInProgress: true,
    startedAt: logTimeMs,
  })
  return acceptedOutcome(runId)
}

/**
 * Assigns an integrity run to the controller that carries it out. Refused if the run is already
 * assigned, because a new leader cannot continue the run of its predecessor.
 */
export function assignIntegrityRun(
  state: State,
  payload: Uint8Array,
  { logTimeMs, index }: CommandContext,
): Outcome {
  const { runId, runner } = fromBinary(IntegrityClaimSchema, payload)
  const run = runOf(state)
  if (run?.isInProgress !== true || run.runId !== runId || run.runner !== '') {
    return refusedOutcome('REVISION_MOVED')
  }
  state.put('integrityRun', { ...run, runner, updatedAt: logTimeMs, revision: index })
  return acceptedOutcome(runId)
}

/** Records the result of an integrity run. */
export function endIntegrityRun(
  state: State,
  payload: Uint8Array,
  { logTimeMs, index }: CommandContext,
): Outcome {
  const message = fromBinary(IntegrityEndSchema, payload)
  const run = runOf(state)
  const isOwn = run?.runId === message.runId && run.runner === message.runner
  if (run?.isInProgress !== true || !isOwn) return refusedOutcome('REVISION_MOVED')
  state.put('integrityRun', {
    ...run,
    isInProgress: false,
    endedAt: logTimeMs,
    error: message.error.slice(0, integrityLimits.errorCharactersMax),
    findings: findingsOf(message),
    hasMore: message.tooManyErrors,
    updatedAt: logTimeMs,
    revision: index,
  })
  return acceptedOutcome(run.runId)
}

function findingsOf({ findings }: IntegrityEnd): IntegrityRun['findings'] {
  return findings
    .slice(0, integrityLimits.findingsMax)
    .map(({ description, fixed }) => ({ description, fixed }))
}

/**
 * Rebuilds the indexes and digests of a table from its records. Has no effect if they are correct.
 */
export function rebuildTable(state: State, payload: Uint8Array): Outcome {
  const { entity } = fromBinary(IntegrityRebuildSchema, payload)
  state.rebuild(findEntity(entity).name)
  return acceptedOutcome('')
}

/**
 * Removes one reference to a missing record (`detachReference`); refused if the reference is no
 * longer dangling.
 */
export function detachMissingReference(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const { entity, id, field: name, missingId } = fromBinary(IntegrityDetachSchema, payload)
  const kind = findEntity(entity)
  const record = state.inTable(kind.name, id)
  const field = kind.fields[name]
  const to = field?.reference?.to
  if (record === undefined || field === undefined || to === undefined)
    return notFoundOutcome(entity, id)
  const element = field.kind === 'roleList' ? `@${missingId}` : missingId
  const isDangling =
    indexedElements(record[name]).includes(element) && state.inTable(to, missingId) === undefined
  if (!isDangling) return refusedOutcome('REVISION_MOVED')
  return detachReference(state, { entity: kind, record, name, missingId }, context)
}
