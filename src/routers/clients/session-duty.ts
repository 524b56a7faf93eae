import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  ApiSessionAddedSchema,
  ApiSessionHeartbeatSchema,
  ApiSessionRemovedSchema,
  SessionRemovedSchema,
  ValidateSessionsSchema,
} from '../../../proto/gen/router_pb.ts'
import type { Outgoing } from '../../channel/channel.ts'
import { textValue } from '../../channel/headers.ts'
import type { Message } from '../../channel/frame.ts'
import type { Clock } from '../../lib/clock.ts'
import type { ClientSession, RouterClients } from '../../ports/router-clients.ts'
import type { RouterConnection } from '../connection.ts'
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
 * Tells edge routers which API sessions there are: a client shows a router the token of its session, and the certificate that
 * belongs to it. The leader alone tells, as a whole state takes the place of what others told: a controller that is behind
 * would end sessions that there are.
 */
export class SessionDuty implements RouterDuty {
  readonly handlers: RouterDuty['handlers']
  readonly #parts: SessionDutyParts
  #stop: (() => void) | null = null
  #wasLeader = false
  #syncs = 0
  readonly #changed = new Map<string, ClientSession | null>()

  constructor(parts: SessionDutyParts) {
    this.#parts = parts
    this.handlers = new Map([
      [
        routerMessage.apiSessionHeartbeat,
        (_connection, { body }) => {
          for (const token of fromBinary(ApiSessionHeartbeatSchema, body).tokens) {
            parts.clients.used(token)
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
        (connection, message) => void this.#validate(connection, message),
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
        if (this.#changed.size === 0) setImmediate(() => this.#flush())
        for (const session of changed) this.#changed.set(session.id, session)
        for (const id of gone) this.#changed.set(id, null)
      },
      onReplaced: () => {
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
    const messages = this.#wholeState([...this.#parts.clients.sessions()])
    for (const { channel } of connections) for (const message of messages) channel.send(message)
  }

  /** Of no session too: a router may hold some that were ended while nobody could tell it. */
  #wholeState(sessions: readonly ClientSession[]): Outgoing[] {
    const id = this.#nextSyncId()
    const messages: Outgoing[] = []
    for (let at = 0; at === 0 || at < sessions.length; at += CHUNK_SESSIONS) {
      const chunk = sessions.slice(at, at + CHUNK_SESSIONS)
      const isLast = at + CHUNK_SESSIONS >= sessions.length
      // A router ends at a state that is no JSON, or has no id.
      const state = JSON.stringify({ id, isLast, sequence: messages.length })
      messages.push(
        added(chunk, true, [
          [strategyHeader, textValue(STRATEGY)],
          [stateHeader, textValue(state)],
        ]),
      )
    }
    return messages
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
    for (let at = 0; at < told.length; at += CHUNK_SESSIONS) {
      const message = added(told.slice(at, at + CHUNK_SESSIONS), false, [])
      for (const { channel } of routers) channel.send(message)
    }
    if (goneIds.length === 0) return
    const tokens = goneIds.flatMap((id) => this.#parts.clients.tokensOf(id))
    const removed = create(ApiSessionRemovedSchema, { tokens, ids: goneIds })
    const body = toBinary(ApiSessionRemovedSchema, removed)
    for (const { channel } of routers) {
      channel.send({ contentType: routerMessage.apiSessionRemoved, body })
    }
  }

  async #validate({ channel }: RouterConnection, { body }: Message): Promise<void> {
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

function added(
  sessions: readonly ClientSession[],
  isFullState: boolean,
  headers: readonly (readonly [number, Uint8Array])[],
): Outgoing {
  const message = create(ApiSessionAddedSchema, {
    isFullState,
    apiSessions: sessions.flatMap(({ id, identityId, tokens, fingerprints }) =>
      tokens.map((token) => ({ id, identityId, token, certFingerprints: [...fingerprints] })),
    ),
  })
  return {
    contentType: routerMessage.apiSessionAdded,
    headers: new Map(headers),
    body: toBinary(ApiSessionAddedSchema, message),
  }
}
