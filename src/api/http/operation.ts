import type { NamedSchema } from '../../entities/operations.ts'
import type { ApiName, Permission } from '../../auth/principal/permissions.ts'
import type { SessionPermission } from '../../lib/permissions.ts'
import type { RequestContext } from './request-context.ts'
import type { Reply } from './responses/envelope.ts'
import type { SchemaValue } from '../schemas/typed-schema.ts'
import type { OperationTraits, RequestBody } from './operation-traits.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
export type JsonSchema = Readonly<Record<string, unknown>>

export interface QueryParameter {
  readonly name: string
  readonly schema: JsonSchema
  readonly isRequired: boolean
}

/**
 * Format of a successful response. `detail`: `{data, meta}`; `list`: the same, with a list in
 * `data` and the pagination in `meta`; `bare`: no envelope, and the schema describes the whole
 * body.
 */
export interface ResponseShape {
  readonly kind: 'detail' | 'list' | 'bare'
  readonly schema: NamedSchema
  /** Content types of the response, the preferred one first; by default, JSON. */
  readonly types?: readonly string[]
  /**
   * True: the response is sent regardless of the Accept header, like OpenZiti's downloads, which
   * have only one format.
   */
  readonly ignoresAccept?: boolean
}

/** Type of a body; a missing body that is not required counts as an empty object. */
export type OperationBody<B extends RequestBody> =
  | (B extends { readonly textTypes: readonly string[] } ? string : never)
  | (B extends RequestBody<infer S> ? IfGiven<SchemaValue<S>, B['isRequired']> : never)

type IfGiven<T, IsRequired> = IsRequired extends true
  ? T
  : T extends readonly unknown[]
    ? T | Readonly<Record<string, never>>
    : Partial<T>

/** One operation of one or more APIs; it is generated from a descriptor, or written by hand. */
export interface Operation extends OperationTraits {
  readonly summary: string
  readonly tag: string
  readonly apis: readonly ApiName[]
  readonly method: Method
  /** Path below the API's base path, with `{name}` parameters. */
  readonly path: string
  readonly permission: Permission
  /**
   * Additional permission for a public operation: a caller with this permission receives more data.
   */
  readonly elevatedPermission?: SessionPermission
  readonly query?: readonly QueryParameter[]
  /** Lower-case names of the request headers that the operation reads. */
  readonly headers?: readonly { readonly name: string; readonly description: string }[]
  /** 202: the work has begun; another operation reports its result. */
  readonly success: 200 | 201 | 202
  readonly response: ResponseShape
  /** Another success status, with the same response format. */
  readonly alsoAnswers?: number
  /**
   * Error statuses in addition to the statuses that follow from other properties of the operation,
   * such as its method and body (see `schemas/openapi.ts`).
   */
  readonly refusals?: readonly number[]
  /**
   * Set for log-in operations: returns the authentication method for the event about a refused
   * log-in.
   */
  readonly logInMethod?: (call: RequestContext) => string
  /**
   * True for operations on one record: a read returns an ETag, and a write respects If-Match. Other
   * writes refuse the If-Match header.
   */
  readonly hasEtag?: boolean
  /**
   * True for a read whose response may be compressed. Do not set it if the response contains a
   * secret that `isKnownSecretName` in `responses/response-compression.ts` does not recognize by
   * the name of its member.
   */
  readonly isCompressible?: boolean
  /**
   * True for responses without data from the state, such as health checks and files; they are sent
   * even while the state is unusable.
   */
  readonly isAlwaysServed?: boolean
  /**
   * True for operations about this controller and the cluster, not about records. The admin socket
   * serves these operations even while the state is unusable, so that an operator can inspect and
   * repair the controller. If `isForMonitors` is set, the web listeners then also serve the
   * operation to clients with a monitoring certificate.
   */
  readonly needsNoState?: boolean
  /**
   * Maximum time until the response, for an operation that may take longer than the listener's
   * limit.
   */
  readonly answerMsMax?: number
  /**
   * True for a read that a monitoring system may request with its certificate, without a session. A
   * metrics listener serves only such operations.
   */
  readonly isForMonitors?: boolean
  /**
   * A read should return its result synchronously if possible, because this needs no promise and no
   * timer.
   */
  readonly handle: Handler
}

/** The context of a request after routing: its operation is known. */
export type OperationCall = RequestContext<Operation>

/** Handles the requests of one operation. */
export type Handler<Body = unknown> = (call: RequestContext, body: Body) => Reply | Promise<Reply>

/**
 * An operation whose handler receives the body with the type of its schema. The cast to this type
 * is safe, because the pipeline validates each JSON body, and passes any other body as text.
 */
export function operationWithBody<const B extends RequestBody>(
  operation: Omit<Operation, 'body' | 'handle'> & {
    readonly body: B
    readonly handle: Handler<OperationBody<B>>
  },
): Operation {
  return operation as Operation
}
