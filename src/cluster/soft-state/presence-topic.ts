import { create } from '@bufbuild/protobuf'

import { type Presence as PresenceMessage, PresenceSchema } from '../../../proto/gen/soft_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import type { ApiAddress } from '../../ports/cluster-view.ts'
import type { OpenSoftTopic, SoftState } from '../../ports/soft-topics.ts'
import type { Index, NodeId, Term } from '../../raft/types.ts'
import type { MainThreadProgress } from '../thread-channel.ts'
import { toSafeInteger } from '../message-codec.ts'

/** Status of a controller, which it reports itself. */
export interface Presence extends MainThreadProgress {
  /** Raft role of the controller; `learner` for a member without a vote. */
  readonly role: string
  readonly term: Term
  readonly leader: NodeId | null
  readonly commit: Index
  /** Index of the last entry in its log. */
  readonly last: Index
  /**
   * 99th percentile of the durations of fsync in the last ten seconds, ms; 0 if there were none.
   */
  readonly fsyncP99Ms: number
  /**
   * 99th percentile of the event loop delays of the last ten seconds, ms, of the slower of its main
   * and Raft threads.
   */
  readonly loopDelayP99Ms: number
  /** Priority, 0 to 100: the member with the highest priority should lead. */
  readonly priority: number
  /** Wall clock of the controller when it sent the report, UTC ms. */
  readonly clockMs: number
  readonly version: string
  readonly startedAtMs: number
  readonly apiAddresses: readonly ApiAddress[]
  /** True if the controller does not answer requests from its state, or is about to stop. */
  readonly isFailing: boolean
}

export interface PresenceReport {
  readonly presence: Presence
  /**
   * The number of ms by which the peer's wall clock is ahead of the clock of this controller,
   * ignoring the transit time of the message.
   */
  readonly clockOffsetMs: number
  /** Monotonic time at which the report arrived. */
  readonly heardMs: number
}

/** Interval of reports while role, term, leader and health stay the same. */
const PRESENCE_MS = 500
const TEXT_CHARACTERS_MAX = 256
const URL_CHARACTERS_MAX = 2048
const API_ADDRESSES_MAX = 32
const DIGEST_BYTES_MAX = 64
const KEY = 'self'

/**
 * Reports of members about themselves, published as soft state; lists of members, status and
 * leadership use them.
 */
export class PresenceTopic {
  readonly #topic: OpenSoftTopic<'presence'>
  readonly #clock: Clock
  readonly #heard = new Map<NodeId, PresenceReport>()
  /** Called for each report of a peer. */
  onHeard: (id: NodeId, heard: PresenceReport) => void = () => undefined
  #saidMs = -Infinity
  #said: Presence | null = null

  constructor(soft: SoftState, clock: Clock) {
    this.#clock = clock
    this.#topic = soft.open('presence')
    this.#topic.onChange((owner, _key, message) => {
      this.#onChange(owner, message === undefined ? undefined : presenceOf(message))
    })
  }

  /** The report that this controller published last. */
  get own(): Presence | null {
    return this.#said
  }

  /** Publishes a report: periodically, and immediately when role, term, leader or health change. */
  say(presence: Presence): void {
    const nowMs = this.#clock.monotonicMs()
    const said = this.#said
    const isNews =
      said === null ||
      said.role !== presence.role ||
      said.term !== presence.term ||
      said.leader !== presence.leader ||
      said.isFailing !== presence.isFailing
    if (!isNews && nowMs - this.#saidMs < PRESENCE_MS) return
    this.#saidMs = nowMs
    this.#said = presence
    this.#topic.publish(KEY, messageOf(presence))
  }

  /** Last report of a peer; null when there was none, or it has expired. */
  of(id: NodeId): PresenceReport | null {
    const heard = this.#heard.get(id)
    return heard === undefined ? null : this.#asOfNow(heard)
  }

  /**
   * Advances the peer's clock by the monotonic time since the report, because the wall clock of
   * this controller may have jumped.
   */
  #asOfNow({ presence, heardMs }: Omit<PresenceReport, 'clockOffsetMs'>): PresenceReport {
    const clockMs = presence.clockMs + this.#clock.monotonicMs() - heardMs
    return { presence, heardMs, clockOffsetMs: Math.round(clockMs - this.#clock.nowMs()) }
  }

  #onChange(owner: NodeId, presence: Presence | undefined): void {
    if (presence === undefined) {
      this.#heard.delete(owner)
      return
    }
    const heard = this.#asOfNow({ presence, heardMs: this.#clock.monotonicMs() })
    this.#heard.set(owner, heard)
    this.onHeard(owner, heard)
  }
}

function messageOf(presence: Presence): PresenceMessage {
  const { role, leader, fsyncP99Ms, loopDelayP99Ms, priority, version, isFailing } = presence
  return create(PresenceSchema, {
    role,
    leader: leader ?? '',
    term: BigInt(presence.term),
    commit: BigInt(presence.commit),
    last: BigInt(presence.last),
    applied: BigInt(presence.applied),
    persisted: BigInt(presence.persisted),
    digestIndex: BigInt(presence.digestIndex),
    digest: Uint8Array.from(Buffer.from(presence.digest, 'hex')),
    entitiesDigest: Uint8Array.from(Buffer.from(presence.entitiesDigest, 'hex')),
    fsyncP99Ms,
    loopDelayP99Ms,
    priority,
    clockMs: BigInt(Math.round(presence.clockMs)),
    version,
    startedAtMs: BigInt(Math.round(presence.startedAtMs)),
    apiAddresses: presence.apiAddresses.map(({ api, url, version: of }) => ({
      api,
      url,
      version: of,
    })),
    failing: isFailing,
  })
}

/** Shortens each string to a maximum, because a peer chooses its length. */
function presenceOf(message: PresenceMessage): Presence {
  const hex = (digest: Uint8Array): string =>
    Buffer.from(digest.subarray(0, DIGEST_BYTES_MAX)).toString('hex')
  const text = (value: string): string => value.slice(0, TEXT_CHARACTERS_MAX)
  return {
    role: text(message.role),
    leader: message.leader === '' ? null : text(message.leader),
    term: toSafeInteger(message.term),
    commit: toSafeInteger(message.commit),
    last: toSafeInteger(message.last),
    applied: toSafeInteger(message.applied),
    persisted: toSafeInteger(message.persisted),
    digestIndex: toSafeInteger(message.digestIndex),
    digest: hex(message.digest),
    entitiesDigest: hex(message.entitiesDigest),
    fsyncP99Ms: finite(message.fsyncP99Ms),
    loopDelayP99Ms: finite(message.loopDelayP99Ms),
    priority: Math.min(message.priority, 100),
    clockMs: toSafeInteger(message.clockMs),
    version: text(message.version),
    startedAtMs: toSafeInteger(message.startedAtMs),
    apiAddresses: message.apiAddresses.slice(0, API_ADDRESSES_MAX).map(({ api, url, version }) => ({
      api: text(api),
      url: url.slice(0, URL_CHARACTERS_MAX),
      version: text(version),
    })),
    isFailing: message.failing,
  }
}

function finite(value: number): number {
  return Number.isFinite(value) ? Math.max(0, value) : 0
}
