import type { ByteStream } from '../../../ports/byte-stream.ts'
import type { ReplyBody } from '../transport/unread-responses.ts'

/** API version in `meta` of each response that has the envelope. */
const API_VERSION = '0.0.1'
const versions = { apiEnrollmentVersion: API_VERSION, apiVersion: API_VERSION } as const
export const versionMetaText = JSON.stringify(versions)

/** Position of a page in its list. */
export interface Pagination {
  readonly limit: number
  readonly offset: number
  readonly totalCount: number
}

/** Pagination of a list that a response contains completely. */
export function singlePagePagination({ length }: readonly unknown[]): Pagination {
  return { limit: length, offset: 0, totalCount: length }
}

/** The response of an operation, before it is sent. */
export interface Reply {
  readonly status: number
  readonly body: ReplyBody
  readonly contentType: string
  readonly headers?: Readonly<Record<string, string>>
  /** Stream that is sent as the body; `body` is then empty. */
  readonly stream?: ByteStream
}

/** A response whose JSON body is already encoded. */
export interface EncodedJsonReply extends Reply {
  readonly body: string
}

const JSON_TYPE = 'application/json'

/**
 * A response in OpenZiti's envelope: `{"data": …, "meta": …}`.
 * @param meta members of `meta` in addition to the API version.
 */
export function envelopeResponse(
  status: number,
  data: unknown,
  meta: Readonly<Record<string, unknown>> | null = null,
): EncodedJsonReply {
  const metaText = meta === null ? versionMetaText : JSON.stringify({ ...versions, ...meta })
  return responseFromJsonText(JSON.stringify(data), status, metaText)
}

/** @param text JSON text of the data. */
export function responseFromJsonText(
  text: string,
  status = 200,
  metaText = versionMetaText,
): EncodedJsonReply {
  return { status, body: `{"data":${text},"meta":${metaText}}`, contentType: JSON_TYPE }
}

/** A response with status 200 and one object or list as its data. */
export function detailResponse(
  data: unknown,
  ignoredFields: readonly string[] = [],
): EncodedJsonReply {
  return envelopeResponse(200, data, writtenMeta(ignoredFields))
}

/** A response with status 200, a page of records, and its pagination. */
export function listResponse(
  data: readonly unknown[],
  pagination: Pagination,
  filterableFields: readonly string[],
): Reply {
  const metaText = listMetaText(pagination, filterableFields)
  const body = `{"data":${JSON.stringify(data)},"meta":${metaText}}`
  return { status: 200, body, contentType: JSON_TYPE }
}

export function listMetaText(pagination: Pagination, filterableFields: readonly string[]): string {
  return JSON.stringify({ ...versions, filterableFields, pagination })
}

/**
 * A response with status 201, and the id and link of the new record.
 * @param collection path of the record's kind.
 * @param ignoredFields members of the body that had no effect.
 */
export function createdResponse(
  collection: string,
  id: string,
  ignoredFields: readonly string[],
  warnings: readonly string[] = [],
): Reply {
  return envelopeResponse(
    201,
    { _links: { self: { href: `./${collection}/${id}` } }, id },
    writtenMeta(ignoredFields, warnings),
  )
}

/** Response without data, for updates, deletions and acknowledgments. */
export function emptyResponse(
  ignoredFields: readonly string[] = [],
  warnings: readonly string[] = [],
): Reply {
  return envelopeResponse(200, {}, writtenMeta(ignoredFields, warnings))
}

/**
 * Response to a deletion. `detachedFrom`: the remaining records that referenced the deleted record.
 */
export function deletedResponse(detachedFrom: readonly Readonly<Record<string, unknown>>[]): Reply {
  return envelopeResponse(200, {}, detachedFrom.length === 0 ? null : { detachedFrom })
}

/** A response with status 202: the work has begun, and its result will be available later. */
export function acceptedResponse(): Reply {
  return envelopeResponse(202, {})
}

/**
 * A response that is too large or too slow to be kept in memory. The response has no
 * Content-Length; the chunked transfer coding marks its end.
 */
export function streamedResponse(
  stream: ByteStream,
  contentType = 'application/octet-stream',
  headers: Readonly<Record<string, string>> = {},
): Reply {
  return { status: 200, body: '', contentType, headers, stream }
}

/**
 * A response with status 200 and without the envelope, for example for metrics, HTML pages, and
 * operations whose responses have no envelope in OpenZiti.
 */
export function responseWithoutEnvelope(body: ReplyBody, contentType: string = JSON_TYPE): Reply {
  return { status: 200, body, contentType }
}

function writtenMeta(
  ignoredFields: readonly string[],
  warnings: readonly string[] = [],
): Record<string, unknown> | null {
  if (ignoredFields.length === 0 && warnings.length === 0) return null
  return {
    ...(ignoredFields.length === 0 ? {} : { ignoredFields }),
    ...(warnings.length === 0 ? {} : { warnings }),
  }
}

/** Formats a time in RFC 3339 format: UTC, milliseconds. */
export function rfc3339Text(ms: number): string {
  return new Date(ms).toISOString()
}
