import { type Signal, useSignal } from '@preact/signals'

import { failureText } from '../../app/failure.tsx'
import { managementDocument } from '../../app/management-document.ts'
import { useLoadedData } from '../../app/loaded.ts'
import { consoleApiClient } from '../../app/console-state.ts'
import type {
  AccessPreviewed,
  AccessPreviewedPostureChangesPolicy,
} from '../../client/served-types.ts'
import { sortByName } from '../../app/name-order.ts'
import { Notice } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { recordReferenceText } from './explain-data.ts'

/** Kinds whose changes affect access, by collection name. */
const previewed: Readonly<Record<string, string>> = {
  identities: 'identity',
  services: 'service',
  'service-policies': 'servicePolicy',
  'edge-router-policies': 'edgeRouterPolicy',
  'service-edge-router-policies': 'serviceEdgeRouterPolicy',
  'posture-checks': 'postureCheck',
  'edge-routers': 'edgeRouter',
}

/** The collection of a kind whose changes affect access. */
export function previewedCollection(kind: string): string {
  return Object.keys(previewed).find((collection) => previewed[collection] === kind) ?? ''
}

/** Whether records in a collection affect access; changes of such records have a preview. */
export function hasEffectOnAccess(collection: string): boolean {
  return Object.hasOwn(previewed, collection)
}

export interface PreviewedChange {
  readonly action: 'create' | 'replace' | 'patch' | 'delete'
  readonly collection: string
  readonly id: string | null
  readonly data: Readonly<Record<string, unknown>> | null
}

const ROWS = 10
/** Rows that are read, so that the shown ones include each right. */
const READ_ROWS = 100
const OPERATION = '/access/preview'

/** Null if this controller does not offer previews, or the changes have no effect on access. */
export async function loadAccessEffect(
  changes: readonly PreviewedChange[],
  signal?: AbortSignal,
): Promise<AccessPreviewed | null> {
  const served = await managementDocument()
  if (served.operation('post', OPERATION) === null) return null
  const body = changes.flatMap(bodyOf)
  if (body.length === 0) return null
  const { data: found } = await consoleApiClient.served('POST /edge/management/v1/access/preview', {
    query: { limit: String(READ_ROWS) },
    body: { changes: body },
    changesNothing: true,
    timeoutMs: 5_000,
    ...(signal === undefined ? {} : { signal }),
  })
  return { ...found, rows: rowsOfEachRight(found.rows) }
}

/** The first rows, among them at least one of each right that is given or taken. */
function rowsOfEachRight(rows: AccessPreviewed['rows']): AccessPreviewed['rows'] {
  const seen = new Set<string>()
  const first = rows.filter(({ change, right }) => {
    const key = `${change} ${right}`
    return !seen.has(key) && seen.add(key)
  })
  return [...first, ...rows.filter((row) => !first.includes(row))].slice(0, ROWS)
}

/** A change as an item of the preview request; [] if it has no effect on access. */
function bodyOf({ collection, action, id, data }: PreviewedChange): object[] {
  const kind = previewed[collection]
  // A new router can be reached only after its enrollment, so its creation has no effect yet.
  const isNewRouter = kind === 'edgeRouter' && action === 'create'
  if (kind === undefined || isNewRouter) return []
  return [{ action, kind, ...(id === null ? {} : { id }), ...(data === null ? {} : { data }) }]
}

/** The effect of changes on access; null before it is loaded, and if there is none to show. */
export interface AccessEffectLoad {
  readonly data: Signal<AccessPreviewed | null>
  readonly error: Signal<unknown>
  readonly isLoading: Signal<boolean>
}

/** Loads the effect of changes on request. */
export function useAccessEffect(): AccessEffectLoad & {
  readonly load: (changes: readonly PreviewedChange[]) => Promise<void>
} {
  const [data, error] = [useSignal<AccessPreviewed | null>(null), useSignal<unknown>(null)]
  const isLoading = useSignal(false)
  return {
    data,
    error,
    isLoading,
    load: async (changes) => {
      data.value = null
      error.value = null
      isLoading.value = true
      try {
        data.value = await loadAccessEffect(changes)
      } catch (failure) {
        error.value = failure
      } finally {
        isLoading.value = false
      }
    },
  }
}

/** Shows which pairs would gain or lose access through changes, as computed by the controller. */
export function AccessPreview({ changes }: { readonly changes: readonly PreviewedChange[] }) {
  const effect = useLoadedData(JSON.stringify(changes), (signal) =>
    loadAccessEffect(changes, signal),
  )
  return <AccessEffectResult effect={effect} />
}

/** Shows the effect, or why it is not known. */
export function AccessEffectResult({ effect }: { readonly effect: AccessEffectLoad }) {
  const { preview } = texts
  if (effect.error.value !== null)
    return <Notice tone="warn">{preview.failed(failureText(effect.error.value))}</Notice>
  const { value: found } = effect.data
  if (found === null) {
    return effect.isLoading.value ? <p class="faint small">{preview.loading}</p> : null
  }
  return <AccessEffect found={found} />
}

/** The pairs that gain or lose access. */
export function AccessEffect({ found }: { readonly found: AccessPreviewed }) {
  const { preview } = texts
  return (
    <section class="preview" aria-label={preview.title}>
      <h3>{preview.title}</h3>
      {found.pagination.totalCount === 0 && found.postureChangesCount === 0 ? (
        <p class="soft small">{preview.none}</p>
      ) : (
        <>
          <Numbers counts={found.counts} />
          <ul class="preview-rows">
            {sortByName(found.rows, effectOrder).map((row, at) => (
              <li key={at} class={row.change}>
                {rowText(row)}
              </li>
            ))}
          </ul>
          {found.pagination.totalCount > found.rows.length ? (
            <p class="faint small">
              {preview.more(found.pagination.totalCount - found.rows.length)}
            </p>
          ) : null}
          {found.postureChangesCount === 0 ? null : (
            <p class="small">{preview.posture(found.postureChangesCount)}</p>
          )}
        </>
      )}
    </section>
  )
}

function Numbers({ counts }: { readonly counts: AccessPreviewed['counts'] }) {
  const { preview } = texts
  const shown = (['dial', 'bind', 'router', 'serviceRouter'] as const).flatMap((right) => {
    const of = counts[right]
    return of === null || of.given + of.taken === 0 ? [] : [{ right, ...of }]
  })
  return (
    <p class="row">
      {shown.map(({ right, given, taken }) => (
        <span class="badge" key={right}>
          {preview.counts(preview.names[right], given, taken)}
        </span>
      ))}
    </p>
  )
}

/** Sorts by the identity or service that gains or loses access, and then by the other side. */
function effectOrder({ identity, service, router }: AccessPreviewed['rows'][number]): string {
  return [identity, service, router]
    .map((one) => (one === null ? '' : recordReferenceText(one)))
    .join('\n')
}

function rowText({
  right,
  change,
  identity,
  service,
  router,
}: AccessPreviewed['rows'][number]): string {
  const { preview } = texts
  const nameOf = (one: AccessPreviewedPostureChangesPolicy | null): string =>
    one === null ? '?' : recordReferenceText(one)
  const who = right === 'serviceRouter' ? service : identity
  const what = right === 'dial' || right === 'bind' ? service : router
  return preview.row(change, nameOf(who), preview.rights[change][right], nameOf(what))
}
