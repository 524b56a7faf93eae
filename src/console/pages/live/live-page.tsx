import { useSignal } from '@preact/signals'

import { Failure, FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { consolePath } from '../../app/navigation.ts'
import { PageHead } from '../../app/page-head.tsx'
import { ConfirmDialog } from '../../app/confirm-dialog.tsx'
import { isReadOnly } from '../../app/console-state.ts'
import { MANAGEMENT_API_PATH } from '../../../client/cluster-client.ts'
import { Button } from '../../controls/button.tsx'
import { EmptyState, Notice, Skeleton } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { RecordCell } from '../records/record-cell.tsx'
import { fieldLabel } from '../records/form-model.ts'
import { useIdentityNames } from '../records/record-names.ts'
import {
  clientIds,
  closeFabricRow,
  closeRow,
  type LiveRow,
  type LiveRows,
  readFabricRows,
  readSessions,
} from './live-data.ts'
import { ClientLink } from './client-link.tsx'
import { circuitPathText } from './circuit-path.ts'

const REFRESH_MS = 3_000

interface LiveTable {
  readonly name: 'api-sessions' | 'sessions' | 'circuits' | 'links'
  readonly columns: readonly string[]
  readonly read: (signal: AbortSignal) => Promise<LiveRows>
  readonly close: ((id: string) => Promise<void>) | null
}

const tables: readonly LiveTable[] = [
  {
    name: 'api-sessions',
    columns: ['identity', 'lastActivityAt', 'ipAddress', 'isMfaComplete', 'createdAt'],
    read: (signal) => readSessions('api-sessions', signal),
    close: (id) => closeRow(`${MANAGEMENT_API_PATH}/api-sessions`, id),
  },
  {
    name: 'sessions',
    columns: ['identityId', 'service', 'type', 'edgeRouters', 'createdAt'],
    read: (signal) => readSessions('sessions', signal),
    close: (id) => closeRow(`${MANAGEMENT_API_PATH}/sessions`, id),
  },
  {
    name: 'circuits',
    columns: ['clientId', 'service', 'path', 'createdAt'],
    read: (signal) => readFabricRows('circuits', signal),
    close: (id) => closeFabricRow('circuits', id),
  },
  {
    name: 'links',
    columns: ['sourceRouter', 'destRouter', 'state', 'cost', 'sourceLatency', 'destLatency'],
    read: (signal) => readFabricRows('links', signal),
    close: null,
  },
]

/** Sessions, circuits and links that are currently open. */
export function LivePage({ name }: { readonly name: string | null }) {
  const { live } = texts
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
              {live.names[one.name]}
            </a>
          ))}
        </nav>
        <Shown key={table.name} table={table} />
      </div>
    </>
  )
}

function Shown({ table }: { readonly table: LiveTable }) {
  const { live } = texts
  const loaded = useLoadedData(`live/${table.name}`, table.read, REFRESH_MS)
  const names = useIdentityNames(clientIds(loaded.data.value?.rows ?? []))
  const closing = useSignal<string | null>(null)
  const { value: page } = loaded.data
  if (page === null && loaded.error.value !== null) {
    return <Failure error={loaded.error.value} retry={loaded.reload} />
  }
  return (
    <>
      <FailureNotice error={loaded.error.value} />
      {page === null || page.silent.length === 0 ? null : (
        <Notice tone="warn">{live.silent(page.silent)}</Notice>
      )}
      <section class="panel" aria-label={live.names[table.name]} aria-busy={page === null}>
        {page === null ? (
          <div class="panel-body">
            <Skeleton />
          </div>
        ) : page.rows.length === 0 ? (
          <EmptyState icon="session" title={live.none[table.name]}>
            <p>{live.noneWhat[table.name]}</p>
          </EmptyState>
        ) : (
          <Table table={table} page={page} names={names} onClose={(id) => (closing.value = id)} />
        )}
      </section>
      {closing.value === null ? null : (
        <CloseDialog
          table={table}
          id={closing.value}
          onClose={() => (closing.value = null)}
          onDone={loaded.reload}
        />
      )}
    </>
  )
}

function Table(props: {
  readonly table: LiveTable
  readonly page: LiveRows
  readonly names: ReadonlyMap<string, string>
  readonly onClose: (id: string) => void
}) {
  const { table, page, names, onClose } = props
  const { live } = texts
  return (
    <>
      <div class="table-wrap" tabIndex={0} role="group" aria-label={texts.table}>
        <table class="table even">
          <thead>
            <tr>
              {table.columns.map((name, at) => (
                <th scope="col" key={name} class={at > 1 ? 'minor' : ''}>
                  {live.columns[name] ?? fieldLabel(name)}
                </th>
              ))}
              {table.close === null ? null : (
                <th scope="col" class="actions">
                  <span class="visually-hidden">{texts.actions}</span>
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {page.rows.map((row) => (
              <tr key={row.id}>
                {table.columns.map((name, at) => {
                  const cell = <LiveCell name={name} row={row} names={names} />
                  return at === 0 ? (
                    <th scope="row" key={name} title={row.id}>
                      {cell}
                    </th>
                  ) : (
                    <td key={name} class={at > 1 ? 'minor' : ''}>
                      {cell}
                    </td>
                  )
                })}
                {table.close === null ? null : (
                  <td class="actions">
                    <Button
                      kind="quiet"
                      refused={isReadOnly.value ? texts.banner.refused : null}
                      onClick={() => onClose(row.id)}
                    >
                      {live.end}
                      <span class="visually-hidden"> {row.id}</span>
                    </Button>
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {page.totalCount > page.rows.length ? (
        <p class="panel-body faint small">
          {texts.picker.count(page.rows.length, page.totalCount)}
        </p>
      ) : null}
    </>
  )
}

const NANOSECONDS_PER_MS = 1_000_000

function LiveCell(props: {
  readonly name: string
  readonly row: LiveRow
  readonly names: ReadonlyMap<string, string>
}) {
  const { name, row, names } = props
  const value = row[name]
  if ((name === 'clientId' || name === 'identityId') && typeof value === 'string') {
    return <ClientLink id={value} name={names.get(value)} />
  }
  if (name === 'path') return <>{circuitPathText(value)}</>
  if (name === 'type' && typeof value === 'string') return <>{texts.cell.rights[value] ?? value}</>
  if (name.endsWith('Latency') && typeof value === 'number') {
    return <>{texts.live.milliseconds(value / NANOSECONDS_PER_MS)}</>
  }
  return <RecordCell name={name} value={value} />
}

function CloseDialog(props: {
  readonly table: LiveTable
  readonly id: string
  readonly onClose: () => void
  readonly onDone: () => void
}) {
  const { live } = texts
  const { table, id, onClose, onDone } = props
  return (
    <ConfirmDialog
      title={live.endTitle[table.name]}
      verb={live.end}
      isDangerous
      run={async () => await table.close?.(id)}
      done={live.ended(id)}
      onClose={onClose}
      onDone={onDone}
    >
      <p class="soft">{live.endWhat[table.name]}</p>
      <p class="mono">{id}</p>
    </ConfirmDialog>
  )
}
