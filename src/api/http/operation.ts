import type { NamedSchema } from '../../entities/operations.ts'
import type { ApiName, Permission } from '../../auth/principal/permissions.ts'
import type { SessionPermission } from '../../lib/permissions.ts'
import type { RequestContext } from './call.ts'
import type { Reply } from './answers/envelope.ts'
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
 * Shape of a success. `detail`: `{data, meta}`; `list`: the same with rows and pagination; `bare`:
 * no envelope, and the schema describes the whole body.
 */
export interface ResponseShape {
  readonly kind: 'detail' | 'list' | 'bare'
  readonly schema: NamedSchema
  /** JSON by default. The first type is the preferred one. */
  readonly types?: readonly string[]
  /** As in OpenZiti, a download with a single form is sent regardless of Accept. */
  readonly ignoresAccept?: boolean
}

/** A missing body counts as an empty object. */
export type OperationBody<B extends RequestBody> =
  | (B extends { readonly textTypes: readonly string[] } ? string : never)
  | (B extends RequestBody<infer S> ? IfGiven<SchemaValue<S>, B['isRequired']> : never)

type IfGiven<T, IsRequired> = IsRequired extends true
  ? T
  : T extends readonly unknown[]
    ? T | Readonly<Record<string, never>>
    : Partial<T>

/** One operation of one or several APIs, generated from a descriptor or written by hand. */
export interface Operation extends OperationTraits {
  readonly summary: string
  readonly tag: string
  readonly apis: readonly ApiName[]
  readonly method: Method
  /** Below the API's base, with `{name}` parameters. */
  readonly path: string
  readonly permission: Permission
  /** Additional permission of a public operation: a caller that has it receives the full answer. */
  readonly elevatedPermission?: SessionPermission
  readonly query?: readonly QueryParameter[]
  /** Lower-case names of request headers that it reads. */
  readonly headers?: readonly { readonly name: string; readonly description: string }[]
  /** 202: the work has begun; another operation reports its result. */
  readonly success: 200 | 201 | 202
  readonly response: ResponseShape
  /** Another status with the same shape as a success. */
  readonly alsoAnswers?: number
  /**
   * Statuses of refusals, in addition to those that follow from its method, permission, body and
   * ETag (see `schemas/openapi.ts`). Each has the error envelope.
   */
  readonly refusals?: readonly number[]
  /**
   * Set for log-ins: returns the method of the credential. A refused log-in is published as an
   * event.
   */
  readonly logInMethod?: (call: RequestContext) => string
  /**
   * True for operations on one record: a read returns an ETag, and a write respects If-Match. Other
   * operations refuse that header.
   */
  readonly hasEtag?: boolean
  /**
   * True for a read whose answer may be compressed. Never for an answer with a secret that
   * `isKnownSecret` in `answers/compression.ts` does not recognize by the name of its member.
   */
  readonly isCompressible?: boolean
  /** True for the liveness answer, which must be sent even when nothing else can be. */
  readonly isAlwaysServed?: boolean
  /**
   * True for operations about this controller and its members, not about records. The admin socket
   * serves them even while the state is unusable, so that an operator can inspect and repair the
   * controller.
   */
  readonly needsNoState?: boolean
  /** Maximum time of an answer that may take longer than the limit of the listener. */
  readonly answerMsMax?: number
  /**
   * True for a read that a monitoring system may do with its certificate, without a session. A
   * listener for metrics serves only these.
   */
  readonly isForMonitors?: boolean
  /**
   * If it can, a read should return its result synchronously, which costs no promise and no timer.
   */
  readonly handle: Handler
}

/** A request as the pipeline serves it. */
export type OperationCall = RequestContext<Operation>

/** Handles a request of an operation. */
export type Handler<Body = unknown> = (call: RequestContext, body: Body) => Reply | Promise<Reply>

/**
 * An operation whose handler receives the body with the type of its schema. The pipeline validates
 * each body, so the cast is safe.
 */
export function withBody<const B extends RequestBody>(
  operation: Omit<Operation, 'body' | 'handle'> & {
    readonly body: B
    readonly handle: Handler<OperationBody<B>>
  },
): Operation {
  return operation as Operation
}
