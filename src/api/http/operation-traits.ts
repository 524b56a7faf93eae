import type { NamedSchema } from '../../entities/operations.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'

/**
 * Format of error responses that lack the envelope `{error, meta}`. `bare`: the error object alone;
 * `oauth`: an OAuth error (RFC 6749, 5.2), except that errors with status 429 or from 500 have the
 * envelope.
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
  /** Format of error responses; absent: they have the envelope. */
  readonly refusalShape?: ErrorResponseFormat
  /**
   * True if the operation changes nothing and starts nothing, although its method is not GET. A
   * caller with read permission for all records may call it.
   */
  readonly changesNothing?: true
}
