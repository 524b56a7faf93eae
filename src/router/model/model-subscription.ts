import { randomUUID } from 'node:crypto'

import type { ChannelMessage } from '../../channel/frame.ts'
import type { Clock } from '../../lib/clock.ts'
import { BoundedQueue } from '../../lib/bounds/bounded-queue.ts'
import { errorMessage } from '../../lib/error-code.ts'
import type { Random } from '../../lib/random.ts'
import type {
  ControlConnection,
  ControlMessageHandler,
  ControlMessageTable,
} from '../controllers/control-connection.ts'
import { modelLimits } from './limits.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import {
  readModelIndex,
  subscribeMessage,
  readSubscriptionId,
  modelValidatedMessage,
} from '../../channel/messages/model.ts'
import type { RouterDataModel } from './router-data-model.ts'
import { controlContentType } from '../../channel/messages/control.ts'
import { periodicScheduler } from '../../lib/periodic-scheduler.ts'

const {
  modelAskedEveryMs,
  modelJudgedEveryMs,
  modelMessageBytesMax,
  modelMessagesMax,
  modelRenewedEveryMs,
  modelSubscriptionSeconds,
} = modelLimits

interface ModelSubscriptionDeps {
  readonly model: RouterDataModel
  readonly connections: () => readonly ControlConnection[]
  /**
   * If a controller has been silent for longer than this, the router prefers another controller.
   */
  readonly silentMsMax: number
  readonly clock: Clock
  readonly random: Random
  readonly log: ProgramLogger
}

interface Subscription {
  readonly id: string
  readonly connection: ControlConnection
  renewedMs: number
}

interface Waiting {
  readonly connection: ControlConnection
  readonly message: ChannelMessage
}

/**
 * Subscribes to the data model at one controller at a time, and changes to another controller if
 * that one disconnects or becomes silent. Applies the controller's messages in their order.
 */
export class ModelSubscription {
  readonly #deps: ModelSubscriptionDeps
  readonly #waiting = new BoundedQueue<Waiting>(modelMessagesMax)
  #waitingBytes = 0
  #isWorking = false
  #subscription: Subscription | null = null
  #askedMs = -Infinity
  #stopTimer: (() => void) | null = null
  #askTimer: NodeJS.Timeout | null = null
  #isStopped = false

  constructor(deps: ModelSubscriptionDeps) {
    this.#deps = deps
  }

  /** The controller at which the router is subscribed; null if there is none. */
  get controllerId(): string | null {
    return this.#subscription?.connection.id ?? null
  }

  start(): void {
    this.#stopTimer = periodicScheduler.every(modelJudgedEveryMs, () => this.#judge())
  }

  stop(): void {
    this.#isStopped = true
    if (this.#askTimer !== null) clearTimeout(this.#askTimer)
    this.#stopTimer?.()
  }

  messages(): ControlMessageTable {
    const take: ControlMessageHandler = (connection, message) => this.#take(connection, message)
    return new Map<number, ControlMessageHandler>([
      [controlContentType.dataState, take],
      [controlContentType.dataStateChangeSet, take],
      [controlContentType.validateDataState, take],
      [
        controlContentType.currentIndex,
        (connection, message) => this.#onIndex(connection, message),
      ],
    ])
  }

  onConnected(): void {
    // Waits until the channel is open, which happens in a later turn of the event loop.
    setImmediate(() => this.#judge())
  }

  onDisconnected(connection: ControlConnection): void {
    if (this.#subscription?.connection !== connection) return
    this.#subscription = null
    this.#judge()
  }

  #judge(): void {
    if (this.#isStopped) return
    const current = this.#subscription
    const nowMs = this.#deps.clock.monotonicMs()
    if (current === null || current.connection.channel.isClosed || this.#isAway(current)) {
      this.#subscribe()
    } else if (nowMs - current.renewedMs >= modelRenewedEveryMs) {
      current.renewedMs = nowMs
      // Renews the subscription only if the model was applied. If the model was too large, the
      // router must request it again.
      if (this.#deps.model.isFilled) this.#send(current, true)
      else this.#subscribe()
    }
  }

  #isAway({ connection }: Pick<Subscription, 'connection'>): boolean {
    return connection.channel.silentForMs > this.#deps.silentMsMax
  }

  #subscribe(): void {
    const { connections, random, clock, log } = this.#deps
    const open = connections().filter(({ channel }) => !channel.isClosed)
    const near = open.filter((connection) => !this.#isAway({ connection }))
    // A random controller, so that the routers of a network are distributed over the controllers.
    const chosen = near[random.integer(0, Math.max(0, near.length - 1))]
    if (chosen === undefined) return
    const connection = chosen
    const isMoved = this.#subscription?.connection !== connection
    this.#subscription = { id: randomUUID(), connection, renewedMs: clock.monotonicMs() }
    if (isMoved) log.info({ controllerId: connection.id }, 'following the data model')
    this.#send(this.#subscription, false)
  }

  /**
   * Subscribes again with the index of the current model. The time between two requests is at least
   * `modelAskedEveryMs`.
   */
  #resubscribe(reason: string): void {
    if (this.#isStopped || this.#askTimer !== null) return
    const { log, model, clock } = this.#deps
    log.warn({ reason, index: String(model.index) }, 'data model: subscribing again')
    const waitMs = Math.max(0, this.#askedMs + modelAskedEveryMs - clock.monotonicMs())
    this.#askTimer = setTimeout(() => {
      this.#askTimer = null
      this.#subscribe()
    }, waitMs)
  }

  #send({ id, connection }: Subscription, renews: boolean): void {
    const { model, clock } = this.#deps
    if (!renews) this.#askedMs = clock.monotonicMs()
    const { index, timelineId } = model
    const seconds = modelSubscriptionSeconds
    connection.channel.send(
      subscribeMessage({ index, timelineId, seconds, renews, subscriptionId: id }),
    )
  }

  #take(connection: ControlConnection, message: ChannelMessage): void {
    const bytes = message.body.length
    const isFull = this.#waiting.length > 0 && this.#waitingBytes + bytes > modelMessageBytesMax
    if (isFull || !this.#waiting.push({ connection, message })) {
      for (const dropped of this.#waiting.drain()) this.#waitingBytes -= dropped.message.body.length
      this.#resubscribe('too much of it waits to be taken')
      return
    }
    this.#waitingBytes += bytes
    void this.#work()
  }

  async #work(): Promise<void> {
    if (this.#isWorking) return
    this.#isWorking = true
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      this.#waitingBytes -= next.message.body.length
      try {
        await inTurns(this.#stepsOf(next))
      } catch (error) {
        const { contentType } = next.message
        const fields = { controllerId: next.connection.id, contentType, err: error }
        this.#deps.log.warn(fields, 'message of a controller rejected')
        this.#resubscribe(errorMessage(error))
      }
    }
    this.#isWorking = false
  }

  *#stepsOf({ connection, message }: Waiting): Generator<void, void> {
    const { model, log } = this.#deps
    const isOfSubscription = this.#isOfSubscription(connection, message)
    if (message.contentType === controlContentType.validateDataState) {
      connection.channel.reply(message, modelValidatedMessage(yield* model.compare(message.body)))
      return
    }
    if (message.contentType === controlContentType.dataState) {
      if (!isOfSubscription) return
      const excess = yield* model.replace(message.body)
      const { index, timelineId } = model
      const fields = { controllerId: connection.id, index: String(index), timelineId }
      if (excess === null) log.info(fields, 'data model received')
      else this.#onExcess(excess)
      return
    }
    const outcome = yield* model.change(message.body, isOfSubscription)
    if (outcome === 'not following')
      this.#resubscribe('a change does not follow the last received index')
    if (outcome === 'too large') this.#onExcess('it has grown too large')
  }

  #onExcess(reason: string): void {
    this.#deps.log.error(
      { reason },
      'the data model is not kept, so that nothing is permitted at this router: it is larger than a router keeps',
    )
  }

  #isOfSubscription(connection: ControlConnection, message: ChannelMessage): boolean {
    const current = this.#subscription
    if (current?.connection !== connection) return false
    const id = readSubscriptionId(message)
    return id === null || id === current.id
  }

  /**
   * Handles the index of the controller's model. If it is higher although the controller has sent
   * no changes, the controller may have lost the subscription.
   */
  #onIndex(connection: ControlConnection, message: ChannelMessage): void {
    const current = this.#subscription
    if (current?.connection !== connection || this.#isWorking) return
    const index = readModelIndex(message)
    if (index === null || !this.#deps.model.isFilled || index <= this.#deps.model.index) return
    this.#resubscribe('the controller is further')
  }
}

/** Runs the steps with a pause after each, in which the event loop does other work. */
async function inTurns(steps: Iterator<void, void>): Promise<void> {
  while (steps.next().done !== true) await new Promise((resolve) => setImmediate(resolve))
}
