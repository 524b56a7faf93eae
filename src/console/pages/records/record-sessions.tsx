import { useSignal } from '@preact/signals'

import { Failure, FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { consolePath } from '../../app/navigation.ts'
import { consoleApiClient, isReadOnly } from '../../app/console-state.ts'
import { MANAGEMENT_API_PATH } from '../../../client/cluster-client.ts'
import { Button } from '../../controls/button.tsx'
import { EmptyState, Notice, Skeleton } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { ClientLink } from '../live/client-link.tsx'
import {
  clientIds,
  closeFabricRow,
  closeRow,
  type LiveRow,
  readFabricRows,
} from '../live/live-data.ts'
import { pathRouters, circuitPathText } from '../live/circuit-path.ts'
import { RecordCell } from './record-cell.tsx'
import { quoteFilterText } from './filters.ts'
import { useIdentityNames } from './record-names.ts'
import { isObject } from './json-values.ts'
import type { Kind } from './kinds.ts'
import { parseRowPage } from './record-data.ts'

const REFRESH_MS = 3_000
const SESSIONS_MAX = 100

interface OpenNow {
  /** Null if the record is not an identity, because only identities have API sessions. */
  readonly sessions: readonly LiveRow[] | null
  readonly circuits: readonly LiveRow[]
  readonly silent: readonly string[]
}

/** Whether a circuit belongs to the client, the service or the router that the page shows. */
export function isCircuitForRecord(collection: string, id: string, circuit: LiveRow): boolean {
  const { clientId, service, path } = circuit
  if (collection === 'identities') return clientId === id
  if (collection === 'services') return isObject(service) && service['id'] === id
  return pathRouters(path).some((router) => router.id === id)
}

/** Open API sessions of an identity. */
export async function readApiSessions(
  identityId: string,
  signal?: AbortSignal,
): Promise<readonly LiveRow[]> {
  const query = new URLSearchParams({
    limit: String(SESSIONS_MAX),
    sort: 'createdAt desc',
    filter: `identity = ${quoteFilterText(identityId)}`,
  })
  const path = `${MANAGEMENT_API_PATH}/api-sessions?${query}`
  return parseRowPage(
    (await consoleApiClient.ask({ path, ...(signal === undefined ? {} : { signal }) })).body,
  ).rows
}

async function load(kind: Kind, id: string, signal: AbortSignal): Promise<OpenNow> {
  const [sessions, { rows, silent }] = await Promise.all([
    kind.path === 'identities' ? readApiSessions(id, signal) : null,
    readFabricRows('circuits', signal),
  ])
  const circuits = rows.filter((row) => isCircuitForRecord(kind.path, id, row))
  return { sessions, silent, circuits }
}

/** Open sessions and circuits of a record, each with a button to end it. */
export function RecordSessions({ kind, id }: { readonly kind: Kind; readonly id: string }) {
  const { live } = texts
  const loaded = useLoadedData(
    `open/${kind.path}/${id}`,
    (signal) => load(kind, id, signal),
    REFRESH_MS,
  )
  const names = useIdentityNames(clientIds(loaded.data.value?.circuits ?? []))
  const error = useSignal<unknown>(null)
  const { value: open } = loaded.data
  if (open === null) {
    if (loaded.error.value !== null) return <Failure error={loaded.error.value} />
    return (
      <div class="panel panel-body" aria-busy="true">
        <Skeleton />
      </div>
    )
  }
  const end = (ending: Promise<void>): void => {
    error.value = null
    ending.then(loaded.reload).catch((failure: unknown) => (error.value = failure))
  }
  return (
    <>
      <FailureNotice error={error.value ?? loaded.error.value} />
      {open.silent.length === 0 ? null : <Notice tone="warn">{live.silent(open.silent)}</Notice>}
      {open.sessions === null ? null : (
        <OpenTable
          name="api-sessions"
          rows={open.sessions}
          names={names}
          columns={['ipAddress', 'isMfaComplete', 'lastActivityAt', 'createdAt']}
          onEnd={(row) => end(closeRow(`${MANAGEMENT_API_PATH}/api-sessions`, row))}
        />
      )}
      <OpenTable
        name="circuits"
        rows={open.circuits}
        names={names}
        columns={circuitColumns(kind.path)}
        onEnd={(row) => end(closeFabricRow('circuits', row))}
      />
    </>
  )
}

function OpenTable(props: {
  readonly name: 'api-sessions' | 'circuits'
  readonly rows: readonly LiveRow[]
  readonly names: ReadonlyMap<string, string>
  readonly columns: readonly string[]
  readonly onEnd: (id: string) => void
}) {
  const { name, rows, names, columns, onEnd } = props
  const { live } = texts
  const title = live.names[name]
  return (
    <section class="panel" aria-label={title}>
      <div class="panel-head">
        <h2>{title}</h2>
        <span class="faint small">{rows.length.toLocaleString('en')}</span>
      </div>
      {rows.length === 0 ? (
        <EmptyState icon="session" title={live.none[name]} />
      ) : (
        <div class="table-wrap" tabIndex={0} role="group" aria-label={title}>
          <table class="table even">
            <thead>
              <tr>
                {columns.map((column) => (
                  <th scope="col" key={column}>
                    {live.columns[column] ?? column}
                  </th>
                ))}
                <th scope="col" class="actions">
                  <span class="visually-hidden">{texts.actions}</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.id}>
                  {columns.map((column) => (
                    <td key={column}>
                      <OpenCell row={row} column={column} names={names} />
                    </td>
                  ))}
                  <td class="actions">
                    <Button
                      kind="quiet"
                      refused={isReadOnly.value ? texts.banner.refused : null}
                      onClick={() => onEnd(row.id)}
                    >
                      {live.end}
                      <span class="visually-hidden"> {row.id}</span>
                    </Button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}

/** Columns of a record's circuits, without the column that names the record itself. */
function circuitColumns(collection: string): readonly string[] {
  const of = { identities: ['service'], services: ['clientId'] }[collection]
  return [...(of ?? ['clientId', 'service']), 'path', 'createdAt']
}

function OpenCell(props: {
  readonly row: LiveRow
  readonly column: string
  readonly names: ReadonlyMap<string, string>
}) {
  const { row, column, names } = props
  const value = row[column]
  if (column === 'clientId' && typeof value === 'string') {
    return <ClientLink id={value} name={names.get(value)} />
  }
  if (column === 'path') return <>{circuitPathText(value)}</>
  if (column === 'service' && isObject(value) && typeof value['id'] === 'string') {
    return <a href={consolePath('services', value['id'])}>{String(value['name'] ?? value['id'])}</a>
  }
  return <RecordCell name={column} value={value} />
}
