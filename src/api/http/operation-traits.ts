import type { NamedSchema } from '../../entities/operations.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'

/**
 * Form of error responses without the envelope `{error, meta}`: the error object alone, or the
 * OAuth form.
 */
export type ErrorResponseFormat = 'bare' | 'oauth'

/** Schema and content type of an operation's body. */
export interface RequestBody<S extends JsonObject = JsonObject> {
  readonly schema: NamedSchema<S>
  readonly isRequired: boolean
  /** Content type of a text body; by default, the body is JSON. */
  readonly type?: 'text/plain'
  /**
   * Content types other than JSON; the operation receives such a body as text and validates it
   * itself.
   */
  readonly textTypes?: readonly string[]
}

/**
 * Properties of an operation that determine how its request is read and its response is written.
 */
export interface OperationTraits {
  readonly operationId: string
  readonly body?: RequestBody
  /** Maximum bytes of the body, if lower than the listener's limit; above that: 413. */
  readonly bodyBytesMax?: number
  /**
   * Form of error responses, if it is not the error envelope: `bare` is `{code, message, cause}`,
   * `oauth` is the form of RFC 6749, 5.2.
   */
  readonly refusalShape?: ErrorResponseFormat
  /**
   * True if the operation changes nothing and starts nothing, although its method is not GET. A
   * caller with read permission for all records may call it.
   */
  readonly changesNothing?: true
}
