import type { NormalizedFields } from '../../entities/normalize-body.ts'
import type { RequestMode } from '../../entities/define-entity.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import type { ProposalInput } from '../../ports/proposer.ts'
import type { RequestContext } from '../http/request-context.ts'
import type { BatchWriteStep } from '../http/proposal-writer.ts'

/**
 * The fields of a command, converted from a body, and the records on which the validation depends.
 */
export interface WritePlan extends NormalizedFields {
  /**
   * Warnings about stored values that some components ignore; each is a clause, not a sentence.
   */
  readonly warnings?: readonly string[]
  readonly judgedOn?: NonNullable<ProposalInput['judgedOn']>
  /** Id of the record, if the preparer has chosen another id than the given one. */
  readonly id?: string
  /** Further writes in the same log entry, before the write of the record. */
  readonly first?: readonly BatchWriteStep[]
  /**
   * Further writes in the same log entry, after the write of the record. All writes of the entry
   * take effect, or none.
   */
  readonly also?: readonly BatchWriteStep[]
}

/**
 * Converts a body that passed its schema to a write of the record `id` (for a creation, the id of
 * the new record). The preparer is called again if the records on which the write depends have
 * changed.
 * @throws {Problem} when the body is refused.
 */
export type WritePreparer = (
  call: RequestContext,
  mode: RequestMode,
  body: JsonObject,
  id: string,
) => WritePlan | Promise<WritePlan>
