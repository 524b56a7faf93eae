import type { NodeId } from '../raft/types.ts'

/**
 * A caller that TLS has authenticated: a controller with a certificate of this cluster's CA.
 * Whether it is a member follows from the configuration, not from the certificate.
 */
export interface PeerCaller {
  readonly id: NodeId
  /** SHA-256 of the SubjectPublicKeyInfo of its leaf. */
  readonly publicKeySha256: Uint8Array
  readonly leafPem: string
  /**
   * True if the request came over a member's stream, which is bound to the key and store of its
   * member record.
   */
  readonly isMember: boolean
}

/**
 * Handles a request of another controller.
 * @throws {Problem} an error that the caller receives; the caller receives any other error as
 * UNHANDLED.
 */
export type PeerHandler = (caller: PeerCaller, payload: Uint8Array) => Promise<Uint8Array>

/** Messages between the main threads of controllers. They use the mesh and do not enter the log. */
export interface PeerChannel {
  /**
   * Sends a note (a message without a response). Notes arrive in order while the link is ready.
   * They are lost without an error if the link is not ready or its queue is full. The payload is
   * transferred to another thread and is empty afterwards.
   */
  note(to: NodeId, topic: string, payload: Uint8Array): void
  /**
   * Sets the listener for the notes (messages without a response) of a topic; each topic has at
   * most one.
   */
  onNote(topic: string, listener: (from: NodeId, payload: Uint8Array) => void): void
  /**
   * Calls the listener when a link to a member becomes ready or closes. There may be several
   * listeners.
   */
  onLink(listener: (peer: NodeId, isReady: boolean) => void): void
  /** Ids of the members with a ready link, sorted. */
  readyPeers(): readonly NodeId[]
  /**
   * Sends a request and waits for the response.
   * @throws {Problem} the error that the callee returned; SERVER_TOO_MANY_REQUESTS when too many
   * calls wait; PEER_UNREACHABLE when no link exists, when the link closes before the response, or
   * when `timeoutMs` passes. In the last two cases the callee may have acted.
   */
  call(to: NodeId, method: string, payload: Uint8Array, timeoutMs: number): Promise<Uint8Array>
  /**
   * Sets the handler of a method; each method has one. If `access` is `members`, callers that are
   * not members are refused before the handler is called.
   */
  serve(method: string, access: 'members' | 'controllers', handler: PeerHandler): void
}

/** Maximum bytes of one note (message without a response), request or response. */
export const PEER_PAYLOAD_BYTES_MAX = 256 * 1024
