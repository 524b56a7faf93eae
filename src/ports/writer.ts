import type { TraceContext } from '../lib/trace-context.ts'
import type { Actor } from './actor.ts'
import type { ProposalInput } from './proposer.ts'

/** Means by which controllers recognize that a client repeats a write. */
export type Idempotency =
  /** A request id, and a hash of the request. */
  | { readonly case: 'id'; readonly id: Uint8Array; readonly bodyHash: () => Uint8Array }
  | { readonly case: 'none' }
  /** The controllers do not store an id, so a repeated request may take effect twice. */
  | { readonly case: 'notKept' }

/** The request behind a write, over any transport. */
export interface WriteRequest {
  readonly trace: TraceContext
  readonly idempotency: Idempotency
  /**
   * Returns true if the request timed out and its client has received the timeout response. The
   * write must then not take effect.
   */
  readonly isAbandoned: () => boolean
  /**
   * Called with the request's idempotency before the proposal, and with null when it is certain
   * that the write changes nothing.
   */
  readonly onProposed: (idempotency: Idempotency | null) => void
  /** Called with the log index of the outcome after this controller has applied the entry. */
  readonly onOutcome: (index: number) => void
}

/** A request, with the actor that makes the write. */
export interface WriteOrigin extends WriteRequest {
  readonly actor: Actor
}

/**
 * A command for the proposer, without the fields that come from its origin: actor, request ID and
 * trace.
 */
export type WriteCommand = Pick<ProposalInput, 'kind' | 'payload' | 'level' | 'judgedOn'>

/**
 * Proposes writes to the cluster. If the state machine refuses a write, the method throws the
 * refusal as a {Problem}.
 */
export interface CommandWriter {
  /**
   * Proposes a write.
   * @returns the id of the written record; for a repeated request, the id that the first request
   * returned.
   * @throws {Problem} the refusal by the state machine, or the reason why the outcome is unknown.
   */
  write(origin: WriteOrigin, command: WriteCommand): Promise<string>
}
