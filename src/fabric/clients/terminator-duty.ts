import {
  create,
  type DescMessage,
  fromBinary,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf'

import {
  CommandKind,
  HostedTerminatorCreateSchema,
  HostedTerminatorsRemoveSchema,
  HostedTerminatorUpdateSchema,
} from '../../../proto/gen/command_pb.ts'
import {
  CreateTerminatorResult,
  type CreateTerminatorV2,
  CreateTerminatorV2AnswerSchema,
  CreateTerminatorV2Schema,
  HealthEventSchema,
  ModelPrecedence,
  RemoveTerminatorSchema,
  RemoveTerminatorsSchema,
  UpdateEdgeTerminatorSchema,
  UpdateTerminatorSchema,
} from '../../../proto/gen/router_pb.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import { KeyedTasks } from '../../lib/keyed-tasks.ts'
import { Problem } from '../../lib/problems.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { enrollmentActor } from '../../ports/actor.ts'
import type { Outcome, Proposer } from '../../ports/proposer.ts'
import type { RouterClients } from '../../ports/router-clients.ts'
import type { RouterConnection } from '../connection.ts'
import type { RouterDuty } from '../duty.ts'
import { routerLimits } from '../limits.ts'
import { routerMessage } from '../messages.ts'
import type { RouterLogger } from '../router-channels.ts'
import { claimFaultCodes, DO_NOT_RETRY, INTERNAL, INVALID_INSTANCE } from './client-errors.ts'

const { routerEntryBytesMax, routerWritesAtOnceMax, routerWritesWaitingMax } = routerLimits
/** Terminators that one entry of the log removes. */
const ENTRY_IDS_MAX = 100
/** Faults that say that the instance is another host's. */
const instanceFields: ReadonlySet<string> = new Set(['identity', 'identitySecret'])
/** A number that nobody knows is as good as none. */
function precedenceName(precedence: ModelPrecedence): string {
  if (precedence === ModelPrecedence.REQUIRED) return 'required'
  return precedence === ModelPrecedence.FAILED ? 'failed' : 'default'
}

export interface TerminatorDutyParts {
  readonly clients: Pick<RouterClients, 'judge'>
  readonly proposer: Proposer
  readonly log: RouterLogger
}

type Answer = Omit<MessageShape<typeof CreateTerminatorV2AnswerSchema>, '$typeName' | '$unknown'>

/**
 * Services that clients of a router host there: a write of the router, through whichever controller
 * leads.
 */
export class TerminatorDuty implements RouterDuty {
  readonly handlers: RouterDuty['handlers']
  readonly #parts: TerminatorDutyParts
  /** Writes by router: beyond the limit it is told to come back. */
  readonly #writes = new KeyedTasks(routerWritesAtOnceMax)

  constructor(parts: TerminatorDutyParts) {
    this.#parts = parts
    this.handlers = new Map([
      [routerMessage.createTerminator, (connection, message) => this.#create(connection, message)],
      [
        routerMessage.removeTerminator,
        (connection, message) => {
          const { terminatorId } = fromBinary(RemoveTerminatorSchema, message.body)
          return this.#remove(connection, message, [terminatorId])
        },
      ],
      [
        routerMessage.removeTerminators,
        (connection, message) => {
          const { terminatorIds } = fromBinary(RemoveTerminatorsSchema, message.body)
          return this.#remove(connection, message, terminatorIds)
        },
      ],
      [routerMessage.updateTerminator, this.#updating(UpdateTerminatorSchema)],
      [routerMessage.updateEdgeTerminator, this.#updating(UpdateEdgeTerminatorSchema)],
      [
        routerMessage.healthEvent,
        (connection, message) => {
          const { terminatorId, checkPassed } = fromBinary(HealthEventSchema, message.body)
          // What is not well is the last to be dialed.
          const precedence = checkPassed ? 'default' : 'failed'
          return this.#update(connection, message, { id: terminatorId, precedence })
        },
      ],
    ])
  }

  async #create(connection: RouterConnection, message: ChannelMessage): Promise<void> {
    const asked = fromBinary(CreateTerminatorV2Schema, message.body)
    const answer = await this.#created(connection, asked)
    const body = toBinary(
      CreateTerminatorV2AnswerSchema,
      create(CreateTerminatorV2AnswerSchema, { terminatorId: asked.address, ...answer }),
    )
    connection.channel.reply(message, {
      contentType: routerMessage.createTerminatorAnswer,
      body,
    })
  }

  async #created(
    connection: RouterConnection,
    asked: CreateTerminatorV2,
  ): Promise<Partial<Answer>> {
    const { router } = connection
    try {
      const judged = await this.#parts.clients.judge({
        routerId: router.id,
        type: 'Bind',
        sessionToken: asked.sessionToken,
        apiSessionToken: asked.apiSessionToken,
        fingerprints: asked.fingerprints,
      })
      if (!judged.ok) {
        const errorCode = claimFaultCodes[judged.fault]
        return {
          result: CreateTerminatorResult.FAILED_OTHER,
          errorCode,
          retryHint: DO_NOT_RETRY,
          msg: `bind refused: ${judged.fault}`,
        }
      }
      const outcome = await this.#propose(
        connection,
        CommandKind.HOSTED_TERMINATOR_CREATE,
        HostedTerminatorCreateSchema,
        create(HostedTerminatorCreateSchema, {
          id: asked.address,
          sessionId: judged.client.sessionId,
          address: asked.address,
          cost: asked.cost,
          precedence: precedenceName(asked.precedence),
          instanceId: asked.instanceId,
          instanceSecret: Buffer.from(asked.instanceSecret).toString('base64'),
          peerData: Object.fromEntries(
            Object.entries(asked.peerData).map(([key, value]) => [
              key,
              Buffer.from(value).toString('base64'),
            ]),
          ),
        }),
      )
      if (outcome.ok) return { result: CreateTerminatorResult.SUCCESS }
      const msg = outcome.detail ?? outcome.fault?.reason ?? outcome.code
      const isOfInstance = instanceFields.has(outcome.fault?.field ?? '')
      return {
        result: CreateTerminatorResult.FAILED_OTHER,
        msg,
        // Its listener would only take the place of another host.
        ...(isOfInstance
          ? { errorCode: INVALID_INSTANCE, retryHint: DO_NOT_RETRY }
          : { errorCode: INTERNAL }),
      }
    } catch (error) {
      return this.#busy(router.id, error)
    }
  }

  async #remove(
    connection: RouterConnection,
    message: ChannelMessage,
    ids: readonly string[],
  ): Promise<void> {
    const { router, channel } = connection
    let outcome = ''
    // An entry is small whatever a router asks for; what is left after a failure it asks for again.
    for (let at = 0; at < ids.length && outcome === '' && !channel.isClosed; at += ENTRY_IDS_MAX) {
      const some = ids.slice(at, at + ENTRY_IDS_MAX)
      outcome = await this.#attempt(router.id, () =>
        this.#propose(
          connection,
          CommandKind.HOSTED_TERMINATORS_REMOVE,
          HostedTerminatorsRemoveSchema,
          create(HostedTerminatorsRemoveSchema, { ids: some }),
        ),
      )
    }
    channel.replyResult(message, outcome === '', outcome)
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
    fields: { readonly id: string; readonly cost?: number; readonly precedence?: string },
  ): Promise<void> {
    const { router, channel } = connection
    const outcome = await this.#attempt(router.id, () =>
      this.#propose(
        connection,
        CommandKind.HOSTED_TERMINATOR_UPDATE,
        HostedTerminatorUpdateSchema,
        create(HostedTerminatorUpdateSchema, fields),
      ),
    )
    channel.replyResult(message, outcome === '', outcome)
  }

  /** @returns '' when it is done, else why not. */
  async #attempt(routerId: string, write: () => Promise<Outcome>): Promise<string> {
    try {
      const outcome = await write()
      return outcome.ok ? '' : (outcome.detail ?? outcome.fault?.reason ?? outcome.code)
    } catch (error) {
      return this.#busy(routerId, error).msg ?? ''
    }
  }

  async #propose<D extends DescMessage>(
    { router, address }: RouterConnection,
    kind: CommandKind,
    schema: D,
    message: MessageShape<D>,
  ): Promise<Outcome> {
    const routerId = router.id
    if (this.#writes.count(routerId) >= routerWritesWaitingMax) {
      throw new Problem('SERVER_TOO_MANY_REQUESTS')
    }
    const actor = enrollmentActor({ routerId }, { method: 'channel', address })
    const payload = toBinary(schema, message)
    if (payload.length > routerEntryBytesMax) throw new Problem('REQUEST_ENTITY_TOO_LARGE')
    const { proposer } = this.#parts
    return await this.#writes.run(
      routerId,
      async () => (await proposer.propose({ kind, payload, actor })).outcome,
    )
  }

  /**
   * Nobody leads, too much is under way, or nobody knows: the router tries again, and the same one
   * twice is done once.
   */
  #busy(routerId: string, error: unknown): Partial<Answer> {
    if (!(error instanceof Problem)) {
      const reason = errorMessage(error)
      this.#parts.log.warn({ routerId, reason }, 'a write requested by a router failed')
    }
    const msg = error instanceof Problem ? error.message : 'the controller could not write'
    // The same again would be as large.
    if (error instanceof Problem && error.code === 'REQUEST_ENTITY_TOO_LARGE') {
      const { FAILED_OTHER } = CreateTerminatorResult
      return { result: FAILED_OTHER, msg, errorCode: INTERNAL, retryHint: DO_NOT_RETRY }
    }
    return { result: CreateTerminatorResult.FAILED_BUSY, msg, errorCode: INTERNAL }
  }
}
