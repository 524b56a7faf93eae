import { create, toBinary } from '@bufbuild/protobuf'
import {
  CommandKind,
  EntityBatchSchema,
  EntityDeleteSchema,
  EntityWriteSchema,
} from '../../../proto/gen/command_pb.ts'
import { assert } from '../../lib/assert.ts'
import { levelOf } from '../../entities/levels.ts'
import { entityNamed } from '../../entities/registry.ts'
import { canonicalJson } from '../../lib/canonical-json.ts'
import { releaseBuffer } from '../../lib/release-buffer.ts'
import { Problem } from '../../lib/problems.ts'
import { formatUuid } from '../../lib/uuid.ts'
import { type Actor, callerIdOf } from '../../ports/actor.ts'
import type { ProposalInput, Proposer } from '../../ports/proposer.ts'
import { neededOn } from '../auth/permissions.ts'
import type { RequestContext } from '../call.ts'
import type { ApiLimits } from '../limits.ts'

const utf8 = new TextEncoder()

type EntityWriteKind =
  | typeof CommandKind.ENTITY_CREATE
  | typeof CommandKind.ENTITY_REPLACE
  | typeof CommandKind.ENTITY_PATCH

/** One write of a batch. */
export interface WriteStep {
  readonly kind: EntityWriteKind | typeof CommandKind.ENTITY_DELETE
  readonly entity: string
  readonly id: string
  /** Validated and normalised; none at a deletion. */
  readonly fields?: Readonly<Record<string, unknown>>
}

export interface WriteOptions {
  /** Of a write that no session asks for; else the caller in its session. */
  readonly actor?: Actor
  /** That its fields need; 1 when not said. */
  readonly level?: number
}

/**
 * Takes a caller's writes to the cluster and turns refusals, which are values there, into problems.
 */
export class Writer {
  readonly #proposer: Proposer

  constructor(proposer: Proposer) {
    this.#proposer = proposer
  }

  /**
   * @returns the id the write took effect on: of the first request when this one repeats it.
   * @throws {Problem} what apply refused it with, or why its fate is not known.
   */
  async write(
    call: RequestContext,
    kind: ProposalInput['kind'],
    payload: Uint8Array,
    judgedOn: NonNullable<ProposalInput['judgedOn']> = [],
    by: WriteOptions = {},
  ): Promise<string> {
    const { netRequestId } = call
    const { actor = actorOf(call), level = 1 } = by
    const input: ProposalInput = {
      kind,
      payload,
      level,
      ...(judgedOn.length === 0 ? {} : { judgedOn }),
      actor,
      trace: call.trace,
      ...(netRequestId === null || !call.isRepeatable
        ? {}
        : {
            request: {
              caller: callerIdOf(actor),
              id: netRequestId.bytes,
              bodyHash: call.bodyHash(),
            },
          }),
    }
    if (call.isAbandoned) throw new Problem('TIMEOUT')
    call.hasProposed = true
    const { index, outcome } = await this.#proposer.propose(input).catch((error: unknown) => {
      throw withRequestId(error, call)
    })
    call.index = Math.max(call.index, index)
    if (outcome.ok) return outcome.id
    throw new Problem(outcome.code, {
      ...(outcome.fault === null ? {} : { fault: outcome.fault }),
      ...(outcome.detail === null ? {} : { detail: outcome.detail }),
    })
  }

  /** @param fields validated and normalised. */
  async entity(
    call: RequestContext,
    kind: EntityWriteKind,
    entity: string,
    id: string,
    fields: Readonly<Record<string, unknown>>,
    judgedOn?: NonNullable<ProposalInput['judgedOn']>,
  ): Promise<string> {
    const json = utf8.encode(canonicalJson(fields))
    const payload = toBinary(EntityWriteSchema, create(EntityWriteSchema, { entity, id, json }))
    releaseBuffer(json)
    try {
      const level = levelOf(entityNamed(entity), fields)
      return await this.write(call, kind, payload, judgedOn, { level })
    } finally {
      releaseBuffer(payload)
    }
  }

  /**
   * Several writes as one entry: all of them or, when one is refused, none.
   * @returns the id of step `answer`.
   */
  batch(
    call: RequestContext,
    steps: readonly WriteStep[],
    answer = 0,
    judgedOn?: NonNullable<ProposalInput['judgedOn']>,
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
      ...steps.map(({ entity, fields }) => levelOf(entityNamed(entity), fields)),
    )
    return this.write(call, CommandKind.ENTITY_BATCH, payload, judgedOn, { level })
  }

  deleteEntity(
    call: RequestContext,
    entity: string,
    id: string,
    judgedOn?: NonNullable<ProposalInput['judgedOn']>,
  ): Promise<string> {
    const message = create(EntityDeleteSchema, { entity, id })
    const payload = toBinary(EntityDeleteSchema, message)
    const level = levelOf(entityNamed(entity))
    return this.write(call, CommandKind.ENTITY_DELETE, payload, judgedOn, { level })
  }
}

/**
 * Who asks, as the log is to have it.
 * @throws {AssertionError} for a call that no session was asked for: what is written for it has
 * another actor.
 */
export function actorOf({ caller, operation, api, address }: RequestContext): Actor {
  if (caller?.system !== undefined) return caller.system
  assert(
    caller !== null && operation !== null && operation.permission !== 'public',
    'a write of a call has a session, and the permission that it was admitted by',
  )
  const permission = neededOn(api, operation.permission)
  const [identityId, sessionId] = [caller.identity.id, caller.session.id]
  const { signerId = '', signerRevision = 0 } = caller.token ?? {}
  const shown = { signerId, signerRevision: String(signerRevision) }
  return { case: 'session', value: { identityId, sessionId, address, permission, ...shown } }
}

/**
 * Judges and writes; again, from what has moved, as long as the write is refused because what it
 * was judged on moved.
 * @throws {Problem} REVISION_MOVED after `judgementsMax` times, and all else that `run` throws.
 */
export async function judged<T>(
  call: RequestContext,
  { judgementsMax }: Pick<ApiLimits, 'judgementsMax'>,
  run: () => Promise<T>,
): Promise<T> {
  for (let judgements = 1; ; judgements += 1) {
    try {
      return await run()
    } catch (error) {
      const hasMoved = error instanceof Problem && error.code === 'REVISION_MOVED'
      if (!hasMoved || judgements >= judgementsMax) throw error
      // The refusal was applied here, and so was what came before it.
      call.hasProposed = false
    }
  }
}

/**
 * The problem for a write whose fate is not known: with the id to ask again with, or saying that
 * none was sent.
 */
export function outcomeUnknown(call: RequestContext, cause?: unknown): Problem {
  const { netRequestId } = call
  if (!call.isRepeatable) {
    const detail = 'retry is possible; at worst it takes effect twice'
    return new Problem('OUTCOME_UNKNOWN', { detail, cause })
  }
  if (netRequestId === null) {
    return new Problem('OUTCOME_UNKNOWN', {
      detail:
        'no net-request-id was sent, so a retry is not safe; read the record to see whether it changed',
      cause,
    })
  }
  const text = formatUuid(netRequestId.bytes)
  return new Problem('OUTCOME_UNKNOWN', {
    detail: `retry the same request with net-request-id ${text}`,
    data: { netRequestId: text },
    cause,
  })
}

function withRequestId(error: unknown, call: RequestContext): unknown {
  if (!(error instanceof Problem)) return error
  if (error.code === 'OUTCOME_UNKNOWN') return outcomeUnknown(call, error)
  // Nothing was changed, whatever the time: the caller may be told so.
  call.hasProposed = false
  return error
}
