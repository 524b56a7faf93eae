import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import { type SoftBatch, SoftBatchSchema, SoftResyncSchema } from '../../../proto/gen/soft_pb.ts'
import { assert } from '../../lib/assert.ts'
import type { Clock } from '../../lib/clock.ts'
import { periodicScheduler } from '../../lib/periodic-scheduler.ts'
import type { PeerChannel } from '../peer-channel.ts'
import {
  SOFT_STATE_TTL_MS_MIN,
  SOFT_VALUE_BYTES_MAX,
  SOFT_VALUE_OVERHEAD_BYTES,
  SOFT_VITAL_BYTES_MAX,
  type SoftListener,
  type SoftStateCounts,
  type SoftTopic,
  type SoftTopicDefinition,
  type SoftTopicTable,
  type SoftTopicValue,
  type SoftValue,
} from '../../ports/soft-state.ts'
import type { SoftState, SoftTopics } from '../../ports/soft-topics.ts'
import type { NodeId } from '../../raft/types.ts'
import { toSafeInteger } from '../message-codec.ts'
import { SoftStateBarrier } from './soft-state-barrier.ts'
import { SoftStateInbox, type SoftValueReceiver } from './soft-state-inbox.ts'
import { SoftStateOutbox } from './soft-state-outbox.ts'

export interface SoftStateOptions {
  readonly selfId: NodeId
  /**
   * Number of one start of the process; a later start has a higher number, unless the clock was set
   * back. Peers replace the values of an earlier start.
   */
  readonly epoch: number
  /** Interval for which changes are collected into one batch. */
  readonly tickMs: number
  /** Maximum interval between two batches to a peer. */
  readonly beaconMs: number
  /**
   * Maximum bytes of the values in one batch, with their keys; a larger value is sent alone. Each
   * peer gets at most one batch per tick, and one more when it requests the latest values.
   */
  readonly batchBytesMax: number
  /**
   * Maximum bytes of keys and values of all controllers, including this one; only values of vital
   * topics may exceed it.
   */
  readonly totalBytesMax: number
  /**
   * Minimum interval between two full transmissions of the values of a controller to a peer that
   * reports missing batches.
   */
  readonly resyncMsMin: number
}

export const defaultSoftStateOptions = {
  tickMs: 50,
  beaconMs: 1000,
  batchBytesMax: 32 * 1024,
  totalBytesMax: 96 * 1024 * 1024,
  resyncMsMin: 1000,
} as const satisfies Partial<SoftStateOptions>

interface SoftStateDeps {
  readonly peers: Pick<PeerChannel, 'note' | 'onNote' | 'onLink' | 'readyPeers'>
  readonly clock: Clock
  /** Members that may own values; values of others are dropped. */
  readonly members: () => readonly NodeId[]
}

const BATCH_TOPIC = 'soft'
const RESYNC_TOPIC = 'soft-resync'
const NAME_CHARACTERS_MAX = 64
const KEY_CHARACTERS_MAX = 128
/** Interval of the check for due work: empty batches and, every `SWEEP_MS`, expired values. */
const LOOK_MS = 250
const SWEEP_MS = 500

interface Topic<T> extends SoftValueReceiver {
  readonly name: string
  readonly definition: SoftTopicDefinition<T>
  readonly own: Map<string, { readonly value: T; readonly bytes: number }>
  readonly others: Map<NodeId, Map<string, T>>
  readonly listeners: SoftListener<T>[]
  ownBytes: number
  isOpen: boolean
}

/**
 * Soft state of this controller, and the values that it has received from others. A peer receives
 * all values when its link is ready, and then all changes, those of vital topics first. If a batch
 * is lost, the peer notices a gap in the numbers and receives all values again. Runs on the main
 * thread and sends its batches as notes.
 */
export class SoftStateChannel<T extends SoftTopicTable = SoftTopics> implements SoftState<T> {
  readonly #options: SoftStateOptions
  readonly #deps: SoftStateDeps
  /**
   * All topics of the table, so that the channel stores values that arrive before their topic is
   * opened.
   */
  readonly #topics: ReadonlyMap<string, Topic<unknown>>
  readonly #outbox: SoftStateOutbox
  readonly #inbox: SoftStateInbox
  readonly #reach: SoftStateBarrier
  readonly #resyncAskedMs = new Map<NodeId, number>()
  #stopLooking: (() => void) | null = null
  #batchTimer: NodeJS.Timeout | null = null
  #sweptMs = -Infinity

  constructor(options: SoftStateOptions, deps: SoftStateDeps, table: T) {
    const { peers, clock } = deps
    this.#topics = new Map(
      Object.entries(table).map(([name, definition]) => [name, topicOf(name, definition)]),
    )
    this.#options = options
    this.#deps = deps
    this.#outbox = new SoftStateOutbox(options)
    this.#inbox = new SoftStateInbox(options.totalBytesMax, this.#topics)
    peers.onNote(BATCH_TOPIC, (from, payload) => this.#onBatch(from, payload))
    peers.onNote(RESYNC_TOPIC, (from, payload) => this.#onResync(from, payload))
    this.#reach = new SoftStateBarrier({
      ...deps,
      flush: (peer) => this.#flush(peer),
      isUpToDate: (peer) => this.#outbox.isUpToDate(peer),
      roundMsMin: options.tickMs,
    })
    peers.onLink((peer, isReady) => {
      if (isReady) this.#outbox.begin(peer, clock.monotonicMs())
      else this.#outbox.end(peer)
      this.#planBatch()
    })
  }

  start(): void {
    this.#stopLooking ??= periodicScheduler.every(LOOK_MS, () => this.tick())
    this.#planBatch()
  }

  stop(): void {
    this.#stopLooking?.()
    this.#stopLooking = null
    if (this.#batchTimer !== null) clearTimeout(this.#batchTimer)
    this.#batchTimer = null
    this.#reach.stop()
  }

  reachLatest(): Promise<void> {
    return this.#reach.reach()
  }

  get counts(): SoftStateCounts {
    return { bytes: this.#bytes, ...this.#inbox.ignored }
  }

  get #bytes(): number {
    return this.#outbox.bytes + this.#inbox.bytes
  }

  open<N extends keyof T & string>(name: N): SoftTopic<SoftTopicValue<T[N]>> {
    const topic = this.#topics.get(name) as Topic<SoftTopicValue<T[N]>> | undefined
    assert(topic !== undefined, `topic ${name} is in the table of topics`)
    assert(!topic.isOpen, `topic ${name} has one user`)
    topic.isOpen = true
    return {
      publish: (key, value) => this.#publish(topic, key, value),
      withdraw: (key) => this.#withdraw(topic, key),
      get: (owner, key) =>
        owner === this.#options.selfId
          ? topic.own.get(key)?.value
          : topic.others.get(owner)?.get(key),
      values: () => valuesOf(topic, this.#options.selfId),
      onChange: (listener) => {
        for (const [owner, values] of topic.others) {
          for (const [key, value] of values) listener(owner, key, value)
        }
        topic.listeners.push(listener)
      },
    }
  }

  /** Does all work that is due; called periodically, and `tickMs` after a change. */
  tick(): void {
    const nowMs = this.#deps.clock.monotonicMs()
    if (nowMs - this.#sweptMs >= SWEEP_MS) {
      this.#sweptMs = nowMs
      const members = new Set(this.#deps.members())
      this.#inbox.sweep(members, nowMs)
      for (const id of this.#resyncAskedMs.keys()) {
        if (!members.has(id)) this.#resyncAskedMs.delete(id)
      }
    }
    for (const { peer, batch } of this.#outbox.due(nowMs)) this.#send(peer, batch)
    this.#reach.answer()
    this.#planBatch()
  }

  #flush(peer: NodeId): void {
    const batch = this.#outbox.next(peer, this.#deps.clock.monotonicMs())
    if (batch !== null) this.#send(peer, batch)
  }

  #send(peer: NodeId, batch: SoftBatch): void {
    this.#deps.peers.note(peer, BATCH_TOPIC, toBinary(SoftBatchSchema, batch))
  }

  /** Schedules the next batch. A timer runs only while there are changes to send. */
  #planBatch(): void {
    if (this.#stopLooking === null || this.#batchTimer !== null || !this.#outbox.isWaiting) return
    this.#batchTimer = setTimeout(() => {
      this.#batchTimer = null
      this.tick()
    }, this.#options.tickMs)
  }

  #publish<T>(topic: Topic<T>, key: string, value: T): boolean {
    assert(key.length <= KEY_CHARACTERS_MAX, 'a key is within its limit')
    const payload = topic.definition.encode(value)
    assert(payload.length <= SOFT_VALUE_BYTES_MAX, 'a value is within its limit')
    const bytes = sizeOf(key, payload)
    const grownBytes = bytes - (topic.own.get(key)?.bytes ?? 0)
    const ownBytes = topic.ownBytes + grownBytes
    const isTooMuch = this.#bytes + grownBytes > this.#options.totalBytesMax && !topic.isVital
    if (ownBytes > topic.ownerBytesMax || isTooMuch) return false
    topic.ownBytes = ownBytes
    topic.own.set(key, { value, bytes })
    this.#outbox.set({ topic: topic.name, key, payload, bytes, isVital: topic.isVital })
    this.#planBatch()
    return true
  }

  #withdraw<T>(topic: Topic<T>, key: string): void {
    const known = topic.own.get(key)
    if (known === undefined) return
    topic.own.delete(key)
    topic.ownBytes -= known.bytes
    this.#outbox.withdraw(topic.name, key, topic.isVital)
    this.#planBatch()
  }

  #onBatch(from: NodeId, payload: Uint8Array): void {
    if (!this.#deps.members().includes(from)) return
    try {
      const batch = fromBinary(SoftBatchSchema, payload)
      if (!this.#inbox.take(from, batch, this.#deps.clock.monotonicMs())) this.#askAgain(from)
    } catch {
      // A malformed batch is ignored as a whole.
    }
  }

  #askAgain(owner: NodeId): void {
    const nowMs = this.#deps.clock.monotonicMs()
    const askedMs = this.#resyncAskedMs.get(owner) ?? -Infinity
    if (nowMs - askedMs < this.#options.resyncMsMin) return
    this.#resyncAskedMs.set(owner, nowMs)
    const { epoch, stream } = this.#inbox.heardOf(owner)
    const resync = create(SoftResyncSchema, { epoch: BigInt(epoch), stream: BigInt(stream) })
    this.#deps.peers.note(owner, RESYNC_TOPIC, toBinary(SoftResyncSchema, resync))
  }

  #onResync(from: NodeId, payload: Uint8Array): void {
    try {
      const resync = fromBinary(SoftResyncSchema, payload)
      const { epoch, stream } = {
        epoch: toSafeInteger(resync.epoch),
        stream: toSafeInteger(resync.stream),
      }
      const isReady = this.#deps.peers.readyPeers().includes(from)
      if (isReady) this.#outbox.resync(from, epoch, stream, this.#deps.clock.monotonicMs())
      this.#planBatch()
    } catch {
      // A malformed request is ignored.
    }
  }
}

function topicOf<T>(name: string, definition: SoftTopicDefinition<T>): Topic<T> {
  const { ttlMs, ownerBytesMax, isVital = false } = definition
  assert(name.length <= NAME_CHARACTERS_MAX, 'the name of a topic is within its limit')
  assert(ttlMs >= SOFT_STATE_TTL_MS_MIN, 'a topic outlives a few lost notes')
  assert(!isVital || ownerBytesMax <= SOFT_VITAL_BYTES_MAX, 'what is vital is small')
  const topic: Topic<T> = {
    name,
    definition,
    ttlMs,
    ownerBytesMax,
    isVital,
    own: new Map(),
    others: new Map(),
    listeners: [],
    ownBytes: 0,
    isOpen: false,
    take: (owner, key, payload) => take(topic, owner, key, payload),
    drop: (owner, key, isLost) => drop(topic, owner, key, isLost),
  }
  return topic
}

function sizeOf(key: string, payload: Uint8Array): number {
  return key.length + payload.length + SOFT_VALUE_OVERHEAD_BYTES
}

function take<T>(topic: Topic<T>, owner: NodeId, key: string, payload: Uint8Array): void {
  const value = topic.definition.decode(payload)
  let values = topic.others.get(owner)
  if (values === undefined) topic.others.set(owner, (values = new Map()))
  values.set(key, value)
  for (const listener of topic.listeners) listener(owner, key, value)
}

function drop<T>(topic: Topic<T>, owner: NodeId, key: string, isLost: boolean): void {
  const values = topic.others.get(owner)
  const value = values?.get(key)
  if (values?.delete(key) !== true) return
  if (values.size === 0) topic.others.delete(owner)
  for (const listener of topic.listeners)
    listener(owner, key, undefined, isLost ? value : undefined)
}

function* valuesOf<T>(topic: Topic<T>, selfId: NodeId): Iterable<SoftValue<T>> {
  for (const [key, { value }] of topic.own) yield { owner: selfId, key, value }
  for (const [owner, values] of topic.others) {
    for (const [key, value] of values) yield { owner, key, value }
  }
}
