import { useSignal } from '@preact/signals'

import { hasPermission } from '../../app/management-document.ts'
import { Failure, FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { consolePath } from '../../app/navigation.ts'
import { PageHead } from '../../app/page-head.tsx'
import { visibleText } from '../../app/visible-text.ts'
import { Button } from '../../controls/button.tsx'
import { EmptyState, Skeleton } from '../../controls/status.tsx'
import { expiryText } from '../../controls/expiry-input.tsx'
import { texts } from '../../texts.ts'
import { policySentence } from '../records/policy-sentence.ts'
import { formatListState, quoteFilterText } from '../records/filters.ts'
import { type ConsoleKind, findKindAtPath } from '../records/kinds.ts'
import { withRelated } from '../records/list-relations.ts'
import { readRowPage, type RecordRow, type RowPage } from '../records/record-data.ts'
import { recordState, StateBadge } from '../records/record-state.tsx'
import { HostState } from '../records/service-hosts.tsx'

/** The fields of a kind that can contain a role attribute: of its records, or of a policy. */
interface Holder {
  readonly path: string
  readonly fields: readonly string[]
}

const holders: readonly Holder[] = [
  { path: 'identities', fields: ['roleAttributes'] },
  { path: 'services', fields: ['roleAttributes'] },
  { path: 'edge-routers', fields: ['roleAttributes'] },
  { path: 'posture-checks', fields: ['roleAttributes'] },
  { path: 'service-policies', fields: ['identityRoles', 'serviceRoles', 'postureCheckRoles'] },
  { path: 'edge-router-policies', fields: ['identityRoles', 'edgeRouterRoles'] },
  { path: 'service-edge-router-policies', fields: ['serviceRoles', 'edgeRouterRoles'] },
]
/** Maximum records of a kind that are shown at first (`ROWS_MAX`), and on request (`SHOWN_MAX`). */
const ROWS_MAX = 15
const SHOWN_MAX = 100

interface Uses {
  readonly kind: ConsoleKind
  readonly filter: string
  readonly page: RowPage
}

function filterOf({ fields }: Holder, attribute: string): string {
  return fields
    .map((field) => {
      const value = field === 'roleAttributes' ? attribute : `#${attribute}`
      return `anyOf(${field}) = ${quoteFilterText(value)}`
    })
    .join(' or ')
}

async function readUses(
  kind: ConsoleKind,
  filter: string,
  limit: number,
  signal: AbortSignal,
): Promise<RowPage> {
  const state = { typed: `=${filter}`, sort: 'name', isDescending: false, offset: 0, facets: {} }
  const page = await readRowPage(kind.path, state, ['name'], { limit, offset: 0 }, signal)
  return kind.path === 'services' ? await withRelated(kind, page, signal) : page
}

async function load(attribute: string, signal: AbortSignal): Promise<readonly Uses[]> {
  const found = await Promise.all(
    holders.map(async (holder): Promise<Uses[]> => {
      const kind = findKindAtPath(holder.path)
      if (kind === null || !hasPermission(`${kind.permission}.read`)) return []
      const filter = filterOf(holder, attribute)
      return [{ kind, filter, page: await readUses(kind, filter, ROWS_MAX, signal) }]
    }),
  )
  return found.flat().filter(({ page }) => page.totalCount > 0)
}

/** Records that have a role attribute, and the policies that select records by it. */
export function AttributePage({ name }: { readonly name: string | null }) {
  const attribute = name ?? ''
  const loaded = useLoadedData(`attributes/${attribute}`, (signal) => load(attribute, signal))
  const { value: uses } = loaded.data
  const { attributes } = texts
  return (
    <>
      <PageHead
        title={`#${visibleText(attribute)}`}
        lead={uses === null || uses.length === 0 ? attributes.lead : summaryOf(uses)}
      />
      {uses === null ? (
        loaded.error.value === null ? (
          <div class="panel panel-body" aria-busy="true">
            <Skeleton />
          </div>
        ) : (
          <Failure error={loaded.error.value} retry={loaded.reload} />
        )
      ) : uses.length === 0 ? (
        <EmptyState icon="search" title={attributes.none} />
      ) : (
        <div class="columns">
          {uses.map((one) => (
            <UsesPanel key={one.kind.path} {...one} />
          ))}
        </div>
      )}
    </>
  )
}

/** For example `On 18 identities and 2 services; 3 policies select by it.` */
function summaryOf(uses: readonly Uses[]): string {
  const { attributes } = texts
  const isPolicy = ({ kind }: Uses): boolean => kind.path.endsWith('-policies')
  const amounts = uses
    .filter((one) => !isPolicy(one))
    .map(({ kind, page }) => texts.count(page.totalCount, kind.one, kind.many))
  const policies = uses.filter(isPolicy).reduce((sum, { page }) => sum + page.totalCount, 0)
  return attributes.summary(amounts, policies)
}

/** The state of a record in the list; nothing for a kind without states. */
function RowState({ path, row }: { readonly path: string; readonly row: RecordRow }) {
  if (path === 'services') return <HostState row={row} />
  const state = recordState(path, row)
  return state === null ? null : <StateBadge state={state} />
}

/** A sentence about the access that a policy grants; nothing for other kinds. */
function PolicyEffect({ path, row }: { readonly path: string; readonly row: RecordRow }) {
  const sentence = policySentence(path, row, expiryText(row['expiresAt']))
  return sentence === '' ? null : <span class="soft">{sentence}</span>
}

function UsesPanel({ kind, filter, page }: Uses) {
  const all = useSignal<RowPage | null>(null)
  const error = useSignal<unknown>(null)
  const { rows, totalCount } = all.value ?? page
  const showAll = (): void => {
    readUses(kind, filter, SHOWN_MAX, new AbortController().signal)
      .then((found) => (all.value = found))
      .catch((failure: unknown) => (error.value = failure))
  }
  const state = { typed: `=${filter}`, sort: '', isDescending: false, offset: 0, facets: {} }
  const id = `uses-${kind.path}`
  return (
    <section class="panel" aria-labelledby={id}>
      <div class="panel-head">
        <h2 id={id}>{texts.count(totalCount, kind.one, kind.many)}</h2>
        <a href={consolePath(kind.path) + formatListState(state)}>{texts.attributes.open}</a>
      </div>
      <ul class="panel-body uses-list">
        {rows.map((row) => (
          <li key={row.id}>
            <a href={consolePath(kind.path, row.id)}>
              {visibleText(String(row['name'] ?? row.id))}
            </a>{' '}
            <RowState path={kind.path} row={row} />
            <PolicyEffect path={kind.path} row={row} />
          </li>
        ))}
        {all.value === null && totalCount > rows.length ? (
          <li>
            <Button kind="quiet" onClick={showAll}>
              {texts.record.showAll(totalCount, SHOWN_MAX)}
            </Button>
          </li>
        ) : null}
      </ul>
      <FailureNotice error={error.value} />
    </section>
  )
}
