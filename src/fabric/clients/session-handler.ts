import { create, toBinary } from '@bufbuild/protobuf'

import {
  ApiSessionAddedSchema,
  ApiSessionHeartbeatSchema,
  ApiSessionRemovedSchema,
} from '../../../proto/gen/router_pb.ts'
import { decodeIncrementally } from '../../channel/wire-scan.ts'
import type { OutboundMessage } from '../../channel/frame.ts'
import { encodeText } from '../../channel/headers.ts'
import type { Clock } from '../../lib/clock.ts'
import type { ClientSession, EndedSession, RouterClients } from '../../ports/router-clients.ts'
import type { MessageHandler, RouterConnection } from '../router-connection.ts'
import type { ChannelHandler } from '../channel-handler.ts'
import { routerLimits } from '../limits.ts'
import { controlHeaderKey, controlContentType } from '../../channel/messages/control.ts'
import { sessionsRemovedMessage, sendEndedSessions } from './ended-sessions.ts'
import type { PresentedSessionTokens } from './presented-session-tokens.ts'
import { SentSessionIndex } from './sent-session-index.ts'

const { wholeSessionsEveryMs } = routerLimits
/**
 * Maximum sessions that one message adds. Routers use a full list only after its last message has
 * arrived.
 */
const CHUNK_SESSIONS = 100
/**
 * Maximum checks before other work runs. One check determines whether one router may know one
 * session.
 */
const SLICE_CHECKS = 20_000
const STRATEGY = 'instant'

export interface SessionHandlerDeps {
  readonly clients: RouterClients
  readonly shown: PresentedSessionTokens
  readonly isLeader: () => boolean
  readonly connections: () => Iterable<RouterConnection>
  /** Called with ended service sessions. */
  readonly onEnded: (sessionIds: ReadonlySet<string>) => void
  readonly clock: Clock
}

/** Sessions to add and remove at one router. */
interface News {
  readonly added: ClientSession[]
  readonly removedIds: string[]
}

/**
 * Sends to each edge router the API sessions of the clients that may use it, because clients
 * present their session tokens and certificates to routers. Only the leader sends them: a full list
 * replaces earlier lists, so a list from a controller that lags behind would end valid sessions.
 */
export class SessionHandler implements ChannelHandler {
  readonly handlers: ChannelHandler['handlers']
  readonly #deps: SessionHandlerDeps
  #stop: (() => void) | null = null
  #wasLeader = false
  #syncs = 0
  /** Sessions that this controller has sent to routers since it became leader. */
  readonly #sent = new SentSessionIndex<RouterConnection>()
  /** IDs of the API sessions whose records have changed. */
  readonly #changed = new Set<string>()
  /** Ended service sessions, each with its API session. */
  readonly #ended = new Map<string, string>()
  /** Routers for which the set of permitted sessions may have changed. */
  readonly #moved = new Set<RouterConnection>()
  /**
   * Routers that have requested the full list and wait for it. `#answeredMs` has the time of the
   * last requested list of each router: the list is expensive, so its rate is limited.
   */
  readonly #asking = new Set<RouterConnection>()
  readonly #answeredMs = new WeakMap<RouterConnection, number>()
  #isFlushDue = false
  #isMoving = false
  /**
   * Encoded full lists, cached until something changes. Routers with the same permitted identities
   * share one list.
   */
  readonly #whole = new Map<string, WholeState>()

  constructor(deps: SessionHandlerDeps) {
    this.#deps = deps
    this.handlers = new Map<number, MessageHandler>([
      [
        controlContentType.apiSessionHeartbeat,
        function* ({ router }, { body }) {
          const { tokens } = yield* decodeIncrementally(ApiSessionHeartbeatSchema, body)
          for (const token of tokens) {
            deps.clients.used(router.id, token)
            yield
          }
        },
      ],
      [
        controlContentType.requestClientReSync,
        (connection) => {
          if (connection.router.isEdge) this.#asking.add(connection)
          this.#answerRequests()
        },
      ],
      [
        controlContentType.validateSessions,
        ({ channel }, { body }) => sendEndedSessions(channel, deps.clients, body),
      ],
    ])
  }

  onConnected(connection: RouterConnection): void {
    if (!connection.router.isEdge) return
    this.#stop ??= this.#follow()
    if (this.#deps.isLeader()) this.#sendAll([connection])
  }

  onDisconnected(connection: RouterConnection): void {
    this.#sent.drop(connection)
    this.#moved.delete(connection)
    this.#asking.delete(connection)
    this.#deps.shown.forget(connection.router.id)
  }

  onSweep(): void {
    const isLeader = this.#deps.isLeader()
    if (!isLeader) this.#sent.clear()
    else if (!this.#wasLeader) this.#sendAll(this.#edgeRouters())
    this.#wasLeader = isLeader
    this.#answerRequests()
    // Includes replaced connections: `onDisconnected` is not called when a router replaces its
    // connection.
    for (const known of Array.from(this.#sent.readers())) {
      if (known.channel.isClosed) this.#sent.drop(known)
    }
    this.#flush()
  }

  onStop(): void {
    this.#stop?.()
    this.#stop = null
  }

  #follow(): () => void {
    return this.#deps.clients.follow({
      onSessions: (ids) => {
        for (const id of ids) this.#changed.add(id)
        this.#flushSoon()
      },
      onEnded: (sessions: readonly EndedSession[]) => {
        for (const { id, apiSessionId } of sessions) this.#ended.set(id, apiSessionId)
        this.#flushSoon()
      },
      onRouters: (ids) => {
        for (const connection of this.#edgeRouters()) {
          if (ids === null || ids.includes(connection.router.id)) this.#moved.add(connection)
        }
        this.#flushSoon()
      },
      onReplaced: () => {
        this.#whole.clear()
        this.#changed.clear()
        this.#ended.clear()
        this.#moved.clear()
        this.#wasLeader = false
      },
    })
  }

  #edgeRouters(): RouterConnection[] {
    return [...this.#deps.connections()].filter(({ router }) => router.isEdge)
  }

  #answerRequests(): void {
    const nowMs = this.#deps.clock.monotonicMs()
    for (const connection of this.#asking) {
      const lastMs = this.#answeredMs.get(connection) ?? -Infinity
      // @guard sessions-asked-about--often
      if (nowMs - lastMs < wholeSessionsEveryMs) continue
      this.#asking.delete(connection)
      this.#answeredMs.set(connection, nowMs)
      if (this.#deps.isLeader()) this.#sendAll([connection])
    }
  }

  #sendAll(connections: readonly RouterConnection[]): void {
    for (const connection of connections) {
      const whole = this.#wholeOf(connection.router.id)
      this.#sent.setAll(connection, whole.ids)
      for (const message of this.#wholeState(whole.bodies)) connection.channel.send(message)
    }
  }

  #wholeOf(routerId: string): WholeState {
    const { clients } = this.#deps
    const filter = clients.sessionFilterOf(routerId)
    const known = this.#whole.get(filter.key)
    if (known !== undefined) return known
    const sessions = [...clients.sessionIds()].flatMap((id) => {
      const session = clients.session(id)
      return session !== null && filter.has(session) ? [session] : []
    })
    const whole = {
      ids: sessions.map(({ id }) => id),
      bodies: chunks(sessions).map((some) => this.#added(some, true)),
    }
    this.#whole.set(filter.key, whole)
    return whole
  }

  #wholeState(bodies: readonly Uint8Array[]): OutboundMessage[] {
    const id = this.#nextSyncId()
    return bodies.map((body, sequence) => {
      // OpenZiti routers crash if this state is not valid JSON with an ID.
      const state = JSON.stringify({ id, isLast: sequence === bodies.length - 1, sequence })
      const headers = new Map([
        [controlHeaderKey.syncStrategyType, encodeText(STRATEGY)],
        [controlHeaderKey.syncStrategyState, encodeText(state)],
      ])
      return { contentType: controlContentType.apiSessionAdded, headers, body }
    })
  }

  /**
   * Sync ID for a full list: the current time, then a counter. It sorts after earlier IDs, also
   * after those of other controllers if the clocks agree.
   */
  #nextSyncId(): string {
    this.#syncs += 1
    const time = this.#deps.clock.nowMs().toString(36).padStart(10, '0')
    return `${time}${this.#syncs.toString(36).padStart(6, '0')}`
  }

  #flushSoon(): void {
    this.#whole.clear()
    if (this.#isFlushDue) return
    this.#isFlushDue = true
    setImmediate(() => this.#flush())
  }

  #flush(): void {
    this.#isFlushDue = false
    this.#reportEnded()
    const ids = [...this.#changed]
    this.#changed.clear()
    if (!this.#deps.isLeader()) {
      this.#moved.clear()
      return
    }
    this.#sendChanged(ids)
    if (this.#moved.size > 0 && !this.#isMoving) void this.#sendMoved()
  }

  /**
   * Reports ended service sessions to each router to which this controller sent the API session, or
   * at which a client presented the service session. The router ends its remaining circuits and
   * terminators of these sessions.
   */
  #reportEnded(): void {
    if (this.#ended.size === 0) return
    const ended = [...this.#ended]
    this.#ended.clear()
    this.#deps.onEnded(new Set(ended.map(([id]) => id)))
    const { shown } = this.#deps
    for (const connection of this.#edgeRouters()) {
      const { router, channel } = connection
      const tokens: string[] = []
      const ids: string[] = []
      for (const [id, apiSessionId] of ended) {
        const token = shown.take(router.id, id)
        if (token === null && !this.#sent.has(connection, apiSessionId)) continue
        // Older routers identify a session by its token, which must have the same position as the
        // ID; newer routers use only the ID.
        tokens.push(token ?? id)
        ids.push(id)
      }
      if (ids.length > 0) channel.send(sessionsRemovedMessage(tokens, ids))
    }
  }

  /** Sends sessions that were created, ended, or changed since they were last sent. */
  #sendChanged(ids: readonly string[]): void {
    if (ids.length === 0) return
    const { clients } = this.#deps
    const routers = this.#edgeRouters().filter((router) => this.#sent.isKnown(router))
    const news = new Map<RouterConnection, News>()
    for (const id of ids) {
      const session = clients.session(id)
      const allowed = session === null ? null : clients.routersOf(session)
      for (const connection of routers) {
        if (session !== null && allowed?.has(connection.router.id) === true) {
          newsFor(news, connection).added.push(session)
          this.#sent.set(connection, id, true)
        } else if (this.#sent.has(connection, id)) {
          newsFor(news, connection).removedIds.push(id)
          this.#sent.set(connection, id, false)
        }
      }
      if (session === null) this.#sent.forget(id)
    }
    this.#send(news)
  }

  /**
   * Called after policies or attributes have changed. Sends sessions that a router may know now,
   * and removes those that it may not know any more. Works in slices, because there may be many
   * sessions.
   */
  async #sendMoved(): Promise<void> {
    this.#isMoving = true
    try {
      while (this.#moved.size > 0) {
        const connections = [...this.#moved]
        this.#moved.clear()
        const ids = [...this.#deps.clients.sessionIds()]
        const length = Math.max(1, Math.floor(SLICE_CHECKS / connections.length))
        for (let at = 0; at < ids.length; at += length) {
          if (at > 0) await new Promise((go) => setImmediate(go))
          if (!this.#deps.isLeader()) return
          this.#sendDifference(connections, ids.slice(at, at + length))
        }
      }
    } finally {
      this.#isMoving = false
    }
  }

  #sendDifference(connections: readonly RouterConnection[], ids: readonly string[]): void {
    const { clients } = this.#deps
    const readers = connections
      .filter((connection) => this.#sent.isKnown(connection) && !connection.channel.isClosed)
      .map((connection) => ({ connection, filter: clients.sessionFilterOf(connection.router.id) }))
    const news = new Map<RouterConnection, News>()
    for (const id of ids) {
      const session = clients.session(id)
      for (const { connection, filter } of readers) {
        const isAllowed = session !== null && filter.has(session)
        if (isAllowed === this.#sent.has(connection, id)) continue
        if (isAllowed) newsFor(news, connection).added.push(session)
        else newsFor(news, connection).removedIds.push(id)
        this.#sent.set(connection, id, isAllowed)
      }
    }
    this.#send(news)
  }

  #send(news: ReadonlyMap<RouterConnection, News>): void {
    /** Encoded messages, shared because many routers receive the same ones. */
    const bodies = new Map<string, Uint8Array>()
    const once = (key: string, encode: () => Uint8Array): Uint8Array => {
      const known = bodies.get(key) ?? encode()
      bodies.set(key, known)
      return known
    }
    for (const [{ channel }, { added: addedSessions, removedIds }] of news) {
      for (const some of addedSessions.length === 0 ? [] : chunks(addedSessions)) {
        const body = once(`+${some.map(({ id }) => id).join(' ')}`, () => this.#added(some, false))
        channel.send({ contentType: controlContentType.apiSessionAdded, body })
      }
      if (removedIds.length === 0) continue
      const body = once(`-${removedIds.join(' ')}`, () => this.#removed(removedIds))
      channel.send({ contentType: controlContentType.apiSessionRemoved, body })
    }
  }

  #added(sessions: readonly ClientSession[], isFullState: boolean): Uint8Array {
    const { clients } = this.#deps
    const message = create(ApiSessionAddedSchema, {
      isFullState,
      apiSessions: sessions.flatMap(({ id, identityId, fingerprints }) =>
        clients
          .tokensOf(id)
          .map((token) => ({ id, identityId, token, certFingerprints: [...fingerprints] })),
      ),
    })
    return toBinary(ApiSessionAddedSchema, message)
  }

  /**
   * Message that removes sessions. It includes tokens for older routers, which identify sessions by
   * token.
   */
  #removed(ids: readonly string[]): Uint8Array {
    const tokens = ids.flatMap((id) => this.#deps.clients.tokensOf(id))
    const removed = create(ApiSessionRemovedSchema, { tokens, ids: [...ids] })
    return toBinary(ApiSessionRemovedSchema, removed)
  }
}

interface WholeState {
  readonly ids: readonly string[]
  readonly bodies: readonly Uint8Array[]
}

function newsFor(news: Map<RouterConnection, News>, connection: RouterConnection): News {
  const known = news.get(connection) ?? { added: [], removedIds: [] }
  news.set(connection, known)
  return known
}

/**
 * Splits a list into chunks. An empty list gives one empty chunk: the router must receive an empty
 * list if all its sessions ended while it was disconnected.
 */
function chunks(sessions: readonly ClientSession[]): (readonly ClientSession[])[] {
  const some: (readonly ClientSession[])[] = []
  for (let at = 0; at === 0 || at < sessions.length; at += CHUNK_SESSIONS) {
    some.push(sessions.slice(at, at + CHUNK_SESSIONS))
  }
  return some
}
