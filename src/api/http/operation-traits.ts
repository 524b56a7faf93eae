import type { NamedSchema } from '../../entities/operations.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'

/** Form of errors other than `{error, meta}`: the error object alone, or OAuth's. */
export type RefusalShape = 'bare' | 'oauth'

/** Schema and content type of an operation's body. */
export interface RequestBody<S extends JsonObject = JsonObject> {
  readonly schema: NamedSchema<S>
  readonly isRequired: boolean
  /** JSON by default; otherwise the body is plain text. */
  readonly type?: 'text/plain'
  /** Types beside JSON whose body the operation gets as text and validates itself. */
  readonly textTypes?: readonly string[]
}

/** Properties of an operation that reading its request and writing its answer depend on. */
export interface OperationTraits {
  readonly operationId: string
  readonly body?: RequestBody
  /** Most bytes, where less than the listener's limit is enough; beyond: 413. */
  readonly bodyBytesMax?: number
  /**
   * The shape of a refusal where it is not the error envelope: `bare` is `{code, message, cause}`,
   * `oauth` that of RFC 6749, 5.2.
   */
  readonly refusalShape?: RefusalShape
  /**
   * True for an operation that neither changes nor starts anything although its method is no read:
   * every caller that may read everything may call it.
   */
  readonly changesNothing?: true
}
