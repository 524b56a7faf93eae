import type { TraceContext } from '../lib/trace-context.ts'
import type { Actor } from './actor.ts'
import type { ProposalInput } from './proposer.ts'

/** How a repeated write is recognized. */
export type Idempotency =
  /** A request id, and a hash of the request. */
  | { readonly case: 'id'; readonly id: Uint8Array; readonly bodyHash: () => Uint8Array }
  | { readonly case: 'none' }
  /** The id is not stored, so a repeated request takes effect twice. */
  | { readonly case: 'notKept' }

/** The request behind a write, over any transport. */
export interface WriteRequest {
  readonly trace: TraceContext
  readonly idempotency: Idempotency
  /**
   * True: the request timed out, and its client has received the timeout response. The write must
   * not take effect any more.
   */
  readonly isAbandoned: () => boolean
  /**
   * Called with the request's idempotency before the proposal, and with null once the write is
   * known to change nothing.
   */
  readonly onProposed: (idempotency: Idempotency | null) => void
  /** Called with the log index of the outcome, which is applied on this controller. */
  readonly onOutcome: (index: number) => void
}

/** A request, with the actor that makes the write. */
export interface WriteOrigin extends WriteRequest {
  readonly actor: Actor
}

/** A command in the form that the proposer accepts, without its origin. */
export type WriteCommand = Pick<ProposalInput, 'kind' | 'payload' | 'level' | 'judgedOn'>

/**
 * Proposes writes to the cluster, and throws refusals (which apply returns as values) as problems.
 */
export interface CommandWriter {
  /**
   * @returns the id of the written record; for a repeated request, that of the first one.
   * @throws {Problem} the refusal of apply, or the reason why the outcome is unknown.
   */
  write(origin: WriteOrigin, command: WriteCommand): Promise<string>
}
