import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf'

import {
  CircuitRecordSchema,
  DeviceLogInSchema,
  FailedRequestsSchema,
  IdentityTraceSchema,
  LeadershipHoldSchema,
  PresenceSchema,
  RefreshUseSchema,
  RouterStatusSchema,
  SessionUseSchema,
  PostureRecordSchema,
} from '../../proto/gen/soft_pb.ts'
import { assertSafeIntegers, integer } from '../lib/text/safe-integer.ts'
import type {
  SoftStateCounts,
  SoftTopic,
  SoftTopicDefinition,
  SoftTopicTable,
  SoftTopicValue,
} from './soft-state.ts'

/** The newest refresh token of a session that was used. */
export interface RefreshUse {
  /** Refreshes that have led to it; that of the log-in is the first. */
  readonly generation: number
  /** UTC ms, for the first time. */
  readonly usedAtMs: number
}

/** Bounds that a row gives beside its message. */
type Bounds = Pick<SoftTopicDefinition<unknown>, 'ttlMs' | 'ownerBytesMax' | 'isVital'>

/**
 * A topic whose values are its messages. All integers of a message that was heard are safe ones.
 */
function messages<S extends DescMessage>(
  schema: S,
  bounds: Bounds,
): SoftTopicDefinition<MessageShape<S>> {
  return values(schema, { ...bounds, write: (message) => message, read: (message) => message })
}

/** A topic whose values say the same in less memory than a message, as there may be very many. */
function values<S extends DescMessage, T>(
  schema: S,
  row: Bounds & { write(value: T): MessageInitShape<S>; read(message: MessageShape<S>): T },
): SoftTopicDefinition<T> {
  const { write, read, ...bounds } = row
  return {
    ...bounds,
    encode: (value) => toBinary(schema, create(schema, write(value))),
    decode: (bytes) => read(decoded(schema, bytes)),
  }
}

/** A topic whose values stay packed: there may be one for each identity, and few are looked at. */
function packed(schema: DescMessage, bounds: Bounds): SoftTopicDefinition<Uint8Array> {
  return {
    ...bounds,
    encode: (bytes) => bytes,
    decode: (bytes) => {
      decoded(schema, bytes)
      // A copy: the bytes are a piece of a batch, which would be kept whole.
      return bytes.slice()
    },
  }
}

function decoded<S extends DescMessage>(schema: S, bytes: Uint8Array): MessageShape<S> {
  const message = fromBinary(schema, bytes)
  assertSafeIntegers(message)
  return message
}

/**
 * Every topic of the soft state, by its name on the wire. A row is the whole definition of a topic:
 * its user, the limits for peers and `docs/internals/limits.md` follow from it.
 */
export const softTopics = {
  /** How a controller is; the key is `self`. */
  presence: messages(PresenceSchema, { ttlMs: 5000, ownerBytesMax: 40 * 1024, isVital: true }),
  /** Why leadership is to stay where it is; the key is the reason. */
  leadership: messages(LeadershipHoldSchema, { ttlMs: 15_000, ownerBytesMax: 1024, isVital: true }),
  /**
   * Last uses of API sessions, UTC ms by session id. All controllers that hear of a use keep it, so
   * it matters little when its owner falls silent. The cap is above what `activitySessionsMax`
   * sessions take.
   */
  activity: values(SessionUseSchema, {
    ttlMs: 60_000,
    ownerBytesMax: 16 * 1024 * 1024,
    write: (atMs: number) => ({ atMs: BigInt(atMs) }),
    read: ({ atMs }) => integer(atMs),
  }),
  /**
   * The refresh token of each session of OIDC that was used last, by session id. All controllers
   * that hear of one keep it. The cap is above what `refreshSessionsMax` sessions take.
   */
  refreshes: values(RefreshUseSchema, {
    ttlMs: 60_000,
    ownerBytesMax: 16 * 1024 * 1024,
    write: ({ generation, usedAtMs }: RefreshUse) => ({ generation, usedAtMs: BigInt(usedAtMs) }),
    read: ({ generation, usedAtMs }) => ({ generation, usedAtMs: integer(usedAtMs) }),
  }),
  /**
   * Reports of devices by identity id. Devices report again what a controller knew that went
   * silent; until then its reports count. The cap is that of 30,000 identities, a quarter of a
   * kilobyte each.
   */
  posture: packed(PostureRecordSchema, { ttlMs: 5 * 60_000, ownerBytesMax: 8 * 1024 * 1024 }),
  /** Service sessions that posture checks refused, by identity id. */
  'failed-requests': packed(FailedRequestsSchema, {
    ttlMs: 5 * 60_000,
    ownerBytesMax: 1024 * 1024,
  }),
  /**
   * Routers by id. Every controller publishes the routers that have a channel to it. Routers beyond
   * the cap are connected, but not shown as such. If a controller is silent for the TTL, the others
   * show its routers as not connected.
   */
  routers: messages(RouterStatusSchema, { ttlMs: 10_000, ownerBytesMax: 16 * 1024 * 1024 }),
  /**
   * Circuits by id. The controller that owns a circuit publishes it, so that another one can take
   * over. The cap is enough for some 30,000 circuits: those beyond it continue without a controller
   * after a takeover, as long as their routers carry them.
   */
  circuits: packed(CircuitRecordSchema, { ttlMs: 4000, ownerBytesMax: 16 * 1024 * 1024 }),
  /** Identities that are traced, by id. The cap is above what `tracesMax` of them take. */
  traces: messages(IdentityTraceSchema, { ttlMs: 60_000, ownerBytesMax: 1024 * 1024 }),
  /**
   * Log-ins by device code that wait for a person, by user code. The controller that receives a
   * denial publishes the denied one. They outlive the controller that started the log-in. The cap
   * is far above the size of a thousand of them.
   */
  'device-log-ins': messages(DeviceLogInSchema, {
    ttlMs: 10 * 60_000,
    ownerBytesMax: 4 * 1024 * 1024,
  }),
} as const satisfies SoftTopicTable

export type SoftTopics = typeof softTopics

/** Topic as its users hold it. */
export type OpenTopic<N extends keyof SoftTopics> = SoftTopic<SoftTopicValue<SoftTopics[N]>>

/**
 * Live state that is not stored: presence, session activity, posture, router links. Controllers
 * exchange it beside the log, never through it. Each controller writes only its values; a newer
 * (epoch, sequence) of an owner replaces an older one. No code compares the clocks of two machines.
 */
export interface SoftState<T extends SoftTopicTable = SoftTopics> {
  /**
   * Opens a topic. Each topic has one user in a controller, which opens it once. It first receives
   * the values that other controllers published earlier.
   */
  open<N extends keyof T & string>(name: N): SoftTopic<SoftTopicValue<T[N]>>
  readonly counts: SoftStateCounts
}
