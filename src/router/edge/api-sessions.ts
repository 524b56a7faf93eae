import { BearerSessions } from './bearer-sessions.ts'
import type { ControlConnection, ControlMessageTable } from '../controllers/control-connection.ts'
import { edgeLimits } from './limits.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import {
  readSessionsAdded,
  readSessionsRemoved,
  type FullListPart,
  type ClientApiSession,
} from '../../channel/messages/clients.ts'
import { addToSet, removeFromSet } from '../../lib/keyed-sets.ts'
import { controlContentType } from '../../channel/messages/control.ts'
import type { EdgeApiSession } from './edge-api-session.ts'

export interface ApiSessionsDeps {
  readonly log: ProgramLogger
  readonly bearers: Pick<BearerSessions, 'find' | 'await' | 'size'>
  /** Called with tokens of sessions that have ended or whose certificates have changed. */
  readonly onChanged: (tokens: ReadonlySet<string>) => void
  /** Called when the controller has sent its full list of sessions. */
  readonly onWhole: (connection: ControlConnection) => void
}

/** A full list of sessions of which some parts have arrived. */
interface Sync {
  readonly id: string
  next: number
  readonly sessions: Map<string, ClientApiSession>
}

interface Waiter {
  readonly token: string
  readonly settle: (session: EdgeApiSession | null) => void
}

const { apiSessionsMax, apiSessionWaitersMax } = edgeLimits

/**
 * API sessions with which clients may connect to this router, by token. A full list from one
 * controller replaces everything that any controller sent before. A token that no controller has
 * sent is invalid, except for OIDC tokens, which {@link BearerSessions} verifies.
 */
export class ApiSessions {
  readonly #deps: ApiSessionsDeps
  readonly #byToken = new Map<string, EdgeApiSession>()
  /** While the cluster rotates its key, a session has several tokens. */
  readonly #tokensById = new Map<string, Set<string>>()
  readonly #syncs = new Map<string, Sync>()
  readonly #waiters = new Set<Waiter>()
  #isFullLogged = false

  constructor(deps: ApiSessionsDeps) {
    this.#deps = deps
  }

  get size(): number {
    return this.#byToken.size + this.#deps.bearers.size
  }

  messages(): ControlMessageTable {
    return new Map([
      [
        controlContentType.apiSessionAdded,
        (connection, message) => {
          const { sessions, part } = readSessionsAdded(message)
          if (part === null) this.#add(connection, sessions)
          else this.#sync(connection, sessions, part)
        },
      ],
      [
        controlContentType.apiSessionRemoved,
        (_, { body }) => {
          const { tokens, ids } = readSessionsRemoved(body)
          this.#remove(tokens, ids)
        },
      ],
    ])
  }

  /** Discards the incomplete list of a controller whose connection has closed. */
  onControllerClosed({ id }: Pick<ControlConnection, 'id'>): void {
    this.#syncs.delete(id)
  }

  find(token: string): EdgeApiSession | null {
    if (BearerSessions.isMeant(token)) return this.#deps.bearers.find(token)
    return this.#byToken.get(token) ?? null
  }

  /**
   * Waits for a session, because a client may connect before a controller has sent its session.
   * @param signal aborted when the client disconnects.
   * @returns null if the session did not arrive in time, too many clients wait, an OIDC token is
   * invalid, or the client has disconnected.
   */
  async await(
    token: string,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<EdgeApiSession | null> {
    if (BearerSessions.isMeant(token)) {
      return await this.#deps.bearers.await(token, timeoutMs, signal)
    }
    const known = this.find(token)
    if (known !== null || this.#waiters.size >= apiSessionWaitersMax || signal.aborted) return known
    const { promise, resolve } = Promise.withResolvers<EdgeApiSession | null>()
    const waiter = { token, settle: resolve }
    const giveUp = (): void => resolve(null)
    this.#waiters.add(waiter)
    const timer = setTimeout(giveUp, timeoutMs)
    // @guard clients-that-leave--session
    signal.addEventListener('abort', giveUp)
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', giveUp)
      this.#waiters.delete(waiter)
    }
  }

  stop(): void {
    for (const { settle } of this.#waiters) settle(null)
  }

  #sync(
    connection: ControlConnection,
    sessions: readonly ClientApiSession[],
    part: FullListPart,
  ): void {
    const { id, sequence, isLast } = part
    let sync = this.#syncs.get(connection.id)
    if (sequence === 0) {
      sync = { id, next: 0, sessions: new Map() }
      this.#syncs.set(connection.id, sync)
    }
    if (sync?.id !== id || sync.next !== sequence) {
      // Discards a list with a missing part, because it would end valid sessions.
      this.#syncs.delete(connection.id)
      connection.channel.send({ contentType: controlContentType.requestClientReSync })
      return
    }
    sync.next += 1
    for (const session of sessions) {
      if (sync.sessions.size < apiSessionsMax) sync.sessions.set(session.token, session)
    }
    if (!isLast) return
    this.#syncs.delete(connection.id)
    const missing = [...this.#byToken.keys()].filter((token) => !sync.sessions.has(token))
    // @guard client-of-a-removed-session--whole
    this.#remove(missing, [])
    this.#add(connection, [...sync.sessions.values()])
    this.#deps.onWhole(connection)
  }

  #add(connection: ControlConnection, sessions: readonly ClientApiSession[]): void {
    const changed = new Set<string>()
    for (const session of sessions) {
      const { token, id } = session
      // Skips OIDC tokens, because the router verifies them itself.
      if (BearerSessions.isMeant(token)) continue
      for (const sync of this.#syncs.values()) sync.sessions.set(token, session)
      const before = this.#byToken.get(token)
      if (before === undefined && this.#byToken.size >= apiSessionsMax) {
        this.#logFull()
        continue
      }
      if (before !== undefined && before.id !== id) this.#forget(before)
      const known = { ...session, controllerId: connection.id }
      this.#byToken.set(token, known)
      addToSet(this.#tokensById, id, token)
      if (before !== undefined && !isSame(before, session)) changed.add(token)
      for (const waiter of this.#waiters) if (waiter.token === token) waiter.settle(known)
    }
    if (changed.size > 0) this.#deps.onChanged(changed)
  }

  #remove(tokens: readonly string[], ids: readonly string[]): void {
    const all = new Set(tokens)
    for (const id of ids) for (const token of this.#tokensById.get(id) ?? []) all.add(token)
    for (const token of all) {
      for (const sync of this.#syncs.values()) sync.sessions.delete(token)
      const known = this.#byToken.get(token)
      if (known !== undefined) this.#forget(known)
    }
    this.#deps.onChanged(all)
  }

  #forget({ token, id }: EdgeApiSession): void {
    this.#byToken.delete(token)
    removeFromSet(this.#tokensById, id, token)
  }

  #logFull(): void {
    if (this.#isFullLogged) return
    this.#isFullLogged = true
    this.#deps.log.warn(
      { sessions: apiSessionsMax },
      'more API sessions than this router keeps: clients of the others cannot connect here; narrow the edge router policies',
    )
  }
}

function isSame(a: ClientApiSession, b: ClientApiSession): boolean {
  return (
    a.id === b.id &&
    a.identityId === b.identityId &&
    a.fingerprints.symmetricDifference(b.fingerprints).size === 0
  )
}
