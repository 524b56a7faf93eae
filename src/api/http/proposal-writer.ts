import { create, toBinary } from '@bufbuild/protobuf'
import {
  CommandKind,
  EntityBatchSchema,
  EntityDeleteSchema,
  EntityWriteSchema,
} from '../../../proto/gen/command_pb.ts'
import { requiredFeatureLevel } from '../../entities/feature-levels.ts'
import { findEntity } from '../../entities/registry.ts'
import type { KindName } from '../../entities/kind-records.ts'
import { canonicalJson } from '../../lib/text/canonical-json.ts'
import { releaseBuffer } from '../../lib/bounds/release-buffer.ts'
import { Problem } from '../../lib/problems.ts'
import { refusalProblem } from '../../lib/refusal-problem.ts'
import { formatUuid } from '../../lib/text/uuid.ts'
import { actorIdentityId } from '../../ports/actor.ts'
import type { ProposalInput, Proposer } from '../../ports/proposer.ts'
import { parseTraceparent } from '../../lib/trace-context.ts'
import type {
  CommandWriter,
  Idempotency,
  WriteCommand,
  WriteOrigin,
  WriteRequest,
} from '../../ports/writer.ts'

const utf8 = new TextEncoder()

/**
 * Request data for a write by a background task. The write starts a new trace and has no request
 * ID, because no client repeats the write.
 */
export function backgroundWriteRequest(): WriteRequest {
  return {
    trace: parseTraceparent(undefined),
    idempotency: { case: 'none' },
    isAbandoned: () => false,
    onProposed: () => undefined,
    onOutcome: () => undefined,
  }
}

type EntityWriteKind =
  | typeof CommandKind.ENTITY_CREATE
  | typeof CommandKind.ENTITY_REPLACE
  | typeof CommandKind.ENTITY_PATCH

/** One of the writes that a batch executes in one log entry. */
export interface BatchWriteStep {
  readonly kind: EntityWriteKind | typeof CommandKind.ENTITY_DELETE
  readonly entity: KindName
  readonly id: string
  /** Fields of the record, validated and normalized; absent for a deletion. */
  readonly fields?: Readonly<Record<string, unknown>>
}

/**
 * Proposes writes to the cluster. The state machine returns a refusal as a value; this class throws
 * it as a problem.
 */
export class ProposalWriter implements CommandWriter {
  readonly #proposer: Proposer

  constructor(proposer: Proposer) {
    this.#proposer = proposer
  }

  async write(origin: WriteOrigin, command: WriteCommand): Promise<string> {
    const { actor, trace, idempotency } = origin
    const { judgedOn = [], level = 1, ...rest } = command
    const input: ProposalInput = {
      ...rest,
      level,
      ...(judgedOn.length === 0 ? {} : { judgedOn }),
      actor,
      trace,
      ...(idempotency.case !== 'id'
        ? {}
        : {
            request: {
              caller: actorIdentityId(actor),
              id: idempotency.id,
              bodyHash: idempotency.bodyHash(),
            },
          }),
    }
    if (origin.isAbandoned()) throw new Problem('TIMEOUT')
    origin.onProposed(idempotency)
    const { index, outcome } = await this.#proposer.propose(input).catch((error: unknown) => {
      throw unproposed(error, origin)
    })
    origin.onOutcome(index)
    if (outcome.ok) return outcome.id
    throw refusalProblem(outcome)
  }

  /** @param fields must be validated and normalized. */
  async entity(
    origin: WriteOrigin,
    kind: EntityWriteKind,
    entity: KindName,
    id: string,
    fields: Readonly<Record<string, unknown>>,
    judgedOn: NonNullable<ProposalInput['judgedOn']> = [],
  ): Promise<string> {
    const json = utf8.encode(canonicalJson(fields))
    const payload = toBinary(EntityWriteSchema, create(EntityWriteSchema, { entity, id, json }))
    releaseBuffer(json)
    try {
      const level = requiredFeatureLevel(findEntity(entity), fields)
      return await this.write(origin, { kind, payload, level, judgedOn })
    } finally {
      releaseBuffer(payload)
    }
  }

  /**
   * Proposes several writes as one log entry: all take effect, or none if one is refused.
   * @returns the id of the record that the step with index `answer` wrote.
   */
  batch(
    origin: WriteOrigin,
    steps: readonly BatchWriteStep[],
    answer = 0,
    judgedOn: NonNullable<ProposalInput['judgedOn']> = [],
  ): Promise<string> {
    const message = create(EntityBatchSchema, {
      steps: steps.map(({ kind, entity, id, fields }) => ({
        kind,
        write: { entity, id, json: utf8.encode(canonicalJson(fields ?? {})) },
      })),
      answer,
    })
    const payload = toBinary(EntityBatchSchema, message)
    const level = Math.max(
      ...steps.map(({ entity, fields }) => requiredFeatureLevel(findEntity(entity), fields)),
    )
    return this.write(origin, { kind: CommandKind.ENTITY_BATCH, payload, level, judgedOn })
  }

  deleteEntity(
    origin: WriteOrigin,
    entity: KindName,
    id: string,
    judgedOn: NonNullable<ProposalInput['judgedOn']> = [],
  ): Promise<string> {
    const message = create(EntityDeleteSchema, { entity, id })
    const payload = toBinary(EntityDeleteSchema, message)
    const level = requiredFeatureLevel(findEntity(entity))
    return this.write(origin, { kind: CommandKind.ENTITY_DELETE, payload, level, judgedOn })
  }
}

/**
 * The problem for a write whose outcome is unknown. If the write has a request id, the problem
 * contains it, because the client can repeat the request safely with this id.
 */
export function outcomeUnknownProblem(idempotency: Idempotency, cause?: unknown): Problem {
  if (idempotency.case === 'notKept') {
    const detail = 'retry is possible; at worst it takes effect twice'
    return new Problem('OUTCOME_UNKNOWN', { detail, cause })
  }
  if (idempotency.case === 'none') {
    return new Problem('OUTCOME_UNKNOWN', {
      detail:
        'no net-request-id was sent, so a retry is not safe; read the record to see whether it changed',
      cause,
    })
  }
  const text = formatUuid(idempotency.id)
  return new Problem('OUTCOME_UNKNOWN', {
    detail: `retry the same request with net-request-id ${text}`,
    data: { netRequestId: text },
    cause,
  })
}

function unproposed(error: unknown, { idempotency, onProposed }: WriteOrigin): unknown {
  if (!(error instanceof Problem)) return error
  if (error.code === 'OUTCOME_UNKNOWN') return outcomeUnknownProblem(idempotency, error)
  // Marks the write as not proposed: it changed nothing, so a later timeout of the request does not
  // mean that the outcome is unknown.
  onProposed(null)
  return error
}
