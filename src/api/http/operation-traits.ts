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
  /** Types other than JSON; the operation receives such a body as text and validates it itself. */
  readonly textTypes?: readonly string[]
}

/** Properties of an operation that determine how its request is read and its answer is written. */
export interface OperationTraits {
  readonly operationId: string
  readonly body?: RequestBody
  /** Maximum bytes of the body, if lower than the listener's limit; beyond: 413. */
  readonly bodyBytesMax?: number
  /**
   * The shape of a refusal if it is not the error envelope: `bare` is `{code, message, cause}`,
   * `oauth` that of RFC 6749, 5.2.
   */
  readonly refusalShape?: RefusalShape
  /**
   * True for an operation that changes and starts nothing, although its method is not GET. A caller
   * that may read everything may call it.
   */
  readonly changesNothing?: true
}
