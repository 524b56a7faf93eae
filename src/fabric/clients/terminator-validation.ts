import { create, toBinary } from '@bufbuild/protobuf'

import { TerminatorStatesSchema, ValidateTerminatorsSchema } from '../../../proto/gen/router_pb.ts'
import type { Outgoing } from '../../channel/channel.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import { decodeInSteps } from '../../channel/wire-scan.ts'
import type { Clock } from '../../lib/clock.ts'
import type { HostedTerminators, RouterTerminator } from '../../ports/hosted-terminators.ts'
import type { RouterConnection } from '../connection.ts'
import type { RouterDuty } from '../duty.ts'
import { routerLimits } from '../limits.ts'
import { routerMessage } from '../messages.ts'
import type { RouterLogger } from '../router-channels.ts'
import type { RouterWrites } from './router-writes.ts'

const { terminatorsAskedAfterMs, terminatorsAskedAtOnceMax } = routerLimits

export interface TerminatorValidationParts {
  readonly terminators: Pick<HostedTerminators, 'ofRouter'>
  readonly writes: Pick<RouterWrites, 'remove'>
  readonly isLeader: () => boolean
  readonly connections: () => Iterable<RouterConnection>
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly log: RouterLogger
}

/** The terminators that one router is asked about, over one connection. */
interface Asked {
  /** The router answers with it. */
  readonly marker: bigint
  readonly ids: Set<string>
}

/**
 * Asks each router, when it has connected, which of the terminators that it has made are there
 * still, and removes the others: a router that has started again, or was told of an end while it
 * was away, hosts less than the records say, and clients would be sent there in vain.
 */
export class TerminatorValidation implements RouterDuty {
  readonly handlers: RouterDuty['handlers']
  readonly #parts: TerminatorValidationParts
  readonly #asked = new Map<RouterConnection, Asked>()
  /** Monotonic ms at which each router is asked. */
  readonly #dueMs = new Map<RouterConnection, number>()
  #markers = 0n

  constructor(parts: TerminatorValidationParts) {
    this.#parts = parts
    this.handlers = new Map([
      [
        routerMessage.terminatorStates,
        (connection, message) => this.#onStates(connection, message),
      ],
    ])
  }

  onConnected(connection: RouterConnection): void {
    this.#dueMs.set(connection, this.#parts.clock.monotonicMs() + terminatorsAskedAfterMs)
  }

  onDisconnected(connection: RouterConnection): void {
    this.#asked.delete(connection)
    this.#dueMs.delete(connection)
  }

  onSweep(): void {
    const { isLeader, clock } = this.#parts
    if (!isLeader()) {
      // Another controller asks; should this one lead, it asks all of them.
      for (const connection of this.#asked.keys()) this.onConnected(connection)
      this.#asked.clear()
      return
    }
    const nowMs = clock.monotonicMs()
    for (const [connection, dueMs] of this.#dueMs) {
      if (connection.channel.isClosed) this.onDisconnected(connection)
      else if (nowMs >= dueMs) this.#ask(connection)
    }
  }

  #ask(connection: RouterConnection): void {
    const { router, channel } = connection
    const asked = [...this.#parts.terminators.ofRouter(router.id)]
    this.#markers += 1n
    const marker = this.#markers
    this.#dueMs.delete(connection)
    this.#asked.set(connection, { marker, ids: new Set(asked.map(({ id }) => id)) })
    for (let at = 0; at < asked.length; at += terminatorsAskedAtOnceMax) {
      channel.send(validationOf(asked.slice(at, at + terminatorsAskedAtOnceMax), marker))
    }
  }

  *#onStates(connection: RouterConnection, { body }: ChannelMessage): Generator<void, void> {
    const { states } = yield* decodeInSteps(TerminatorStatesSchema, body)
    const asked = this.#asked.get(connection)
    const gone: string[] = []
    for (const [id, { valid, marker }] of Object.entries(states)) {
      const isAnswer = asked?.marker === marker && asked.ids.delete(id)
      if (isAnswer && !valid) gone.push(id)
      yield
    }
    if (gone.length > 0) void this.#remove(connection, gone)
  }

  async #remove(connection: RouterConnection, ids: readonly string[]): Promise<void> {
    const { writes, log } = this.#parts
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

function validationOf(terminators: readonly RouterTerminator[], marker: bigint): Outgoing {
  const message = create(ValidateTerminatorsSchema, {
    fixInvalid: true,
    // The router answers for itself, and asks no host.
    postCreate: true,
    terminators: terminators.map((terminator) => ({ ...terminator, marker })),
  })
  return {
    contentType: routerMessage.validateTerminators,
    body: toBinary(ValidateTerminatorsSchema, message),
  }
}
