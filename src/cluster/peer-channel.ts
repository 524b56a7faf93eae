import type { NodeId } from '../raft/types.ts'

/**
 * Caller authenticated by TLS: a controller with a certificate of this cluster's CA. The
 * configuration decides whether it is a member.
 */
export interface PeerCaller {
  readonly id: NodeId
  /** SHA-256 of the SubjectPublicKeyInfo of its leaf. */
  readonly publicKeySha256: Uint8Array
  readonly leafPem: string
  /**
   * Whether the request came over a member's stream, which is bound to the key and store of its
   * member record.
   */
  readonly isMember: boolean
}

/** @throws {Problem} that is sent to the caller; other errors reach the caller as UNHANDLED. */
export type PeerHandler = (caller: PeerCaller, payload: Uint8Array) => Promise<Uint8Array>

/** Messages between the main threads of controllers, over the mesh and outside of the log. */
export interface PeerChannel {
  /**
   * Sends a note. Notes arrive in order while the link is ready. They are lost silently if the link
   * is not ready or its queue is full. The payload is transferred to another thread and is empty
   * afterwards.
   */
  note(to: NodeId, topic: string, payload: Uint8Array): void
  /** One listener per topic. */
  onNote(topic: string, listener: (from: NodeId, payload: Uint8Array) => void): void
  /** Calls the listener when a link to a member is ready or has ended. Any number of listeners. */
  onLink(listener: (peer: NodeId, isReady: boolean) => void): void
  /** Sorted members with a ready link. */
  readyPeers(): readonly NodeId[]
  /**
   * @throws {Problem} the error that the callee returned; PEER_UNREACHABLE when no link exists,
   * when the link ends before the response, or when `timeoutMs` passes. In the last two cases the
   * callee may have acted.
   */
  call(to: NodeId, method: string, payload: Uint8Array, timeoutMs: number): Promise<Uint8Array>
  /**
   * `members`: callers that are not members are refused before the handler is called. One handler
   * per method.
   */
  serve(method: string, access: 'members' | 'controllers', handler: PeerHandler): void
}

/** Maximum bytes of one note, request or response. */
export const PEER_PAYLOAD_BYTES_MAX = 256 * 1024
