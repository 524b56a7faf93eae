import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  ApiSessionAddedSchema,
  ApiSessionHeartbeatSchema,
  ApiSessionRemovedSchema,
  SessionRemovedSchema,
  ValidateSessionsSchema,
} from '../../../proto/gen/router_pb.ts'
import { decodeInSteps } from '../../channel/wire-scan.ts'
import type { Outgoing } from '../../channel/channel.ts'
import { textValue } from '../../channel/headers.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import type { Clock } from '../../lib/clock.ts'
import type { ClientSession, RouterClients } from '../../ports/router-clients.ts'
import type { MessageHandler, RouterConnection } from '../connection.ts'
import type { RouterDuty } from '../duty.ts'
import { routerLimits } from '../limits.ts'
import { routerMessage } from '../messages.ts'

const { sessionsValidatedMax } = routerLimits
/** Sessions in one message; routers wait for the last one of them. */
const CHUNK_SESSIONS = 100
const strategyHeader = 1013
const stateHeader = 1014
const STRATEGY = 'instant'

export interface SessionDutyParts {
  readonly clients: RouterClients
  readonly isLeader: () => boolean
  readonly connections: () => Iterable<RouterConnection>
  readonly clock: Clock
}

/**
 * Tells edge routers which API sessions there are: a client shows a router the token of its
 * session, and the certificate that belongs to it. The leader alone tells, as a whole state takes
 * the place of what others told: a controller that is behind would end sessions that there are.
 */
export class SessionDuty implements RouterDuty {
  readonly handlers: RouterDuty['handlers']
  readonly #parts: SessionDutyParts
  #stop: (() => void) | null = null
  #wasLeader = false
  #syncs = 0
  readonly #changed = new Map<string, ClientSession | null>()
  /** All sessions, as messages without their headers; null: something has changed. */
  #whole: readonly Uint8Array[] | null = null

  constructor(parts: SessionDutyParts) {
    this.#parts = parts
    this.handlers = new Map<number, MessageHandler>([
      [
        routerMessage.apiSessionHeartbeat,
        function* (_connection, { body }) {
          const { tokens } = yield* decodeInSteps(ApiSessionHeartbeatSchema, body)
          for (const token of tokens) {
            parts.clients.used(token)
            yield
          }
        },
      ],
      [
        routerMessage.requestSessions,
        (connection) => {
          if (parts.isLeader()) this.#tellAll([connection])
        },
      ],
      [
        routerMessage.validateSessions,
        (connection, message) => this.#validate(connection, message),
      ],
    ])
  }

  onConnected(connection: RouterConnection): void {
    if (!connection.router.isEdge) return
    this.#stop ??= this.#follow()
    if (this.#parts.isLeader()) this.#tellAll([connection])
  }

  onSweep(): void {
    const isLeader = this.#parts.isLeader()
    if (isLeader && !this.#wasLeader) this.#tellAll(this.#edgeRouters())
    this.#wasLeader = isLeader
    this.#flush()
  }

  onStop(): void {
    this.#stop?.()
    this.#stop = null
  }

  #follow(): () => void {
    return this.#parts.clients.follow({
      onChanged: (changed, gone) => {
        this.#whole = null
        if (this.#changed.size === 0) setImmediate(() => this.#flush())
        for (const session of changed) this.#changed.set(session.id, session)
        for (const id of gone) this.#changed.set(id, null)
      },
      onReplaced: () => {
        this.#whole = null
        this.#changed.clear()
        this.#wasLeader = false
      },
    })
  }

  #edgeRouters(): RouterConnection[] {
    return [...this.#parts.connections()].filter(({ router }) => router.isEdge)
  }

  #tellAll(connections: readonly RouterConnection[]): void {
    if (connections.length === 0) return
    this.#whole ??= chunks([...this.#parts.clients.sessions()]).map((some) => added(some, true))
    const messages = this.#wholeState(this.#whole)
    for (const { channel } of connections) for (const message of messages) channel.send(message)
  }

  #wholeState(bodies: readonly Uint8Array[]): Outgoing[] {
    const id = this.#nextSyncId()
    return bodies.map((body, sequence) => {
      // A router ends at a state that is no JSON, or has no id.
      const state = JSON.stringify({ id, isLast: sequence === bodies.length - 1, sequence })
      const headers = new Map([
        [strategyHeader, textValue(STRATEGY)],
        [stateHeader, textValue(state)],
      ])
      return { contentType: routerMessage.apiSessionAdded, headers, body }
    })
  }

  /** Sorts after all that were given out before, on this controller or another. */
  #nextSyncId(): string {
    this.#syncs += 1
    const time = this.#parts.clock.nowMs().toString(36).padStart(10, '0')
    return `${time}${this.#syncs.toString(36).padStart(6, '0')}`
  }

  #flush(): void {
    if (this.#changed.size === 0) return
    const changed = [...this.#changed]
    this.#changed.clear()
    const routers = this.#parts.isLeader() ? this.#edgeRouters() : []
    if (routers.length === 0) return
    const told = changed.flatMap(([, session]) => (session === null ? [] : [session]))
    const goneIds = changed.flatMap(([id, session]) => (session === null ? [id] : []))
    for (const some of told.length === 0 ? [] : chunks(told)) {
      const body = added(some, false)
      for (const { channel } of routers) {
        channel.send({ contentType: routerMessage.apiSessionAdded, body })
      }
    }
    if (goneIds.length === 0) return
    const tokens = goneIds.flatMap((id) => this.#parts.clients.tokensOf(id))
    const removed = create(ApiSessionRemovedSchema, { tokens, ids: goneIds })
    const body = toBinary(ApiSessionRemovedSchema, removed)
    for (const { channel } of routers) {
      channel.send({ contentType: routerMessage.apiSessionRemoved, body })
    }
  }

  async #validate({ channel }: RouterConnection, { body }: ChannelMessage): Promise<void> {
    const { sessionTokens } = fromBinary(ValidateSessionsSchema, body)
    const tokens = await this.#parts.clients.goneSessions(
      sessionTokens.slice(0, sessionsValidatedMax),
    )
    if (tokens.length === 0) return
    const removed = create(SessionRemovedSchema, { tokens: [...tokens] })
    channel.send({
      contentType: routerMessage.sessionRemoved,
      body: toBinary(SessionRemovedSchema, removed),
    })
  }
}

/**
 * At least one, which may be empty: a router may hold sessions that were ended while nobody could
 * tell it.
 */
function chunks(sessions: readonly ClientSession[]): (readonly ClientSession[])[] {
  const some: (readonly ClientSession[])[] = []
  for (let at = 0; at === 0 || at < sessions.length; at += CHUNK_SESSIONS) {
    some.push(sessions.slice(at, at + CHUNK_SESSIONS))
  }
  return some
}

function added(sessions: readonly ClientSession[], isFullState: boolean): Uint8Array {
  const message = create(ApiSessionAddedSchema, {
    isFullState,
    apiSessions: sessions.flatMap(({ id, identityId, tokens, fingerprints }) =>
      tokens.map((token) => ({ id, identityId, token, certFingerprints: [...fingerprints] })),
    ),
  })
  return toBinary(ApiSessionAddedSchema, message)
}
