import { create, type DescMessage, type MessageInitShape, toBinary } from '@bufbuild/protobuf'

import {
  CommandKind,
  HostedTerminatorCreateSchema,
  HostedTerminatorsRemoveSchema,
  HostedTerminatorUpdateSchema,
} from '../../../proto/gen/command_pb.ts'
import {
  CreateTerminatorResult,
  type CreateTerminatorV2,
  type CreateTunnelTerminator,
} from '../../../proto/gen/router_pb.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { KeyedTasks } from '../../lib/keyed-tasks.ts'
import { Problem } from '../../lib/problems.ts'
import { createEnrollmentActor } from '../../ports/actor.ts'
import type { Outcome, Proposer } from '../../ports/proposer.ts'
import type { RouterConnection } from '../router-connection.ts'
import { routerLimits } from '../limits.ts'
import type { RouterLogger } from '../router-channels.ts'
import { edgeErrorCode, retryHint } from '../../channel/messages/edge.ts'
import { precedenceName, type TerminatorCreateResult } from '../../channel/messages/terminators.ts'

const { routerEntryBytesMax, routerWritesAtOnceMax, routerWritesWaitingMax } = routerLimits
/** Maximum number of terminators removed by one log entry. */
// @guard heavy-frames-of-a-router--pieces
const ENTRY_IDS_MAX = 100
/** Fields that are reported as invalid if another host owns the terminator instance. */
const instanceFields: ReadonlySet<string> = new Set(['identity', 'identitySecret'])

export interface TerminatorUpdate {
  readonly id: string
  readonly cost?: number
  readonly precedence?: string
}

export interface RouterTerminatorWriterDeps {
  readonly proposer: Proposer
  readonly log: RouterLogger
}

/**
 * Sends the writes that routers request for their terminators to the leader. Each router may have a
 * few writes in progress and some that wait; further writes are refused as busy.
 */
export class RouterTerminatorWriter {
  readonly #deps: RouterTerminatorWriterDeps
  readonly #writes = new KeyedTasks(routerWritesAtOnceMax)

  constructor(deps: RouterTerminatorWriterDeps) {
    this.#deps = deps
  }

  /** @param host the service session or tunnel that hosts the terminator. */
  async create(
    connection: RouterConnection,
    asked: CreateTerminatorV2 | CreateTunnelTerminator,
    host: { readonly sessionId: string } | { readonly serviceId: string },
  ): Promise<TerminatorCreateResult> {
    const { address, cost, instanceId } = asked
    const message = {
      ...host,
      id: address,
      address,
      cost,
      precedence: precedenceName(asked.precedence),
      instanceId,
      instanceSecret: Buffer.from(asked.instanceSecret).toString('base64'),
      peerData: Object.fromEntries(
        Object.entries(asked.peerData).map(([key, value]) => [
          key,
          Buffer.from(value).toString('base64'),
        ]),
      ),
    }
    try {
      const kind = CommandKind.HOSTED_TERMINATOR_CREATE
      const outcome = await this.#propose(connection, kind, HostedTerminatorCreateSchema, message)
      if (outcome.ok) return { result: CreateTerminatorResult.SUCCESS }
      const isOfInstance = instanceFields.has(outcome.fault?.field ?? '')
      return {
        result: CreateTerminatorResult.FAILED_OTHER,
        msg: reasonOf(outcome),
        // Without this hint, the client would try again, and its new listener would replace the
        // other host.
        ...(isOfInstance
          ? { errorCode: edgeErrorCode.invalidInstanceId, retryHint: retryHint.notRetriable }
          : { errorCode: edgeErrorCode.internal }),
      }
    } catch (error) {
      return this.failed(connection.router.id, error)
    }
  }

  /** @returns '' on success, otherwise the reason for the failure. */
  async remove(connection: RouterConnection, ids: readonly string[]): Promise<string> {
    const { channel } = connection
    let outcome = ''
    // Split into several log entries, so that entries stay small for any number of IDs. After a
    // failure, the router requests the remaining removals again.
    for (let at = 0; at < ids.length && outcome === '' && !channel.isClosed; at += ENTRY_IDS_MAX) {
      const some = { ids: ids.slice(at, at + ENTRY_IDS_MAX) }
      const kind = CommandKind.HOSTED_TERMINATORS_REMOVE
      outcome = await this.#attempt(connection, kind, HostedTerminatorsRemoveSchema, some)
    }
    return outcome
  }

  /** @returns '' on success, otherwise the reason for the failure. */
  update(connection: RouterConnection, fields: TerminatorUpdate): Promise<string> {
    const kind = CommandKind.HOSTED_TERMINATOR_UPDATE
    return this.#attempt(connection, kind, HostedTerminatorUpdateSchema, { ...fields })
  }

  /**
   * The result for a failed write: if there is no leader, the controller is busy, or the outcome is
   * unknown, the router should retry. Repeating the write has no further effect.
   */
  failed(routerId: string, error: unknown): TerminatorCreateResult {
    if (!(error instanceof Problem)) {
      const reason = errorMessage(error)
      this.#deps.log.warn({ routerId, reason }, 'a write requested by a router failed')
    }
    const msg = error instanceof Problem ? error.message : 'the controller could not write'
    // The router should not retry, because the same write would be too large again.
    if (error instanceof Problem && error.code === 'REQUEST_ENTITY_TOO_LARGE') {
      const { FAILED_OTHER } = CreateTerminatorResult
      return {
        result: FAILED_OTHER,
        msg,
        errorCode: edgeErrorCode.internal,
        retryHint: retryHint.notRetriable,
      }
    }
    return { result: CreateTerminatorResult.FAILED_BUSY, msg, errorCode: edgeErrorCode.internal }
  }

  async #attempt<D extends DescMessage>(
    connection: RouterConnection,
    kind: CommandKind,
    schema: D,
    message: MessageInitShape<D>,
  ): Promise<string> {
    try {
      const outcome = await this.#propose(connection, kind, schema, message)
      return outcome.ok ? '' : reasonOf(outcome)
    } catch (error) {
      return this.failed(connection.router.id, error).msg ?? ''
    }
  }

  async #propose<D extends DescMessage>(
    { router, address }: RouterConnection,
    kind: CommandKind,
    schema: D,
    message: MessageInitShape<D>,
  ): Promise<Outcome> {
    const routerId = router.id
    if (this.#writes.count(routerId) >= routerWritesWaitingMax) {
      throw new Problem('SERVER_TOO_MANY_REQUESTS')
    }
    const actor = createEnrollmentActor({ routerId }, { method: 'channel', address })
    const payload = toBinary(schema, create(schema, message))
    // @guard heavy-frames-of-a-router--entry
    if (payload.length > routerEntryBytesMax) throw new Problem('REQUEST_ENTITY_TOO_LARGE')
    const { proposer } = this.#deps
    return await this.#writes.run(
      routerId,
      async () => (await proposer.propose({ kind, payload, actor })).outcome,
    )
  }
}

function reasonOf(refusal: Extract<Outcome, { ok: false }>): string {
  return refusal.detail ?? refusal.fault?.reason ?? refusal.code
}
