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
  SharedOptionsSchema,
  SessionUseSchema,
  PostureRecordSchema,
} from '../../proto/gen/soft_pb.ts'
import { assertSafeIntegers, toSafeInteger } from '../lib/text/safe-integer.ts'
import {
  SOFT_VALUE_BYTES_MAX,
  type SoftStateCounts,
  type SoftTopic,
  type SoftTopicDefinition,
  type SoftTopicTable,
  type SoftTopicValue,
} from './soft-state.ts'

/** The newest used refresh token of a session. */
export interface RefreshUse {
  /** Number of the token in its session. The log-in issues the token with the lowest number. */
  readonly generation: number
  /** Time at which the token was first used, UTC ms. */
  readonly usedAtMs: number
}

/** Limits of a topic, without its message type. */
type Bounds = Pick<SoftTopicDefinition<unknown>, 'ttlMs' | 'ownerBytesMax' | 'isVital'>

/**
 * Defines a topic whose values are protobuf messages. All integers of a received message are safe
 * integers.
 */
function messages<S extends DescMessage>(
  schema: S,
  bounds: Bounds,
): SoftTopicDefinition<MessageShape<S>> {
  return values(schema, { ...bounds, write: (message) => message, read: (message) => message })
}

/**
 * Defines a topic whose values this controller stores as smaller objects than protobuf messages,
 * because there may be very many values.
 */
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

/**
 * Defines a topic whose values this controller stores encoded, because there may be very many
 * values, and few are read.
 */
function packed(schema: DescMessage, bounds: Bounds): SoftTopicDefinition<Uint8Array> {
  return {
    ...bounds,
    encode: (bytes) => bytes,
    decode: (bytes) => {
      decoded(schema, bytes)
      // The bytes are copied, because a slice would keep the whole received batch in memory.
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
 * Every topic of the soft state, by its name on the wire. A row is the complete definition of a
 * topic: the type that {@link SoftState.open} returns, the limits for peers and
 * `docs/internals/limits.md` are derived from it.
 */
export const softTopics = {
  /** Status of a controller; the key is `self`. */
  presence: messages(PresenceSchema, { ttlMs: 5000, ownerBytesMax: 40 * 1024, isVital: true }),
  /** Reasons why leadership should not be transferred at present; the key is the reason. */
  leadership: messages(LeadershipHoldSchema, { ttlMs: 15_000, ownerBytesMax: 1024, isVital: true }),
  /**
   * Last uses of API sessions, UTC ms by session id. All controllers that receive a use retain it,
   * so few uses are lost when the controller that published them fails. The limit exceeds the size
   * of `activitySessionsMax` sessions.
   */
  activity: values(SessionUseSchema, {
    ttlMs: 60_000,
    ownerBytesMax: 16 * 1024 * 1024,
    write: (atMs: number) => ({ atMs: BigInt(atMs) }),
    read: ({ atMs }) => toSafeInteger(atMs),
  }),
  /**
   * The last used refresh token of each OIDC session, by session id. All controllers that receive
   * such a value retain it. The limit exceeds the size of `refreshSessionsMax` sessions.
   */
  refreshes: values(RefreshUseSchema, {
    ttlMs: 60_000,
    ownerBytesMax: 16 * 1024 * 1024,
    write: ({ generation, usedAtMs }: RefreshUse) => ({ generation, usedAtMs: BigInt(usedAtMs) }),
    read: ({ generation, usedAtMs }) => ({ generation, usedAtMs: toSafeInteger(usedAtMs) }),
  }),
  /**
   * Posture reports of devices by identity id. When a controller fails, its reports remain valid
   * until they expire, and devices report again. The limit is enough for 30,000 identities with a
   * quarter of a kilobyte each.
   */
  posture: packed(PostureRecordSchema, { ttlMs: 5 * 60_000, ownerBytesMax: 8 * 1024 * 1024 }),
  /** Service sessions that a controller refused because posture checks failed, by identity id. */
  'failed-requests': packed(FailedRequestsSchema, {
    ttlMs: 5 * 60_000,
    ownerBytesMax: 1024 * 1024,
  }),
  /**
   * Routers by id. Every controller publishes the routers that have a channel to it. Routers beyond
   * the limit are connected, but the other controllers do not know these channels. If a controller
   * is silent for the TTL, the others ignore its channels, and show a router as not connected if no
   * other controller has a channel to it.
   */
  routers: messages(RouterStatusSchema, { ttlMs: 10_000, ownerBytesMax: 16 * 1024 * 1024 }),
  /**
   * Circuits by id. The controller that owns a circuit publishes it, so that another controller can
   * take over the circuit. The limit is enough for some 30,000 circuits. When the owner fails, no
   * controller takes over the circuits beyond the limit; these circuits continue as long as their
   * routers carry them.
   */
  circuits: packed(CircuitRecordSchema, { ttlMs: 4000, ownerBytesMax: 16 * 1024 * 1024 }),
  /** Traced identities, by id. The limit exceeds the size of `tracesMax` traces. */
  traces: messages(IdentityTraceSchema, { ttlMs: 60_000, ownerBytesMax: 1024 * 1024 }),
  /**
   * OAuth device log-ins that wait for a person's approval, by user code. If a controller receives
   * the denial of a log-in, it publishes the denial. The values stay valid after the controller
   * that started the log-in has stopped. The limit is far above the size of a thousand log-ins.
   */
  'device-log-ins': messages(DeviceLogInSchema, {
    ttlMs: 10 * 60_000,
    ownerBytesMax: 4 * 1024 * 1024,
  }),
  /** Values of the options that must be equal on every controller; the key is `self`. */
  options: messages(SharedOptionsSchema, { ttlMs: 60_000, ownerBytesMax: SOFT_VALUE_BYTES_MAX }),
} as const satisfies SoftTopicTable

export type SoftTopics = typeof softTopics

/** A topic with the type of its values. */
export type OpenSoftTopic<N extends keyof SoftTopics> = SoftTopic<SoftTopicValue<SoftTopics[N]>>

/**
 * Live state that is not stored, such as presence, session activity, posture, routers and circuits.
 * Controllers send it to each other outside of the log. Each controller writes only its own values;
 * a newer (epoch, sequence) of an owner replaces an older one. No controller compares its clock
 * with that of another to decide which values are current.
 */
export interface SoftState<T extends SoftTopicTable = SoftTopics> {
  /**
   * Opens a topic. In each controller, one component uses a topic: it opens the topic once and
   * first receives the values that other controllers published earlier.
   */
  open<N extends keyof T & string>(name: N): SoftTopic<SoftTopicValue<T[N]>>
  readonly counts: SoftStateCounts
  /**
   * Resolves when this controller has the values that each reachable member published before the
   * call, or after {@link SOFT_STATE_BARRIER_MS_MAX}.
   */
  reachLatest(): Promise<void>
}
