import { create, toBinary } from '@bufbuild/protobuf'

import {
  ModelChangeSetSchema,
  type ModelEvent as EncodedEvent,
  ModelEventSchema,
  DataStateSchema,
} from '../../../proto/gen/router_pb.ts'
import { encodeText, encodeUint64 } from '../../channel/headers.ts'
import type { ChannelMessage, OutboundMessage } from '../../channel/frame.ts'
import type { Clock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/error-code.ts'
import type { ModelEvent, RouterModel } from '../../ports/router-model.ts'
import type { RouterConnection } from '../router-connection.ts'
import type { ChannelHandler } from '../channel-handler.ts'
import { routerLimits } from '../limits.ts'
import { controlHeaderKey, controlContentType } from '../../channel/messages/control.ts'
import type { RouterLogger } from '../router-channels.ts'
import { encodeModelEvent } from './encode.ts'
import { appendPreviousIndex, ModelChangeHistory } from './model-change-history.ts'
import { trustedPublicKeys, type PublicKeyValue, type TrustedCertificates } from './public-keys.ts'
import { readSubscribeRequest } from '../../channel/messages/model.ts'

const { modelIndexEveryMs, modelSendsMax, modelSendTimeoutMs } = routerLimits
const SENT_POLL_MS = 20
const { modelSubscriptionSecondsMin, modelSubscriptionSecondsMax } = routerLimits

interface ModelHandlerDeps {
  readonly model: RouterModel
  /**
   * ID that changes whenever the history of the model is replaced, for example by a restore. A
   * router that receives another timeline ID discards its model.
   */
  readonly timelineId: () => string
  readonly isLeader: () => boolean
  readonly certificates: () => TrustedCertificates
  readonly connections: () => Iterable<RouterConnection>
  readonly clock: Clock
  readonly log: RouterLogger
}

interface Subscription {
  readonly connection: RouterConnection
  id: string
  untilMs: number
  /** Index of the router's model; null if the router needs the full model. */
  position: number | null
}

/**
 * Sends the data model to edge routers, which use it to decide about access without asking a
 * controller. A router subscribes at one controller at a time. It gets the changes that it missed
 * if they are available, otherwise the full model.
 */
export class ModelHandler implements ChannelHandler {
  readonly handlers: ChannelHandler['handlers']
  readonly #deps: ModelHandlerDeps
  #stop: (() => void) | null = null
  readonly #subscriptions = new Map<string, Subscription>()
  #log: ModelChangeHistory
  /** The full model that was last encoded. */
  #whole: { readonly key: string; readonly bytes: Promise<Uint8Array> } | null = null
  /**
   * IDs of routers to which the full model is being sent; each router gets only one copy at a time.
   */
  readonly #senders = new Set<string>()
  #keys: readonly PublicKeyValue[] = []
  #keysText = ''
  #sentIndex = 0
  #sentIndexMs = -Infinity
  /**
   * For each identity that is disabled until a given time: that time, UTC ms. No log entry marks
   * the end of this time.
   */
  readonly #disabledUntil = new Map<string, number>()
  #isFlushDue = false

  constructor(deps: ModelHandlerDeps) {
    this.#deps = deps
    this.#log = this.#newLog()
    this.handlers = new Map([
      [
        controlContentType.subscribeToDataModel,
        (connection, message) => this.#onSubscribe(connection, message),
      ],
    ])
  }

  onConnected(connection: RouterConnection): void {
    if (!connection.router.isEdge) return
    this.#stop ??= this.#follow()
    this.#followKeys()
    this.#sendKeys([connection])
  }

  onDisconnected({ router }: RouterConnection): void {
    this.#subscriptions.delete(router.id)
  }

  onSweep(): void {
    if (this.#edgeRouters().length === 0) return
    const nowMs = this.#deps.clock.monotonicMs()
    for (const [id, { untilMs }] of this.#subscriptions) {
      if (untilMs <= nowMs) this.#subscriptions.delete(id)
    }
    if (this.#followKeys()) this.#sendKeys(this.#edgeRouters())
    this.#endDisabled()
    if (nowMs - this.#sentIndexMs >= modelIndexEveryMs) this.#sendIndex(nowMs)
    this.#flush()
  }

  onStop(): void {
    this.#stop?.()
    this.#stop = null
  }

  /** Called when the first edge router connects: before that, writes have no additional cost. */
  #follow(): () => void {
    const { model } = this.#deps
    this.#restart()
    return model.follow({
      onEntry: (index, events) => this.#onEntry(index, events),
      onReplaced: () => {
        this.#restart()
        for (const each of this.#subscriptions.values()) each.position = null
        this.#flushSoon()
      },
    })
  }

  #restart(): void {
    this.#log = this.#newLog()
    this.#whole = null
    this.#disabledUntil.clear()
    for (const { id, untilMs } of this.#deps.model.disabledForNow()) {
      this.#disabledUntil.set(id, untilMs)
    }
  }

  #newLog(): ModelChangeHistory {
    return new ModelChangeHistory(this.#deps.model.appliedIndex, routerLimits)
  }

  #edgeRouters(): RouterConnection[] {
    return [...this.#deps.connections()].filter(({ router }) => router.isEdge)
  }

  #onSubscribe(connection: RouterConnection, { body }: ChannelMessage): void {
    const { router } = connection
    if (!router.isEdge) return
    const asked = readSubscribeRequest(body)
    const { timelineId, isLeader, clock, model } = this.#deps
    const known = this.#subscriptions.get(router.id)
    const seconds = Math.min(
      Math.max(asked.seconds, modelSubscriptionSecondsMin),
      modelSubscriptionSecondsMax,
    )
    const untilMs = clock.monotonicMs() + seconds * 1000
    if (known?.connection === connection && asked.renews && known.id === asked.subscriptionId) {
      known.untilMs = untilMs
      return
    }
    const index = Number(asked.index)
    // A router whose model is ahead of the leader's has received entries that are not in the
    // current log, so it needs the full model.
    const isAhead = index > model.appliedIndex && isLeader()
    const isKnown = index > 0 && asked.timelineId === timelineId() && !isAhead
    this.#subscriptions.set(router.id, {
      connection,
      id: asked.subscriptionId,
      untilMs,
      position: isKnown ? index : null,
    })
    this.#flush()
  }

  #onEntry(index: number, events: readonly ModelEvent[]): void {
    const nowMs = this.#deps.clock.nowMs()
    this.#noteDisabled(events)
    const encoded = events.flatMap((event): EncodedEvent[] => {
      const made = encodeModelEvent(event, nowMs)
      return made === null ? [] : [made]
    })
    this.#log.add(index, encoded, this.#deps.timelineId())
    this.#flushSoon()
  }

  /**
   * Sends after the current log entry is applied, so that applying does not wait, and changes of
   * several entries are sent together.
   */
  #flushSoon(): void {
    if (this.#isFlushDue || this.#subscriptions.size === 0) return
    this.#isFlushDue = true
    setImmediate(() => {
      this.#isFlushDue = false
      this.#flush()
    })
  }

  #flush(): void {
    for (const subscription of Array.from(this.#subscriptions.values())) {
      const { position, connection } = subscription
      if (this.#senders.has(connection.router.id)) continue
      if (position !== null && this.#log.holds(position)) this.#sendChanges(subscription, position)
      else if (this.#senders.size < modelSendsMax) void this.#sendWhole(subscription)
    }
  }

  #sendChanges(subscription: Subscription, from: number): void {
    let position = from
    for (const { index, bytes } of this.#log.after(from)) {
      const body = appendPreviousIndex(bytes, position)
      if (!this.#send(subscription, { contentType: controlContentType.dataStateChangeSet, body }))
        return
      position = index
    }
    subscription.position = position
  }

  async #sendWhole(subscription: Subscription): Promise<void> {
    const { connection } = subscription
    const { id: routerId } = connection.router
    // @guard model-that-is-not-read--place
    this.#senders.add(routerId)
    try {
      const endIndex = this.#log.index
      const body = await this.#wholeModel(endIndex)
      if (!this.#send(subscription, { contentType: controlContentType.dataState, body })) return
      subscription.position = endIndex
      await this.#sent(connection)
    } catch (error) {
      const reason = errorMessage(error)
      this.#deps.log.warn({ routerId, reason }, 'cannot send the data model to a router')
      connection.channel.close('the data model could not be sent')
    } finally {
      this.#senders.delete(routerId)
    }
    this.#flush()
  }

  /**
   * Waits until the router has read everything that was sent, or has disconnected. If the router is
   * too slow, closes its channel, because other routers wait for the full model; the router
   * subscribes again after it has reconnected.
   */
  async #sent({ router, channel }: RouterConnection): Promise<void> {
    const { clock, log } = this.#deps
    const endMs = clock.monotonicMs() + modelSendTimeoutMs
    while (!channel.isClosed && channel.unsentBytes > 0) {
      // @guard model-that-is-not-read--time
      if (clock.monotonicMs() >= endMs) {
        log.warn({ routerId: router.id }, 'a router did not read the data model in time')
        channel.close('the data model was not read in time')
        return
      }
      await new Promise((resolve) => {
        setTimeout(resolve, SENT_POLL_MS).unref()
      })
    }
  }

  /** Routers that request the full model before it changes share the same bytes. */
  #wholeModel(endIndex: number): Promise<Uint8Array> {
    const { model, timelineId, clock } = this.#deps
    const key = `${timelineId()} ${endIndex} ${this.#keysText}`
    if (this.#whole?.key !== key) {
      const bytes = encodeFullModel({
        events: model.all(),
        keys: this.#keys,
        endIndex,
        timelineId: timelineId(),
        nowMs: clock.nowMs(),
      })
      this.#whole = { key, bytes }
    }
    return this.#whole.bytes
  }

  #send({ connection, id }: Subscription, outgoing: OutboundMessage): boolean {
    const headers =
      id === '' ? [] : ([[controlHeaderKey.routerDataModelSubscriptionId, encodeText(id)]] as const)
    return connection.channel.send({ ...outgoing, headers: new Map(headers) })
  }

  /** Updates the public keys in the model. @returns whether they have changed. */
  #followKeys(): boolean {
    const trusted = this.#deps.certificates()
    const text = JSON.stringify(trusted)
    if (text === this.#keysText) return false
    this.#keysText = text
    this.#keys = trustedPublicKeys(trusted)
    return true
  }

  #sendKeys(connections: readonly RouterConnection[]): void {
    const events = this.#keys.map((value) =>
      create(ModelEventSchema, { isSynthetic: true, model: { case: 'publicKey', value } }),
    )
    this.#sendSynthetic(events, connections)
  }

  /**
   * Sends changes that do not come from the log. Routers accept these from any controller,
   * regardless of their index.
   */
  #sendSynthetic(changes: EncodedEvent[], connections: readonly RouterConnection[]): void {
    if (changes.length === 0 || connections.length === 0) return
    const index = BigInt(this.#log.index)
    const set = create(ModelChangeSetSchema, {
      index,
      isSynthetic: true,
      changes,
      timelineId: this.#deps.timelineId(),
    })
    const body = toBinary(ModelChangeSetSchema, set)
    for (const { channel } of connections) {
      channel.send({ contentType: controlContentType.dataStateChangeSet, body })
    }
  }

  #sendIndex(nowMs: number): void {
    const { index } = this.#log
    this.#sentIndexMs = nowMs
    if (index <= this.#sentIndex) return
    this.#sentIndex = index
    const headers = new Map([[controlHeaderKey.routerDataModelIndex, encodeUint64(BigInt(index))]])
    for (const { channel } of this.#edgeRouters()) {
      channel.send({ contentType: controlContentType.currentIndex, headers })
    }
  }

  #noteDisabled(events: readonly ModelEvent[]): void {
    for (const event of events) {
      if (event.kind !== 'identity') continue
      const { id, disabledAt, disabledUntil } = event.value
      if (event.action === 'delete' || disabledAt === null || disabledUntil === null) {
        this.#disabledUntil.delete(id)
      } else this.#disabledUntil.set(id, disabledUntil)
    }
  }

  /**
   * Sends the edge routers the identities whose disablement has expired, because no log entry is
   * written at that time.
   */
  #endDisabled(): void {
    if (this.#disabledUntil.size === 0) return
    const nowMs = this.#deps.clock.nowMs()
    const changes: EncodedEvent[] = []
    for (const [id, untilMs] of this.#disabledUntil) {
      if (untilMs > nowMs) continue
      this.#disabledUntil.delete(id)
      const value = this.#deps.model.identity(id)
      if (value === undefined) continue
      const event = encodeModelEvent({ kind: 'identity', action: 'update', value }, nowMs)
      if (event !== null) changes.push({ ...event, isSynthetic: true })
    }
    if (changes.length === 0) return
    this.#whole = null
    this.#sendSynthetic(changes, this.#edgeRouters())
  }
}

/** Maximum number of events that are encoded before other work runs. */
const SLICE_EVENTS = 500

interface WholeModel {
  readonly events: Iterable<ModelEvent>
  readonly keys: readonly PublicKeyValue[]
  readonly endIndex: number
  readonly timelineId: string
  /** Current time, UTC ms. */
  readonly nowMs: number
}

/**
 * Encodes the full model in slices and concatenates them: in protobuf, several encoded pieces of a
 * repeated field can follow each other.
 */
export async function encodeFullModel(model: WholeModel): Promise<Uint8Array> {
  const { keys, endIndex, timelineId, nowMs } = model
  // Copied, because records may be added or removed before the next slice; the records themselves
  // never change.
  const events = [...model.events]
  const parts: Uint8Array[] = []
  for (let at = 0; at < events.length; at += SLICE_EVENTS) {
    const slice = events.slice(at, at + SLICE_EVENTS).flatMap((event) => {
      const encoded = encodeModelEvent(event, nowMs)
      return encoded === null ? [] : [encoded]
    })
    parts.push(toBinary(DataStateSchema, create(DataStateSchema, { events: slice })))
    await new Promise((resolve) => setImmediate(resolve))
  }
  const last = create(DataStateSchema, {
    events: keys.map((value) => create(ModelEventSchema, { model: { case: 'publicKey', value } })),
    endIndex: BigInt(endIndex),
    timelineId,
  })
  parts.push(toBinary(DataStateSchema, last))
  return Buffer.concat(parts)
}
