import { create, toBinary } from '@bufbuild/protobuf'

import {
  TerminatorFault,
  type TerminatorState,
  TerminatorStatesSchema,
  ValidateTerminatorsSchema,
} from '../../../proto/gen/router_pb.ts'
import type { ChannelMessage, OutboundMessage } from '../../channel/frame.ts'
import { channelHeaderKey } from '../../channel/numbers.ts'
import { decodeIncrementally } from '../../channel/wire-scan.ts'
import type { Clock } from '../../lib/clock.ts'
import type { HostedTerminators, RouterTerminator } from '../../ports/hosted-terminators.ts'
import type { ReportedTerminator } from '../../ports/router-inspections.ts'
import type { RouterConnection } from '../router-connection.ts'
import type { ChannelHandler } from '../channel-handler.ts'
import { routerLimits } from '../limits.ts'
import { controlContentType } from '../../channel/messages/control.ts'
import type { RouterLogger } from '../router-channels.ts'
import type { RouterTerminatorWriter } from './router-terminator-writer.ts'

const { terminatorsAskedAfterMs, terminatorsAskedAtOnceMax, terminatorLookMs } = routerLimits
const DETAIL_CHARACTERS_MAX = 1024

export interface RouterTerminatorValidatorDeps {
  readonly terminators: Pick<HostedTerminators, 'ofRouter'>
  readonly writes: Pick<RouterTerminatorWriter, 'remove'>
  readonly isLeader: () => boolean
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly log: RouterLogger
}

/** Terminators in a request over one connection that the router has not reported yet. */
interface Asked {
  /** Number that the router repeats in its response. */
  readonly marker: bigint
  readonly ids: Set<string>
}

/**
 * A validation that an operator has requested for the terminators of one router. It reports the
 * results and removes nothing at the controllers.
 */
interface Look {
  readonly connection: RouterConnection
  readonly ids: Set<string>
  readonly found: Map<string, ReportedTerminator>
  /** Monotonic ms at which the validation ends with the results so far. */
  readonly dueMs: number
  readonly end: () => void
}

/**
 * On the leader, asks each router some time after it has connected which of the terminators that it
 * created still exist, and removes the others. A router that restarted, or was disconnected when a
 * session ended, hosts fewer terminators than the records contain, and dials to the missing ones
 * would fail.
 */
export class RouterTerminatorValidator implements ChannelHandler {
  readonly handlers: ChannelHandler['handlers']
  readonly #deps: RouterTerminatorValidatorDeps
  readonly #asked = new Map<RouterConnection, Asked>()
  /** Monotonic ms at which to send the next validation request to each router. */
  readonly #dueMs = new Map<RouterConnection, number>()
  /** Pending validations by the number (marker) in their requests. */
  readonly #looks = new Map<bigint, Look>()
  #markers = 0n

  constructor(deps: RouterTerminatorValidatorDeps) {
    this.#deps = deps
    this.handlers = new Map([
      [
        controlContentType.validateTerminatorsV2Response,
        (connection, message) => this.#onStates(connection, message),
      ],
    ])
  }

  onConnected(connection: RouterConnection): void {
    this.#dueMs.set(connection, this.#deps.clock.monotonicMs() + terminatorsAskedAfterMs)
  }

  onDisconnected(connection: RouterConnection): void {
    this.#asked.delete(connection)
    this.#dueMs.delete(connection)
    for (const look of this.#looks.values()) if (look.connection === connection) look.end()
  }

  /**
   * Makes the router check its terminators with the hosts, and returns its results after at most
   * {@link routerLimits.terminatorLookMs}.
   * @param isFixing true: the router removes terminators whose host is gone.
   */
  async look(
    connection: RouterConnection,
    terminators: readonly RouterTerminator[],
    isFixing: boolean,
  ): Promise<ReadonlyMap<string, ReportedTerminator>> {
    const found = new Map<string, ReportedTerminator>()
    if (terminators.length === 0 || connection.channel.isClosed) return found
    this.#markers += 1n
    const marker = this.#markers
    const { promise, resolve: end } = Promise.withResolvers<void>()
    const dueMs = this.#deps.clock.monotonicMs() + terminatorLookMs
    const ids = new Set(terminators.map(({ id }) => id))
    this.#looks.set(marker, { connection, ids, found, dueMs, end })
    connection.channel.send(validationOf(terminators, marker, { isFixing, isPastCreation: false }))
    await promise
    this.#looks.delete(marker)
    return found
  }

  /** Routers whose answer about their terminators is still missing, for inspections. */
  pending(): readonly object[] {
    return Array.from(this.#asked, ([{ router }, { ids }]) => ({
      router: { id: router.id, name: router.name },
      terminators: [...ids],
      checkInProgress: true,
    }))
  }

  onSweep(): void {
    const { isLeader, clock } = this.#deps
    const nowMs = clock.monotonicMs()
    for (const look of this.#looks.values()) if (nowMs >= look.dueMs) look.end()
    if (!isLeader()) {
      // Only the leader asks routers; a new leader asks all of them again.
      for (const connection of this.#asked.keys()) this.onConnected(connection)
      this.#asked.clear()
      return
    }
    for (const [connection, dueMs] of this.#dueMs) {
      if (connection.channel.isClosed) this.onDisconnected(connection)
      else if (nowMs >= dueMs) this.#ask(connection)
    }
  }

  #ask(connection: RouterConnection): void {
    const { router, channel } = connection
    const asked = [...this.#deps.terminators.ofRouter(router.id)]
    this.#markers += 1n
    const marker = this.#markers
    this.#dueMs.delete(connection)
    this.#asked.set(connection, { marker, ids: new Set(asked.map(({ id }) => id)) })
    for (let at = 0; at < asked.length; at += terminatorsAskedAtOnceMax) {
      const some = asked.slice(at, at + terminatorsAskedAtOnceMax)
      channel.send(validationOf(some, marker, { isFixing: true, isPastCreation: true }))
    }
  }

  *#onStates(connection: RouterConnection, message: ChannelMessage): Generator<void, void> {
    const { states } = yield* decodeIncrementally(TerminatorStatesSchema, message.body)
    const asked = this.#asked.get(connection)
    const gone: string[] = []
    const looks = new Set<Look>()
    for (const [id, state] of Object.entries(states)) {
      const look = this.#looks.get(state.marker)
      // @guard validations-of-others--router
      if (asked?.marker === state.marker) {
        if (asked.ids.delete(id) && !state.valid) gone.push(id)
      } else if (look?.connection === connection && look.ids.delete(id)) {
        look.found.set(id, standingOf(state))
        looks.add(look)
      }
      yield
    }
    // OpenZiti routers send one response with all results that they have; Flotilla routers send one
    // response for each binding.
    const isWhole = message.headers.has(channelHeaderKey.replyFor)
    for (const look of looks) if (isWhole || look.ids.size === 0) look.end()
    if (gone.length > 0) void this.#remove(connection, gone)
  }

  async #remove(connection: RouterConnection, ids: readonly string[]): Promise<void> {
    const { writes, log } = this.#deps
    const routerId = connection.router.id
    const reason = await writes.remove(connection, ids)
    if (reason === '') {
      log.info(
        { routerId, terminators: ids.length },
        'terminators that a router has not are removed',
      )
    } else if (!connection.channel.isClosed) {
      log.warn({ routerId, reason }, 'terminators that a router has not could not be removed')
      this.onConnected(connection)
    }
  }
}

function standingOf({ valid, reason, detail }: TerminatorState): ReportedTerminator {
  const text = detail.slice(0, DETAIL_CHARACTERS_MAX)
  if (valid) return { state: 'valid', detail: text }
  switch (reason) {
    case TerminatorFault.UNKNOWN_BINDING:
      return { state: 'unknownBinding', detail: text }
    case TerminatorFault.UNKNOWN_TERMINATOR:
      return { state: 'unknownTerminator', detail: text }
    default:
      return { state: 'badState', detail: text }
  }
}

function validationOf(
  terminators: readonly RouterTerminator[],
  marker: bigint,
  how: {
    /** True if the router should remove terminators whose host is gone. */
    readonly isFixing: boolean
    /** True if the router should answer from its own state, without asking the hosts. */
    readonly isPastCreation: boolean
  },
): OutboundMessage {
  const message = create(ValidateTerminatorsSchema, {
    fixInvalid: how.isFixing,
    postCreate: how.isPastCreation,
    terminators: terminators.map((terminator) => ({ ...terminator, marker })),
  })
  return {
    contentType: controlContentType.validateTerminatorsV2,
    body: toBinary(ValidateTerminatorsSchema, message),
  }
}
