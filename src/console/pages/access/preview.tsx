import { managementDocument } from '../../app/api-documents.ts'
import { useLoaded } from '../../app/loaded.ts'
import { client } from '../../app/services.ts'
import { MANAGEMENT } from '../../../client/cluster-client.ts'
import { Notice } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { type Ref, refText } from './explain-data.ts'

/** Kinds whose writes change who reaches what, by their collections. */
const previewed: Readonly<Record<string, string>> = {
  identities: 'identity',
  services: 'service',
  'service-policies': 'servicePolicy',
  'edge-router-policies': 'edgeRouterPolicy',
  'service-edge-router-policies': 'serviceEdgeRouterPolicy',
  'posture-checks': 'postureCheck',
  'edge-routers': 'edgeRouter',
}

export function hasEffectOnAccess(collection: string): boolean {
  return Object.hasOwn(previewed, collection)
}

export interface PreviewedChange {
  readonly action: 'create' | 'patch' | 'delete'
  readonly collection: string
  readonly id: string | null
  readonly data: Readonly<Record<string, unknown>> | null
}

interface Counts {
  readonly given: number
  readonly taken: number
}

type Right = 'dial' | 'bind' | 'router' | 'serviceRouter'

interface PreviewRow {
  readonly right: Right
  readonly change: 'given' | 'taken'
  readonly identity: Ref | null
  readonly service: Ref | null
  readonly router: Ref | null
}

interface Preview {
  readonly counts: Readonly<Partial<Record<Right, Counts | null>>>
  readonly rows: readonly PreviewRow[]
  readonly postureChangesCount: number
  readonly totalCount: number
}

const ROWS = 10
const OPERATION = '/access/preview'

/** Null where this controller computes no effects, or the kind has none. */
async function load(change: PreviewedChange, signal: AbortSignal): Promise<Preview | null> {
  const kind = previewed[change.collection]
  const served = await managementDocument()
  const { action, id, data } = change
  // A new router reaches nothing before it has enrolled: its creation is not computed.
  const isNewRouter = kind === 'edgeRouter' && action === 'create'
  if (kind === undefined || isNewRouter || served.operation('post', OPERATION) === null) return null
  const one = { action, kind, ...(id === null ? {} : { id }), ...(data === null ? {} : { data }) }
  const { body } = await client.ask({
    method: 'POST',
    path: `${MANAGEMENT}${OPERATION}?limit=${ROWS}`,
    body: { changes: [one] },
    changesNothing: true,
    timeoutMs: 5_000,
    signal,
  })
  const { data: found } = body as {
    readonly data: Omit<Preview, 'totalCount'> & {
      readonly pagination?: { readonly totalCount: number }
    }
  }
  return {
    counts: found.counts,
    rows: found.rows,
    postureChangesCount: found.postureChangesCount ?? 0,
    totalCount: found.pagination?.totalCount ?? found.rows.length,
  }
}

/** Shows who gains and loses access by a write before it is made; the server computes it. */
export function AccessPreview({ change }: { readonly change: PreviewedChange }) {
  const { preview } = texts
  const loaded = useLoaded(JSON.stringify(change), (signal) => load(change, signal))
  if (loaded.error.value !== null) return <Notice tone="warn">{preview.failed}</Notice>
  const { value: found } = loaded.data
  if (found === null) {
    return loaded.isLoading.value ? <p class="faint small">{preview.loading}</p> : null
  }
  return (
    <section class="preview" aria-label={preview.title}>
      <h3>{preview.title}</h3>
      {found.totalCount === 0 && found.postureChangesCount === 0 ? (
        <p class="soft small">{preview.none}</p>
      ) : (
        <>
          <Numbers counts={found.counts} />
          <ul class="preview-rows">
            {found.rows.map((row, at) => (
              <li key={at} class={row.change}>
                {rowText(row)}
              </li>
            ))}
          </ul>
          {found.totalCount > found.rows.length ? (
            <p class="faint small">{preview.more(found.totalCount - found.rows.length)}</p>
          ) : null}
          {found.postureChangesCount === 0 ? null : (
            <p class="small">{preview.posture(found.postureChangesCount)}</p>
          )}
        </>
      )}
    </section>
  )
}

function Numbers({ counts }: { readonly counts: Preview['counts'] }) {
  const { preview } = texts
  const shown = (['dial', 'bind', 'router', 'serviceRouter'] as const).flatMap((right) => {
    const of = counts[right]
    return of === undefined || of === null || of.given + of.taken === 0 ? [] : [{ right, ...of }]
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

function rowText({ right, change, identity, service, router }: PreviewRow): string {
  const { preview } = texts
  const nameOf = (one: Ref | null): string => (one === null ? '?' : refText(one))
  const who = right === 'serviceRouter' ? service : identity
  const what = right === 'dial' || right === 'bind' ? service : router
  return preview.row(change, nameOf(who), preview.rights[change][right], nameOf(what))
}
