import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  CreateTerminatorResult,
  type CreateTunnelTerminator,
  CreateTunnelTerminatorAnswerSchema,
  CreateTunnelTerminatorSchema,
  UpdateTunnelTerminatorSchema,
} from '../../../proto/gen/router_pb.ts'
import type { ChannelMessage, OutboundMessage } from '../../channel/frame.ts'
import { readFlag, readText } from '../../channel/headers.ts'
import type { Clock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { Problem } from '../../lib/problems.ts'
import type { LatestReads } from '../../ports/latest-reads.ts'
import type { Proposer } from '../../ports/proposer.ts'
import type { RouterTunnels, TunnelAccessRequest } from '../../ports/router-tunnels.ts'
import { edgeRefusalMessage } from '../../channel/messages/circuit-requests.ts'
import type { RouterConnection } from '../router-connection.ts'
import type { ChannelHandler } from '../channel-handler.ts'
import { evaluateAgainBeforeRefusal } from '../evaluate-again-before-refusal.ts'
import { controlHeaderKey, controlContentType } from '../../channel/messages/control.ts'
import type { RouterLogger } from '../router-channels.ts'
import { tunnelAccessFaultCodes } from './client-access-faults.ts'
import type { RouterTerminatorWriter } from './router-terminator-writer.ts'
import { terminatorRemovalProposal } from './terminator-removal.ts'
import { edgeErrorCode, retryHint } from '../../channel/messages/edge.ts'
import { precedenceName, type TerminatorCreateResult } from '../../channel/messages/terminators.ts'

/** Maximum number of terminators that are checked before other work runs. */
const SLICE = 250
/** If the last check was less than this time ago, the next sweep checks the change. */
const LOOK_MS_MIN = 250

/** Whether the tunnel of a router may dial or host a service. */
export type TunnelAccessCheck = (
  routerId: string,
  serviceId: string,
  type: TunnelAccessRequest['type'],
) => boolean

export interface TunnelHandlerDeps {
  readonly tunnels: RouterTunnels
  readonly writes: RouterTerminatorWriter
  readonly proposer: Proposer
  readonly reads: Pick<LatestReads, 'reachLatest'>
  readonly isLeader: () => boolean
  /** Ends circuits of tunnels that no longer have the permission for them. */
  readonly endCircuits: (isGranted: TunnelAccessCheck) => void
  readonly clock: Clock
  readonly log: RouterLogger
}

/**
 * Handles the terminators of services that the tunnels of routers host, with the permissions of the
 * router's identity. No session ends when these permissions end. So when records that affect them
 * change, each controller checks the tunnel circuits that it owns, and the leader checks the
 * terminators.
 */
export class TunnelHandler implements ChannelHandler {
  readonly handlers: ChannelHandler['handlers']
  readonly #deps: TunnelHandlerDeps
  #stop: (() => void) | null = null
  #isDue = true
  #isLooking = false
  #lookedMs = -Infinity
  #wasLeader = false

  constructor(deps: TunnelHandlerDeps) {
    this.#deps = deps
    const { writes } = deps
    const done = (contentType: number) => ({ contentType, body: new Uint8Array() })
    this.handlers = new Map([
      [
        controlContentType.createTunnelTerminatorV2,
        (connection, message) => this.#create(connection, message),
      ],
      [
        controlContentType.updateTunnelTerminator,
        async (connection, message) => {
          const asked = fromBinary(UpdateTunnelTerminatorSchema, message.body)
          const { terminatorId: id, updateCost, cost, updatePrecedence, precedence } = asked
          const outcome = await writes.update(connection, {
            id,
            ...(updateCost ? { cost } : {}),
            ...(updatePrecedence ? { precedence: precedenceName(precedence) } : {}),
          })
          answer(
            connection,
            message,
            outcome,
            done(controlContentType.updateTunnelTerminatorResponse),
          )
        },
      ],
      [
        controlContentType.removeTunnelTerminator,
        async (connection, message) => {
          const outcome = await writes.remove(connection, [Buffer.from(message.body).toString()])
          answer(
            connection,
            message,
            outcome,
            done(controlContentType.removeTunnelTerminatorResponse),
          )
        },
      ],
      [
        controlContentType.tunnelHealthEvent,
        async (connection, message) => {
          const id = readText(message.headers, controlHeaderKey.terminatorId) ?? ''
          // A host with a failed health check is dialed last.
          const precedence = readFlag(message.headers, controlHeaderKey.checkPassed)
            ? 'default'
            : 'failed'
          const outcome = await writes.update(connection, { id, precedence })
          connection.channel.replyResult(message, outcome === '', outcome)
        },
      ],
    ])
  }

  onSweep(): void {
    this.#stop ??= this.#deps.tunnels.follow(() => this.#onMoved())
    const isLeader = this.#deps.isLeader()
    if (isLeader && !this.#wasLeader) this.#isDue = true
    this.#wasLeader = isLeader
    if (this.#isDue) void this.#look()
  }

  onStop(): void {
    this.#stop?.()
    this.#stop = null
  }

  #onMoved(): void {
    const isSoon = this.#deps.clock.monotonicMs() - this.#lookedMs < LOOK_MS_MIN
    if (!this.#isDue && !isSoon) setImmediate(() => void this.#look())
    this.#isDue = true
  }

  async #look(): Promise<void> {
    if (this.#isLooking || this.#stop === null) return
    const { tunnels, clock, endCircuits, isLeader, log } = this.#deps
    this.#isLooking = true
    this.#isDue = false
    this.#lookedMs = clock.monotonicMs()
    try {
      endCircuits((routerId, serviceId, type) => {
        return tunnels.judge({ routerId, type, service: { id: serviceId } }).ok
      })
      // @guard tunnels-of-routers--terminators
      if (isLeader()) await this.#removeUngranted()
    } catch (error) {
      this.#isDue = true
      if (error instanceof Problem) return
      const reason = errorMessage(error)
      log.warn({ reason }, 'cannot remove terminators of tunnels that may not host any more')
    } finally {
      this.#isLooking = false
    }
  }

  /**
   * A write fails without a log line if there is no leader or no response; the next sweep tries
   * again.
   */
  async #removeUngranted(): Promise<void> {
    const { tunnels, proposer } = this.#deps
    let judged = 0
    for (const { id, routerId, serviceId } of tunnels.terminators()) {
      judged += 1
      if (judged % SLICE === 0) await new Promise((go) => setImmediate(go))
      if (tunnels.judge({ routerId, type: 'Bind', service: { id: serviceId } }).ok) continue
      await proposer.propose(terminatorRemovalProposal(id))
    }
  }

  async #create(connection: RouterConnection, message: ChannelMessage): Promise<void> {
    const asked = fromBinary(CreateTunnelTerminatorSchema, message.body)
    const { address: terminatorId, startTime } = asked
    const created = await this.#created(connection, asked)
    const answered = create(CreateTunnelTerminatorAnswerSchema, {
      terminatorId,
      startTime,
      ...created,
    })
    connection.channel.reply(message, {
      contentType: controlContentType.createTunnelTerminatorV2Response,
      body: toBinary(CreateTunnelTerminatorAnswerSchema, answered),
    })
  }

  async #created(
    connection: RouterConnection,
    asked: CreateTunnelTerminator,
  ): Promise<TerminatorCreateResult> {
    const { tunnels, writes, reads, log } = this.#deps
    const claim = {
      routerId: connection.router.id,
      type: 'Bind',
      service: { id: asked.serviceId },
    } as const
    const judged = await evaluateAgainBeforeRefusal(
      reads,
      () => tunnels.judge(claim),
      ({ ok }) => !ok,
    )
    if (judged.ok) return await writes.create(connection, asked, { serviceId: judged.serviceId })
    // Logged here, because the router logs no reason and may not retry until something changes.
    const fields = { routerId: claim.routerId, serviceId: asked.serviceId, reason: judged.fault }
    log.warn(fields, 'the tunnel of a router may not host a service that it asked for')
    return {
      result: CreateTerminatorResult.FAILED_OTHER,
      errorCode: tunnelAccessFaultCodes[judged.fault],
      retryHint: retryHint.notRetriable,
      msg: `bind refused: ${judged.fault}`,
    }
  }
}

/** @param outcome '' on success, otherwise the reason of the failure. */
function answer(
  { channel }: RouterConnection,
  message: ChannelMessage,
  outcome: string,
  done: OutboundMessage,
): void {
  channel.reply(
    message,
    outcome === '' ? done : edgeRefusalMessage(edgeErrorCode.internal, outcome),
  )
}
