import { Failure, FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { consoleApiClient } from '../../app/console-state.ts'
import { MANAGEMENT_API_PATH } from '../../../client/cluster-client.ts'
import { Notice, Skeleton } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import {
  clientIds,
  closeFabricRow,
  closeLiveRow,
  type LiveDataRow,
  readCircuitRows,
} from '../live/live-data.ts'
import { pathRouters } from '../live/circuit-path.ts'
import { withLogInMethods } from '../live/live-relations.ts'
import { LiveTable } from '../live/live-table.tsx'
import { quoteFilterText } from './filters.ts'
import { useIdentityNames } from './record-names.ts'
import { isObject } from './json-values.ts'
import type { ConsoleKind } from './kinds.ts'
import { parseRowPage } from './record-data.ts'

const REFRESH_MS = 3_000
/** Maximum sessions of an identity that are read at the same time, the newest first. */
export const SESSIONS_MAX = 100

interface OpenNow {
  /** Null if the record is not an identity, because only identities have API sessions. */
  readonly sessions: readonly LiveDataRow[] | null
  /** Service sessions in these API sessions; null as above. */
  readonly serviceSessions: readonly LiveDataRow[] | null
  readonly circuits: readonly LiveDataRow[]
  readonly silent: readonly string[]
}

/** Whether a circuit belongs to the client, the service or the router that the page shows. */
export function isCircuitForRecord(collection: string, id: string, circuit: LiveDataRow): boolean {
  const { clientId, service, path } = circuit
  if (collection === 'identities') return clientId === id
  if (collection === 'services') return isObject(service) && service['id'] === id
  return pathRouters(path).some((router) => router.id === id)
}

/** The newest open API sessions of an identity, at most `SESSIONS_MAX`. */
export async function readApiSessions(
  identityId: string,
  signal?: AbortSignal,
): Promise<readonly LiveDataRow[]> {
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

/** The newest service sessions in these API sessions, at most `SESSIONS_MAX`. */
async function readServiceSessions(
  sessions: readonly LiveDataRow[],
  signal: AbortSignal,
): Promise<readonly LiveDataRow[]> {
  if (sessions.length === 0) return []
  const ids = sessions.map(({ id }) => quoteFilterText(id)).join(', ')
  const filter = `apiSession in [${ids}]`
  const query = new URLSearchParams({ limit: String(SESSIONS_MAX), sort: 'createdAt desc', filter })
  const path = `${MANAGEMENT_API_PATH}/sessions?${query}`
  return parseRowPage((await consoleApiClient.ask({ path, signal })).body).rows
}

async function load(kind: ConsoleKind, id: string, signal: AbortSignal): Promise<OpenNow> {
  const [sessions, { rows, silent }] = await Promise.all([
    kind.path === 'identities'
      ? readApiSessions(id, signal).then((rows) => withLogInMethods(rows, signal))
      : null,
    readCircuitRows(signal),
  ])
  const serviceSessions = sessions === null ? null : await readServiceSessions(sessions, signal)
  const circuits = rows.filter((row) => isCircuitForRecord(kind.path, id, row))
  return { sessions, serviceSessions, silent, circuits }
}

/** Open sessions and circuits of a record, each with a button to end it. */
export function RecordSessions({ kind, id }: { readonly kind: ConsoleKind; readonly id: string }) {
  const { live } = texts
  const loaded = useLoadedData(
    `open/${kind.path}/${id}`,
    (signal) => load(kind, id, signal),
    REFRESH_MS,
  )
  const names = useIdentityNames(clientIds(loaded.data.value?.circuits ?? []))
  const { value: open } = loaded.data
  if (open === null) {
    if (loaded.error.value !== null) return <Failure error={loaded.error.value} />
    return (
      <div class="panel panel-body" aria-busy="true">
        <Skeleton />
      </div>
    )
  }
  return (
    <>
      <FailureNotice error={loaded.error.value} />
      {open.silent.length === 0 ? null : <Notice tone="warn">{live.silent(open.silent)}</Notice>}
      {open.sessions === null ? null : (
        <OpenTable
          name="api-sessions"
          rows={open.sessions}
          names={names}
          columns={['lastActivityAt', 'method', 'ipAddress', 'createdAt']}
          end={(row) => closeLiveRow(`${MANAGEMENT_API_PATH}/api-sessions`, row)}
          onEnded={loaded.reload}
        />
      )}
      {open.serviceSessions === null ? null : (
        <OpenTable
          name="sessions"
          rows={open.serviceSessions}
          names={names}
          columns={['service', 'type', 'edgeRouters', 'createdAt']}
          end={(row) => closeLiveRow(`${MANAGEMENT_API_PATH}/sessions`, row)}
          onEnded={loaded.reload}
        />
      )}
      <OpenTable
        name="circuits"
        rows={open.circuits}
        names={names}
        columns={circuitColumns(kind.path)}
        end={(row) => closeFabricRow('circuits', row)}
        onEnded={loaded.reload}
      />
    </>
  )
}

function OpenTable(props: {
  readonly name: 'api-sessions' | 'sessions' | 'circuits'
  readonly rows: readonly LiveDataRow[]
  readonly names: ReadonlyMap<string, string>
  readonly columns: readonly string[]
  readonly end: (id: string) => Promise<void>
  readonly onEnded: () => void
}) {
  const { name, rows } = props
  const { live } = texts
  return (
    <section class="panel" aria-label={live.names[name]}>
      <div class="panel-head">
        <h2>{live.names[name]}</h2>
        <span class="faint small">{rows.length.toLocaleString('en')}</span>
      </div>
      {rows.length === 0 ? (
        <p class="panel-body soft small">{live.none[name]}</p>
      ) : (
        <LiveTable {...props} asksFirst={false} />
      )}
    </section>
  )
}

/** Columns of a record's circuits, without the column that names the record itself. */
function circuitColumns(collection: string): readonly string[] {
  const of = { identities: ['service'], services: ['clientId'] }[collection]
  return [...(of ?? ['clientId', 'service']), 'path', 'createdAt']
}
