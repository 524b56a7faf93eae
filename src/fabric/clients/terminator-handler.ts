import { fromBinary } from '@bufbuild/protobuf'

import {
  CreateTerminatorResult,
  type CreateTerminatorV2,
  CreateTerminatorV2Schema,
  HealthEventSchema,
  RemoveTerminatorSchema,
  RemoveTerminatorsSchema,
  UpdateEdgeTerminatorSchema,
  UpdateTerminatorSchema,
} from '../../../proto/gen/router_pb.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import type { RouterConnection } from '../router-connection.ts'
import type { ChannelHandler } from '../channel-handler.ts'
import { controlContentType } from '../../channel/messages/control.ts'
import { refusedTerminator } from './client-access-faults.ts'
import type { RouterTerminatorWriter, TerminatorUpdate } from './router-terminator-writer.ts'
import type { PresentedSessionTokens } from './presented-session-tokens.ts'
import {
  precedenceName,
  terminatorCreateResponse,
  type TerminatorCreateResult,
} from '../../channel/messages/terminators.ts'

export interface TerminatorHandlerDeps {
  readonly clients: Pick<PresentedSessionTokens, 'judge' | 'onEntryRefused'>
  readonly writes: RouterTerminatorWriter
}

/**
 * Handles requests for terminators of clients that host services at a router. The router requests
 * the writes, and the controller sends them to the leader.
 */
export class TerminatorHandler implements ChannelHandler {
  readonly handlers: ChannelHandler['handlers']
  readonly #deps: TerminatorHandlerDeps

  constructor(deps: TerminatorHandlerDeps) {
    this.#deps = deps
    this.handlers = new Map([
      [
        controlContentType.createTerminatorV2,
        (connection, message) => this.#create(connection, message),
      ],
      [
        controlContentType.removeTerminator,
        (connection, message) => {
          const { terminatorId } = fromBinary(RemoveTerminatorSchema, message.body)
          return this.#remove(connection, message, [terminatorId])
        },
      ],
      [
        controlContentType.removeTerminators,
        (connection, message) => {
          const { terminatorIds } = fromBinary(RemoveTerminatorsSchema, message.body)
          return this.#remove(connection, message, terminatorIds)
        },
      ],
      [controlContentType.updateTerminator, this.#updating(UpdateTerminatorSchema)],
      [controlContentType.updateEdgeTerminator, this.#updating(UpdateEdgeTerminatorSchema)],
      [
        controlContentType.healthEvent,
        (connection, message) => {
          const { terminatorId, checkPassed } = fromBinary(HealthEventSchema, message.body)
          // A terminator with a failed health check is dialed last.
          const precedence = checkPassed ? 'default' : 'failed'
          return this.#update(connection, message, { id: terminatorId, precedence })
        },
      ],
    ])
  }

  async #create(connection: RouterConnection, message: ChannelMessage): Promise<void> {
    const asked = fromBinary(CreateTerminatorV2Schema, message.body)
    const answer = await this.#created(connection, asked)
    connection.channel.reply(message, terminatorCreateResponse(asked.address, answer))
  }

  async #created(
    connection: RouterConnection,
    asked: CreateTerminatorV2,
  ): Promise<TerminatorCreateResult> {
    const { clients, writes } = this.#deps
    const { router } = connection
    try {
      const judged = await clients.judge({
        routerId: router.id,
        type: 'Bind',
        sessionToken: asked.sessionToken,
        apiSessionToken: asked.apiSessionToken,
        fingerprints: asked.fingerprints,
        isJudgedByRouter: connection.evaluatesPosture,
      })
      if (judged.ok) {
        const { sessionId } = judged.client
        const answer = await writes.create(connection, asked, { sessionId })
        // @guard claims-of-hosts--entry
        if (answer.result === CreateTerminatorResult.FAILED_OTHER) {
          clients.onEntryRefused({ routerId: router.id, apiSessionToken: asked.apiSessionToken })
        }
        return answer
      }
      return refusedTerminator(judged.fault)
    } catch (error) {
      return writes.failed(router.id, error)
    }
  }

  async #remove(
    connection: RouterConnection,
    message: ChannelMessage,
    ids: readonly string[],
  ): Promise<void> {
    const outcome = await this.#deps.writes.remove(connection, ids)
    connection.channel.replyResult(message, outcome === '', outcome)
  }

  #updating(schema: typeof UpdateTerminatorSchema | typeof UpdateEdgeTerminatorSchema) {
    return (connection: RouterConnection, message: ChannelMessage): Promise<void> => {
      const { terminatorId, updateCost, updatePrecedence, cost, precedence } = fromBinary(
        schema as typeof UpdateTerminatorSchema,
        message.body,
      )
      return this.#update(connection, message, {
        id: terminatorId,
        ...(updateCost ? { cost } : {}),
        ...(updatePrecedence ? { precedence: precedenceName(precedence) } : {}),
      })
    }
  }

  async #update(
    connection: RouterConnection,
    message: ChannelMessage,
    fields: TerminatorUpdate,
  ): Promise<void> {
    const outcome = await this.#deps.writes.update(connection, fields)
    connection.channel.replyResult(message, outcome === '', outcome)
  }
}
