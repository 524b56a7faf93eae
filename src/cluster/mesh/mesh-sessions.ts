import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2'
import type { TLSSocket } from 'node:tls'

import type { Clock } from '../../lib/clock.ts'
import { TokenBucket } from '../../lib/bounds/keyed-token-buckets.ts'
import { peerLeafDer } from '../../lib/runtime/peer-certificates.ts'
import type { NodeId } from '../../raft/types.ts'
import { meshLimits } from './limits.ts'

/**
 * Status of a caller according to its certificate and the current configuration: the id, and
 * whether it is a member. null: the caller may not connect.
 */
export type CallerMembership = { readonly id: NodeId; readonly isMember: boolean } | null

interface MeshSessionsDeps {
  readonly clock: Clock
  readonly standing: (leafDer: Uint8Array, remote: string) => CallerMembership
}

interface Caller {
  readonly socket: TLSSocket
  readonly leafDer: Uint8Array
  id: NodeId
  isMember: boolean
  /** Closes the connection of a non-member after its time limit. */
  timer: NodeJS.Timeout | null
}

interface StreamUse {
  readonly socket: TLSSocket
  readonly streams: TokenBucket
  open: number
}

/**
 * Admits and limits HTTP/2 connections at the mesh port. Each member has its own connections. Other
 * controllers with a certificate of the CA (for example one that requests admission or was removed)
 * share a few connections for a short time. All other callers are refused.
 */
export class MeshSessions {
  readonly #deps: MeshSessionsDeps
  /** The connected callers, oldest first. */
  readonly #callers = new Set<Caller>()
  readonly #streams = new WeakMap<ServerHttp2Session, StreamUse>()

  constructor(deps: MeshSessionsDeps) {
    this.#deps = deps
  }

  /**
   * Decides whether a connection may stay open.
   * @returns false when the caller is not admitted; its connection is then closed.
   */
  admit(socket: TLSSocket): boolean {
    const leafDer = peerLeafDer(socket)
    const standing = leafDer === null ? null : this.#deps.standing(leafDer, remoteOf(socket))
    if (leafDer === null || standing === null || !this.#hasRoomFor(standing)) {
      socket.destroy()
      return false
    }
    const caller: Caller = { socket, leafDer, ...standing, timer: null }
    this.#callers.add(caller)
    socket.once('close', () => this.#forget(caller))
    this.#limitTime(caller)
    return true
  }

  /**
   * Limits the streams and control frames of an admitted caller, because each of them costs this
   * thread time.
   */
  guard(session: ServerHttp2Session, socket: TLSSocket): void {
    const { clock } = this.#deps
    const streams = new TokenBucket(
      { burst: meshLimits.meshStreamsBurst, perSecond: meshLimits.meshStreamsPerSecond },
      clock,
    )
    const controls = new TokenBucket(
      { burst: meshLimits.meshControlsBurst, perSecond: meshLimits.meshControlsPerSecond },
      clock,
    )
    const onControl = (): void => {
      // @guard http2-at-the-mesh--controls
      if (!controls.take()) session.destroy()
    }
    session.on('ping', onControl)
    session.on('remoteSettings', onControl)
    this.#streams.set(session, { socket, streams, open: 0 })
  }

  /** Called for each stream that a caller opens. */
  readonly mayOpen = (session: ServerHttp2Session, stream: ServerHttp2Stream): boolean => {
    const use = this.#streams.get(session)
    // @guard http2-at-the-mesh--streams
    if (use === undefined || !use.streams.take()) return false
    if (!stream.destroyed) {
      use.open += 1
      stream.once('close', () => (use.open -= 1))
    }
    const isMember = [...this.#callers].some((one) => one.socket === use.socket && one.isMember)
    const { meshStreamsMax, meshStreamsOfStrangerMax } = meshLimits
    return use.open <= (isMember ? meshStreamsMax : meshStreamsOfStrangerMax)
  }

  /** Checks all connections again after a change of the configuration. */
  judgeAgain(): void {
    for (const caller of Array.from(this.#callers)) {
      const standing = this.#deps.standing(caller.leafDer, remoteOf(caller.socket))
      if (standing === null) {
        caller.socket.destroy()
      } else if (standing.isMember !== caller.isMember) {
        caller.isMember = standing.isMember
        this.#limitTime(caller)
      }
    }
  }

  close(): void {
    for (const caller of Array.from(this.#callers)) {
      this.#forget(caller)
      caller.socket.destroy()
    }
  }

  #hasRoomFor({ id, isMember }: NonNullable<CallerMembership>): boolean {
    const own = [...this.#callers].filter((one) => one.id === id && one.isMember === isMember)
    const max = isMember
      ? meshLimits.meshSessionsPerControllerMax
      : meshLimits.meshSessionsPerStrangerMax
    const [oldest] = own
    // @guard http2-at-the-mesh--own
    if (own.length >= max && oldest !== undefined) {
      this.#forget(oldest)
      oldest.socket.destroy()
    }
    if (isMember) return true
    const strangers = [...this.#callers].filter((one) => !one.isMember).length
    // @guard http2-at-the-mesh--strangers
    return strangers < meshLimits.meshStrangersMax
  }

  #limitTime(caller: Caller): void {
    if (caller.timer !== null) clearTimeout(caller.timer)
    caller.timer = caller.isMember
      ? null
      : setTimeout(() => caller.socket.destroy(), meshLimits.meshStrangerMs)
  }

  #forget(caller: Caller): void {
    if (caller.timer !== null) clearTimeout(caller.timer)
    caller.timer = null
    this.#callers.delete(caller)
  }
}

function remoteOf({ remoteAddress = '' }: TLSSocket): string {
  return remoteAddress
}
