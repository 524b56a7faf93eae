import { useSignal } from '@preact/signals'

import { Failure, FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { consolePath } from '../../app/navigation.ts'
import { useCurrentTabInView } from '../../app/current-tab.ts'
import { PageHead } from '../../app/page-head.tsx'
import { MANAGEMENT_API_PATH } from '../../../client/cluster-client.ts'
import { Icon } from '../../controls/icon.tsx'
import { EmptyState, Notice, Skeleton } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { useIdentityNames } from '../records/record-names.ts'
import {
  clientIds,
  closeFabricRow,
  closeLiveRow,
  type LiveDataRow,
  type LiveDataRows,
  readCircuitRows,
  readFabricRows,
  readOwnSessionId,
  readSessions,
} from './live-data.ts'
import { LiveTable, type LiveTableName } from './live-table.tsx'

const REFRESH_MS = 3_000
const COUNTS_REFRESH_MS = 10_000

interface LiveSource {
  readonly name: LiveTableName
  readonly columns: readonly string[]
  /** @param limit maximum rows; only for tables that one controller reads completely. */
  readonly read: (signal: AbortSignal, limit: number) => Promise<LiveDataRows>
  readonly end: ((id: string) => Promise<void>) | null
}

const tables: readonly LiveSource[] = [
  {
    name: 'api-sessions',
    columns: ['identity', 'lastActivityAt', 'method', 'ipAddress', 'createdAt'],
    read: (signal, limit) => readSessions('api-sessions', limit, signal),
    end: (id) => closeLiveRow(`${MANAGEMENT_API_PATH}/api-sessions`, id),
  },
  {
    name: 'sessions',
    columns: ['identityId', 'service', 'type', 'edgeRouters', 'createdAt'],
    read: (signal, limit) => readSessions('sessions', limit, signal),
    end: (id) => closeLiveRow(`${MANAGEMENT_API_PATH}/sessions`, id),
  },
  {
    name: 'circuits',
    columns: ['clientId', 'service', 'path', 'createdAt'],
    read: readCircuitRows,
    end: (id) => closeFabricRow('circuits', id),
  },
  {
    name: 'links',
    columns: ['between', 'state', 'latency', 'cost'],
    read: (signal) => readFabricRows('links', signal),
    end: null,
  },
]

/** Number of links from which on the table of links has a filter. */
const FILTERED_LINKS_MIN = 10
/** Maximum rows of a table that the page loads. */
const ROWS_MAX = 500

/** The number of rows of each table; absent for a table that could not be read. */
async function readCounts(signal: AbortSignal): Promise<ReadonlyMap<LiveTableName, number>> {
  const counts = await Promise.allSettled(
    tables.map(async ({ name, read }) => [name, (await read(signal, 1)).totalCount] as const),
  )
  return new Map(counts.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])))
}

/** Sessions, circuits and links that are currently open. */
export function LivePage({ name }: { readonly name: string | null }) {
  const { live } = texts
  const counts = useLoadedData('live/counts', readCounts, COUNTS_REFRESH_MS)
  useCurrentTabInView(counts.data.value)
  const table = tables.find((one) => one.name === name) ?? tables[0]
  if (table === undefined) return null
  return (
    <>
      <PageHead title={texts.pages.live} lead={live.lead} />
      <div class="stack">
        <nav class="segments" aria-label={live.tables}>
          {tables.map((one) => (
            <a
              key={one.name}
              href={consolePath('live', one.name)}
              aria-current={one === table ? 'page' : undefined}
            >
              {live.names[one.name]} <Count of={counts.data.value?.get(one.name)} />
            </a>
          ))}
        </nav>
        <Shown key={table.name} table={table} />
      </div>
    </>
  )
}

function Count({ of }: { readonly of: number | undefined }) {
  return of === undefined ? null : <span class="faint">{of.toLocaleString('en')}</span>
}

function Shown({ table }: { readonly table: LiveSource }) {
  const { live } = texts
  const loaded = useLoadedData(
    `live/${table.name}`,
    (signal) => table.read(signal, ROWS_MAX),
    REFRESH_MS,
  )
  const own = useLoadedData('own-session', readOwnSessionId)
  const typed = useSignal('')
  // The sessions of tunnels that host services would hide those of people.
  const right = useSignal(table.name === 'sessions' ? 'Dial' : '')
  const names = useIdentityNames(clientIds(loaded.data.value?.rows ?? []))
  const { value: page } = loaded.data
  if (page === null && loaded.error.value !== null) {
    return <Failure error={loaded.error.value} retry={loaded.reload} />
  }
  // A short table of links needs no filter; a field that somebody types into stays.
  const hasFilter =
    table.name !== 'links' || typed.value !== '' || (page?.rows.length ?? 0) >= FILTERED_LINKS_MIN
  const rows = (page?.rows ?? []).filter(
    (row) =>
      containsText(row, names, typed.value) && (right.value === '' || row['type'] === right.value),
  )
  return (
    <>
      <FailureNotice error={loaded.error.value} />
      {page === null || page.silent.length === 0 ? null : (
        <Notice tone="warn">{live.silent(page.silent)}</Notice>
      )}
      <div class="filter">
        {hasFilter ? (
          <div class="filter-input">
            <Icon name="search" />
            <input
              class="input"
              type="search"
              aria-label={live.filter}
              placeholder={live.filter}
              value={typed.value}
              spellcheck={false}
              onInput={({ currentTarget }) => (typed.value = currentTarget.value)}
            />
          </div>
        ) : null}
        {table.name === 'sessions' ? (
          <select
            class="input facet"
            aria-label={live.columns['type']}
            value={right.value}
            onChange={({ currentTarget }) => (right.value = currentTarget.value)}
          >
            <option value="">{texts.list.every(live.columns['type'] ?? '')}</option>
            {Object.entries(texts.cell.rights).map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        ) : null}
        <span class="faint small" role="status">
          {page === null || rows.length === page.totalCount
            ? ''
            : texts.picker.count(rows.length, page.totalCount)}
        </span>
      </div>
      <section class="panel" aria-label={live.names[table.name]} aria-busy={page === null}>
        {page === null ? (
          <div class="panel-body">
            <Skeleton />
          </div>
        ) : page.rows.length === 0 ? (
          <EmptyState icon="session" title={live.none[table.name]}>
            <p>{live.noneWhat[table.name]}</p>
          </EmptyState>
        ) : rows.length === 0 ? (
          <EmptyState icon="search" title={texts.access.noMatch} />
        ) : (
          <LiveTable
            name={table.name}
            rows={rows}
            columns={table.columns}
            names={names}
            ownSession={own.data.value}
            end={table.end}
            asksFirst
            onEnded={loaded.reload}
          />
        )}
      </section>
    </>
  )
}

/** Whether a row contains the typed text, also in the names of its identities. */
function containsText(
  row: LiveDataRow,
  names: ReadonlyMap<string, string>,
  typed: string,
): boolean {
  const text = typed.trim().toLowerCase()
  if (text === '') return true
  const own = clientIds([row]).map((id) => names.get(id) ?? '')
  return `${JSON.stringify(row)} ${own.join(' ')}`.toLowerCase().includes(text)
}
