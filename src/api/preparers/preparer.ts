import type { NormalizedFields } from '../../entities/normalise.ts'
import type { RequestMode } from '../../entities/define.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import type { ProposalInput } from '../../ports/proposer.ts'
import type { RequestContext } from '../http/call.ts'
import type { WriteStep } from '../http/writes.ts'

/** A body as the fields of a command, with the records that its checks depend on. */
export interface WritePlan extends NormalizedFields {
  /** Clauses about stored values that do not take effect everywhere. */
  readonly warnings?: readonly string[]
  readonly judgedOn?: NonNullable<ProposalInput['judgedOn']>
  /** Id of the record, if the preparer chose another one. */
  readonly id?: string
  /** Writes of the same entry, before that of the record ... */
  readonly first?: readonly WriteStep[]
  /** ... and after that: all of them or none. */
  readonly also?: readonly WriteStep[]
}

/**
 * Turns a body, valid by its schema, into a write of the record `id` (on create: a new record).
 * Called again if the records that the write depends on changed.
 * @throws {Problem} when the body is refused.
 */
export type Preparer = (
  call: RequestContext,
  mode: RequestMode,
  body: JsonObject,
  id: string,
) => WritePlan | Promise<WritePlan>
