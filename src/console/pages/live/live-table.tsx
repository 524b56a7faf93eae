import { useSignal } from '@preact/signals'

import { FailureNotice } from '../../app/failure.tsx'
import { consolePath } from '../../app/navigation.ts'
import { ConfirmDialog } from '../../app/confirm-dialog.tsx'
import { isReadOnly } from '../../app/console-state.ts'
import { visibleText } from '../../app/visible-text.ts'
import { Button } from '../../controls/button.tsx'
import { Time } from '../../controls/time.tsx'
import { texts } from '../../texts.ts'
import { RecordCell } from '../records/record-cell.tsx'
import { StateBadge } from '../records/record-state.tsx'
import { fieldLabel } from '../records/form-model.ts'
import { isObject } from '../records/json-values.ts'
import { CircuitPathLinks } from './circuit-path-links.tsx'
import { pathRouters } from './circuit-path.ts'
import { ClientLink } from './client-link.tsx'
import type { LiveDataRow } from './live-data.ts'
import { liveRowName } from './live-row-name.ts'

export type LiveTableName = keyof typeof texts.live.names

interface LiveTableProps {
  readonly name: LiveTableName
  readonly rows: readonly LiveDataRow[]
  readonly columns: readonly string[]
  /** Names of identities, by ID. */
  readonly names: ReadonlyMap<string, string>
  /** ID of the API session of this tab. */
  readonly ownSession?: string | null
  /** Ends a row; null for rows that cannot be ended. */
  readonly end: ((id: string) => Promise<void>) | null
  /** True: asks for a confirmation, on a page with the rows of all users. */
  readonly asksFirst: boolean
  readonly onEnded: () => void
}

/** Number of columns after the first one that a narrow window shows, if not one. */
const NARROW_COLUMNS: Readonly<Partial<Record<LiveTableName, number>>> = {
  links: 2,
  circuits: 2,
  sessions: 2,
}

/** Whether all rows have the usual value in a column, so that the table leaves the column out. */
function isUsual(rows: readonly LiveDataRow[], column: string): boolean {
  if (column === 'isMfaComplete') return rows.every((row) => row[column] === true)
  if (column !== 'edgeRouters') return false
  return new Set(rows.map((row) => JSON.stringify(row[column]))).size <= 1
}

/** A table of open sessions, circuits or links, each with a button that ends it. */
export function LiveTable(props: LiveTableProps) {
  const { name, rows, end, asksFirst, onEnded } = props
  const { live } = texts
  const columns = props.columns.filter((column) => !isUsual(rows, column))
  const ending = useSignal<LiveDataRow | null>(null)
  const error = useSignal<unknown>(null)
  const endNow = (id: string): void => {
    error.value = null
    end?.(id)
      .then(onEnded)
      .catch((failure: unknown) => (error.value = failure))
  }
  const classAt = (at: number): string => (at > (NARROW_COLUMNS[name] ?? 1) ? 'minor' : '')
  return (
    <>
      <FailureNotice error={error.value} />
      <div class="table-wrap" tabIndex={0} role="group" aria-label={live.names[name]}>
        <table class="table even">
          <thead>
            <tr>
              {columns.map((column, at) => (
                <th scope="col" key={column} class={classAt(at)}>
                  {live.columns[column] ?? fieldLabel(column)}
                </th>
              ))}
              {end === null ? null : (
                <th scope="col" class="actions">
                  <span class="visually-hidden">{texts.actions}</span>
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.id}>
                {columns.map((column, at) => {
                  const cell = <LiveCell {...props} column={column} row={row} />
                  return at === 0 ? (
                    <th scope="row" key={column} title={row.id}>
                      {cell}
                      {row.id === props.ownSession ? (
                        <span class="faint own-session"> {live.ownSession}</span>
                      ) : null}
                    </th>
                  ) : (
                    <td key={column} class={classAt(at)}>
                      {cell}
                    </td>
                  )
                })}
                {end === null ? null : (
                  <td class="actions">
                    <Button
                      refused={isReadOnly.value ? texts.banner.refused : null}
                      onClick={() => {
                        if (asksFirst) ending.value = row
                        else endNow(row.id)
                      }}
                    >
                      {live.end}
                      <span class="visually-hidden">
                        {' '}
                        {liveRowName(row, props.names) ?? row.id}
                      </span>
                    </Button>
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {ending.value === null || end === null ? null : (
        <EndDialog
          name={name}
          row={ending.value}
          names={props.names}
          end={end}
          onClose={() => (ending.value = null)}
          onDone={onEnded}
        />
      )}
    </>
  )
}

const NANOSECONDS_PER_MS = 1_000_000

function LiveCell(props: LiveTableProps & { readonly column: string; readonly row: LiveDataRow }) {
  const { column, row, names } = props
  const { live } = texts
  const value = row[column]
  switch (column) {
    case 'clientId':
    case 'identityId':
      return <ClientLink id={String(value ?? '')} name={names.get(String(value))} />
    case 'path':
      return <CircuitPathLinks routers={pathRouters(value)} />
    case 'service':
      if (!isObject(value) || typeof value['id'] !== 'string') break
      return (
        <a class="clip" href={consolePath('services', value['id'])}>
          {visibleText(String(value['name'] ?? value['id']))}
        </a>
      )
    case 'type':
      return <>{texts.cell.rights[String(value)] ?? visibleText(String(value))}</>
    case 'edgeRouters':
      return <>{Array.isArray(value) ? live.routersOnline(onlineOf(value), value.length) : '–'}</>
    case 'between':
      return (
        <CircuitPathLinks
          routers={pathRouters({ nodes: [row['sourceRouter'], row['destRouter']] })}
        />
      )
    case 'state':
      return <StateBadge state={row['down'] === true ? 'down' : 'up'} />
    case 'latency':
      return <>{live.latencies(latencyMs(row['sourceLatency']), latencyMs(row['destLatency']))}</>
    default:
  }
  return <RecordCell name={column} value={value} />
}

function onlineOf(routers: readonly unknown[]): number {
  return routers.filter((one) => isObject(one) && one['isOnline'] === true).length
}

function latencyMs(nanoseconds: unknown): number {
  return typeof nanoseconds === 'number' ? nanoseconds / NANOSECONDS_PER_MS : 0
}

function EndDialog(props: {
  readonly name: LiveTableName
  readonly row: LiveDataRow
  readonly names: ReadonlyMap<string, string>
  readonly end: (id: string) => Promise<void>
  readonly onClose: () => void
  readonly onDone: () => void
}) {
  const { live } = texts
  const { name, row, names, end, onClose, onDone } = props
  const { ipAddress, createdAt } = row
  const named = liveRowName(row, names)
  return (
    <ConfirmDialog
      title={named === null ? live.endTitle[name] : live.endOf(live.one[name], named)}
      verb={live.end}
      isDangerous
      run={() => end(row.id)}
      done={live.ended(live.one[name], named)}
      onClose={onClose}
      onDone={onDone}
    >
      <p class="soft">{live.endWhat[name]}</p>
      <p class="soft small">
        {typeof ipAddress === 'string' && ipAddress !== '' ? `${visibleText(ipAddress)}, ` : ''}
        {live.opened} <Time at={String(createdAt)} />
      </p>
    </ConfirmDialog>
  )
}
