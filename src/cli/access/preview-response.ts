import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { printableValue } from '../../lib/text/terminal-text.ts'
import {
  listShape,
  nullableShape,
  numberShape,
  objectShape,
  type ShapeCheck,
  textShape,
} from '../client/response-shape.ts'
import type { RecordApi } from '../client/record-api.ts'

/** One change in the format of `POST /access/preview`. */
export interface PreviewChange {
  readonly action: 'create' | 'replace' | 'patch' | 'delete'
  readonly kind: string
  readonly id: string
  readonly data?: JsonObject
}

/** Maximum number of changes in one preview, as in the API. */
export const PREVIEW_CHANGES_MAX = 64

interface Counts {
  readonly given: number
  readonly taken: number
}

interface PreviewedRef {
  readonly id: string
  readonly name: string
}

/**
 * The printed fields of the preview response. Counts that the caller may not see are null. Each row
 * has two of the three records; the third one is null.
 */
export interface PreviewResponse {
  readonly counts: {
    readonly dial: Counts
    readonly bind: Counts
    readonly router: Counts | null
    readonly serviceRouter: Counts | null
  }
  readonly postureChanges: readonly {
    readonly policy: PreviewedRef
    readonly given: readonly PreviewedRef[]
    readonly taken: readonly PreviewedRef[]
    readonly written: readonly PreviewedRef[]
  }[]
  readonly rows: readonly {
    readonly right: string
    readonly change: 'given' | 'taken'
    readonly identity: PreviewedRef | null
    readonly service: PreviewedRef | null
    readonly router: PreviewedRef | null
  }[]
  readonly pagination: { readonly totalCount: number }
}

const ref = objectShape<PreviewedRef>({ id: textShape, name: textShape })
const counts = objectShape<Counts>({ given: numberShape, taken: numberShape })

export const previewResponseShape = objectShape<PreviewResponse>({
  counts: objectShape<PreviewResponse['counts']>({
    dial: counts,
    bind: counts,
    router: nullableShape(counts),
    serviceRouter: nullableShape(counts),
  }),
  postureChanges: listShape(
    objectShape({
      policy: ref,
      given: listShape(ref),
      taken: listShape(ref),
      written: listShape(ref),
    }),
  ),
  rows: listShape(
    objectShape<PreviewResponse['rows'][number]>({
      right: textShape,
      change: textShape as ShapeCheck<'given' | 'taken'>,
      identity: nullableShape(ref),
      service: nullableShape(ref),
      router: nullableShape(ref),
    }),
  ),
  pagination: objectShape<PreviewResponse['pagination']>({ totalCount: numberShape }),
})

/** Requests a preview of the changes; the controller does not write them. */
export async function requestPreview(
  client: RecordApi,
  changes: readonly PreviewChange[],
  limit: number,
): Promise<PreviewResponse> {
  const path = `/access/preview?limit=${limit}`
  const request = { method: 'POST', path, body: { changes } } as const
  return (await client.ask(request, previewResponseShape)).data
}

const rights = [
  ['dial', 'dial'],
  ['bind', 'bind'],
  ['router', 'edge routers of identities'],
  ['serviceRouter', 'edge routers of services'],
] as const

/** Text with the counts of changed pairs, followed by the pairs of the first page. */
export function accessPreviewText(previewed: PreviewResponse): string {
  const { counts, postureChanges, rows, pagination } = printableValue(previewed)
  const counted = rights.flatMap(([right, words]) => {
    const count = counts[right]
    return count === null ? [] : [`${words}: ${count.given} given, ${count.taken} taken`]
  })
  const more = pagination.totalCount - rows.length
  return [
    ...counted,
    ...rows.map(rowText),
    ...(more > 0 ? [`and ${more} more`] : []),
    ...postureChanges.map(postureText),
  ].join('\n')
}

function rowText({
  right,
  change,
  identity,
  service,
  router,
}: PreviewResponse['rows'][number]): string {
  const sides = [identity, service, router].flatMap((one) => (one === null ? [] : [one.name]))
  const word = right === 'serviceRouter' ? 'router' : right
  return `${change === 'given' ? '+' : '-'} ${word} ${sides.join(' -> ')}`
}

function postureText({
  policy,
  given,
  taken,
  written,
}: PreviewResponse['postureChanges'][number]): string {
  const signed = (sign: string, refs: readonly PreviewedRef[]): string[] =>
    refs.map(({ name }) => `${sign}${name}`)
  const all = [...signed('+', given), ...signed('-', taken), ...signed('~', written)]
  return `posture checks of policy ${policy.name}: ${all.join(' ')}`
}
