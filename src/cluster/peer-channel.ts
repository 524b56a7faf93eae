import type { NodeId } from '../raft/types.ts'

/**
 * Caller, as TLS has proven: a controller of this cluster's CA. Whether it is a member is for the
 * log to say.
 */
export interface PeerCaller {
  readonly id: NodeId
  /** Hash of the proven leaf's SubjectPublicKeyInfo. */
  readonly publicKeySha256: Uint8Array
  readonly leafPem: string
  /** It came over a member's stream, bound to the key and the store of its member record. */
  readonly isMember: boolean
}

/** @throws {Problem} what the caller is to be told; anything else reaches it as UNHANDLED. */
export type PeerHandler = (caller: PeerCaller, payload: Uint8Array) => Promise<Uint8Array>

/** Messages between the main threads of controllers, over the mesh and beside the log. */
export interface PeerChannel {
  /**
   * Notes arrive in order while the link stands; they are lost without a word when it does not, or
   * has no room. The payload is transferred to another thread, so it is empty afterwards.
   */
  note(to: NodeId, topic: string, payload: Uint8Array): void
  /** One listener a topic. */
  onNote(topic: string, listener: (from: NodeId, payload: Uint8Array) => void): void
  /** A link to a member has come to stand, or has ended. Any number of listeners. */
  onLink(listener: (peer: NodeId, isReady: boolean) => void): void
  /** Members that a note would be sent to now, sorted. */
  readyPeers(): readonly NodeId[]
  /**
   * @throws {Problem} what the callee answered; PEER_UNREACHABLE when there is no link, it ends
   * before the answer, or `timeoutMs` passes: whether the callee has acted is not known then.
   */
  call(to: NodeId, method: string, payload: Uint8Array, timeoutMs: number): Promise<Uint8Array>
  /** `members`: strangers are refused before the handler is asked. One handler a method. */
  serve(method: string, access: 'members' | 'controllers', handler: PeerHandler): void
}

/** Bytes of one note, or of one request or answer. */
export const PEER_PAYLOAD_BYTES_MAX = 256 * 1024
