import { currentCaller, hasPermission, loadCaller } from '../../app/management-document.ts'
import { Failure, FailureNotice } from '../../app/failure.tsx'
import { lazyComponent } from '../../app/lazy.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { consolePath } from '../../app/navigation.ts'
import { PageHead } from '../../app/page-head.tsx'
import { LinkButton } from '../../controls/button.tsx'
import { Icon } from '../../controls/icon.tsx'
import { visibleText } from '../../app/visible-text.ts'
import { EmptyState, Notice, Skeleton } from '../../controls/status.tsx'
import { Time } from '../../controls/time.tsx'
import { texts } from '../../texts.ts'
import { fetchClusterStatus } from '../cluster/cluster-requests.ts'
import { AlarmList, ClusterHealthPanel } from '../cluster/cluster-health-panel.tsx'
import { formatListState } from '../records/filters.ts'
import { isObject } from '../records/json-values.ts'
import { findKindAtPath } from '../records/kinds.ts'
import type { RecordRow } from '../records/record-data.ts'
import { StateBadge } from '../records/record-state.tsx'
import { rowTitle } from '../records/row-title.ts'
import { TopServices } from '../traffic/top-services.tsx'
import {
  type RecordCount,
  type FoundAttentionItem,
  readRecordCounts,
  readAttentionItems,
} from './attention-items.ts'

const REFRESH_MS = 10_000

/**
 * Overview of the network: what needs attention, the number of records of each kind, and the health
 * of the cluster.
 */
export function HomePage() {
  const { home } = texts
  const loaded = useLoadedData(
    'home',
    async (signal) => {
      await loadCaller()
      const [matters, amounts] = await Promise.all([
        readAttentionItems(signal),
        readRecordCounts(signal),
      ])
      return { matters, amounts }
    },
    REFRESH_MS,
  )
  const { value: shown } = loaded.data
  const isKnown = currentCaller.value !== null
  if (shown === null && loaded.error.value !== null) {
    return (
      <>
        <PageHead title={texts.pages.home} />
        <Failure error={loaded.error.value} retry={loaded.reload} />
      </>
    )
  }
  if (shown !== null && shown.amounts.length === 0 && !hasPermission('admin')) return <NoRights />
  return (
    <>
      <PageHead title={texts.pages.home} lead={home.lead} />
      <div class="stack">
        <FailureNotice error={loaded.error.value} />
        <Attention matters={shown?.matters ?? null} />
        <Amounts amounts={shown?.amounts ?? null} />
        {hasNoService(shown?.amounts) ? (
          <StartHere />
        ) : isKnown && hasPermission('service.read') ? (
          <TopServices />
        ) : null}
        {isKnown && hasPermission('admin') ? <ClusterCard /> : null}
      </div>
    </>
  )
}

const StartHere = lazyComponent(() => import('./start-here.tsx').then((one) => one.StartHere))

/** Whether the network offers nothing yet. */
function hasNoService(amounts: readonly RecordCount[] = []): boolean {
  return amounts.some(({ kind, all }) => kind === 'services' && all === 0)
}

/** Message for a caller that may not read any of the kinds on this page. */
function NoRights() {
  const { home } = texts
  return (
    <>
      <PageHead title={texts.pages.home} />
      <EmptyState icon="identity" title={home.noRights}>
        <p class="soft">{home.noRightsWhat}</p>
        <LinkButton href={consolePath('profile')}>{texts.profile.title}</LinkButton>
      </EmptyState>
    </>
  )
}

function Attention({ matters }: { readonly matters: readonly FoundAttentionItem[] | null }) {
  const { home } = texts
  return (
    <section class="panel" aria-labelledby="attention" aria-busy={matters === null}>
      <div class="panel-head">
        <h2 id="attention">{home.attention}</h2>
      </div>
      {matters === null ? (
        <div class="panel-body stack">
          <Skeleton width="60%" />
          <Skeleton width="40%" />
        </div>
      ) : null}
      {matters?.length === 0 ? (
        <div class="panel-body">
          <Notice tone="good">{home.nothing}</Notice>
        </div>
      ) : null}
      <ul class="matters">
        {(matters ?? []).map((matter) => (
          <MatterRow key={`${matter.kind} ${matter.option}`} matter={matter} />
        ))}
      </ul>
    </section>
  )
}

function MatterRow({ matter }: { readonly matter: FoundAttentionItem }) {
  const { kind, facet, option, page, typed, state: name, since, title } = matter
  const state = { typed, sort: '', isDescending: false, offset: 0 }
  const list =
    consolePath(kind) +
    formatListState({ ...state, facets: typed === '' ? { [facet]: option } : {} })
  const others = page.totalCount - page.rows.length
  return (
    <li>
      <StateBadge state={name} />
      <div>
        <a class="matter" href={list}>
          {title(page.totalCount)}
        </a>
        <div class="cell-sub">
          {page.rows.map((row, at) => (
            <span key={row.id}>
              {at === 0 ? '' : ', '}
              <a href={consolePath(kind, row.id)}>{nameOf(row)}</a>
              <Since at={since === null ? null : row[since]} prefix={matter.sincePrefix ?? ''} />
            </span>
          ))}
          {others > 0 ? ` ${texts.preview.more(others)}` : ''}
        </div>
      </div>
    </li>
  )
}

function Since({ at, prefix }: { readonly at: unknown; readonly prefix: string }) {
  if (typeof at !== 'string') return null
  return (
    <span class="faint">
      {` ${prefix}`}
      <Time at={at} />
    </span>
  )
}

/** The name of a record; for an enrollment, the name of its identity or router. */
function nameOf(row: RecordRow): string {
  const owner = [row['identity'], row['edgeRouter']].find(isObject)?.['name']
  return typeof owner === 'string' ? visibleText(owner) : rowTitle(row)
}

function Amounts({ amounts }: { readonly amounts: readonly RecordCount[] | null }) {
  const { home } = texts
  if (amounts === null) return null
  return (
    <ul class="amounts">
      {amounts.map(({ kind, all, states }) => (
        <li class="panel" key={kind}>
          <a href={consolePath(kind)}>
            <span class="amount-label">
              <Icon name={findKindAtPath(kind)?.icon ?? 'dot'} />
              {findKindAtPath(kind)?.many}
            </span>
            <span class="amount">{all.toLocaleString('en')}</span>
            <span class="faint small">{home.states(states)}</span>
          </a>
        </li>
      ))}
    </ul>
  )
}

/** Shows how many failures the cluster tolerates, and its alarms. */
function ClusterCard() {
  const status = useLoadedData('status', fetchClusterStatus, REFRESH_MS)
  const { value: shown } = status.data
  if (shown === null) return <FailureNotice error={status.error.value} />
  return (
    <>
      <ClusterHealthPanel status={shown} isBrief>
        <LinkButton href={consolePath('cluster')}>{texts.home.toCluster}</LinkButton>
      </ClusterHealthPanel>
      <AlarmList status={shown} />
    </>
  )
}
