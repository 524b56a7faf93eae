import { useSignal } from '@preact/signals'

import { FailureNotice } from '../../app/failure.tsx'
import { consolePath } from '../../app/navigation.ts'
import { ConfirmDialog } from '../../app/confirm-dialog.tsx'
import { isReadOnly } from '../../app/console-state.ts'
import { visibleText } from '../../app/visible-text.ts'
import { isNarrowWindow } from '../../app/narrow.ts'
import { Button } from '../../controls/button.tsx'
import { Icon } from '../../controls/icon.tsx'
import { Time } from '../../controls/time.tsx'
import { texts } from '../../texts.ts'
import { RecordCell } from '../records/record-cell.tsx'
import { StateBadge } from '../records/record-state.tsx'
import { fieldLabel } from '../records/form-model.ts'
import { isObject } from '../records/json-values.ts'
import { groupCircuits } from './circuit-groups.ts'
import { CircuitPathLinks } from './circuit-path-links.tsx'
import { pathRouters } from './circuit-path.ts'
import { ClientLink } from './client-link.tsx'
import { endRows } from './end-rows.ts'
import { differingColumns } from './live-columns.ts'
import type { LiveDataRow } from './live-row.ts'
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
  /** True: the table offers no button that ends the session of this tab. */
  readonly keepsOwnSession?: boolean
  /** Ends a row; null for rows that cannot be ended. */
  readonly end: ((id: string) => Promise<void>) | null
  /** True: asks for a confirmation, on a page with the rows of all users. */
  readonly asksFirst: boolean
  readonly onEnded: () => void
}

/** Columns that a narrow window shows after the first one. */
const NARROW_COLUMNS: Readonly<Record<LiveTableName, readonly string[]>> = {
  'api-sessions': ['lastActivityAt'],
  sessions: ['service'],
  circuits: ['service'],
  links: ['state', 'latency'],
}

/** A table of open sessions, circuits or links, each with a button that ends it. */
export function LiveTable(props: LiveTableProps) {
  const { name, rows, end, asksFirst, onEnded } = props
  const { live } = texts
  const { shown: columns, same } = differingColumns(rows, props.columns)
  const opened = useSignal<ReadonlySet<string>>(new Set())
  const groups =
    name === 'circuits'
      ? groupCircuits(rows)
      : rows.map((row) => ({ key: row.id, newest: row, rows: [row] }))
  /** The rows about which the dialog asks. */
  const ending = useSignal<readonly LiveDataRow[]>([])
  const error = useSignal<unknown>(null)
  const endNow = (id: string): void => {
    error.value = null
    end?.(id)
      .then(onEnded)
      .catch((failure: unknown) => (error.value = failure))
  }
  const classAt = (at: number): string =>
    at === 0 || NARROW_COLUMNS[name].includes(columns[at] ?? '') ? '' : 'minor'
  return (
    <>
      <FailureNotice error={error.value} />
      <div class="table-wrap" tabIndex={0} role="group" aria-label={live.names[name]}>
        <table class="table even">
          <thead>
            <tr>
              {columns.map((column, at) => (
                <th scope="col" key={column} class={classAt(at)} title={live.titles[column]}>
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
            {groups.flatMap(({ key, newest, rows: members }) => {
              const isOpen = opened.value.has(key)
              const toggle = (): void => {
                const next = new Set(opened.value)
                if (isOpen) next.delete(key)
                else next.add(key)
                opened.value = next
              }
              return (isOpen ? members : [newest]).map((row, place) => (
                <LiveRow
                  {...props}
                  key={row.id}
                  row={row}
                  shownColumns={columns}
                  classAt={classAt}
                  group={
                    members.length === 1 || place > 0
                      ? null
                      : { amount: members.length, isOpen, toggle }
                  }
                  isInGroup={place > 0}
                  onEnd={() => {
                    const ended = isOpen ? [row] : members
                    if (asksFirst || ended.length > 1) ending.value = ended
                    else endNow(row.id)
                  }}
                />
              ))
            })}
          </tbody>
        </table>
      </div>
      <SameValues {...props} same={same} />
      {ending.value.length === 0 || end === null ? null : (
        <EndDialog
          name={name}
          rows={ending.value}
          names={props.names}
          end={end}
          onClose={() => (ending.value = [])}
          onDone={onEnded}
        />
      )}
    </>
  )
}

/** A row, or the newest row of a group with a button that shows the others. */
function LiveRow(
  props: LiveTableProps & {
    readonly row: LiveDataRow
    readonly shownColumns: readonly string[]
    readonly classAt: (at: number) => string
    readonly group: {
      readonly amount: number
      readonly isOpen: boolean
      readonly toggle: () => void
    } | null
    readonly isInGroup: boolean
    readonly onEnd: () => void
  },
) {
  const { row, shownColumns, classAt, group, isInGroup, ownSession, onEnd } = props
  const { live } = texts
  const isOwn = row.id === ownSession
  const hasEnd = !(isOwn && props.keepsOwnSession === true)
  const amount = group === null || group.isOpen ? '' : ` ${group.amount}`
  return (
    <tr class={isInGroup ? 'of-group' : ''}>
      {shownColumns.map((column, at) => {
        const cell = <LiveCell {...props} column={column} row={row} />
        if (at > 0) {
          return (
            <td key={column} class={classAt(at)}>
              {cell}
            </td>
          )
        }
        return (
          <th scope="row" key={column} title={row.id}>
            {cell}
            {isOwn ? <span class="count own-session">{live.ownSession}</span> : null}
            {group === null ? null : (
              <>
                {' '}
                <button
                  type="button"
                  class="chip"
                  aria-expanded={group.isOpen}
                  onClick={group.toggle}
                >
                  <span>{group.isOpen ? live.showOne : live.showEach(group.amount)}</span>
                  <Icon name={group.isOpen ? 'up' : 'down'} size={12} />
                </button>
              </>
            )}
            <NarrowDetails {...props} />
          </th>
        )
      })}
      {props.end === null ? null : (
        <td class="actions">
          {hasEnd ? (
            <Button refused={isReadOnly.value ? texts.banner.refused : null} onClick={onEnd}>
              {isNarrowWindow.value ? <Icon name="close" /> : live.end}
              {amount}
              <span class="visually-hidden">
                {isNarrowWindow.value ? live.end : ''} {liveRowName(row, props.names) ?? row.id}
              </span>
            </Button>
          ) : null}
        </td>
      )}
    </tr>
  )
}

/** Hidden columns that a narrow window shows below the name, to distinguish similar rows. */
const DETAIL_COLUMNS = ['createdAt', 'ipAddress', 'path']

function NarrowDetails(
  props: LiveTableProps & { readonly row: LiveDataRow; readonly shownColumns: readonly string[] },
) {
  const { row, shownColumns } = props
  const isClock = props.keepsOwnSession !== true && isToday(row)
  const details = DETAIL_COLUMNS.filter((column) => shownColumns.includes(column))
  if (!isNarrowWindow.value || details.length === 0) return null
  return (
    <p class="row-summary whole soft">
      {details.map((column) => (
        <span key={column}>
          {column === 'createdAt' ? (
            <>
              {texts.live.opened} <Time at={String(row[column])} isExact isClock={isClock} />
            </>
          ) : (
            <LiveCell {...props} column={column} row={row} />
          )}
        </span>
      ))}
    </p>
  )
}

function isToday({ createdAt }: LiveDataRow): boolean {
  return new Date(String(createdAt)).toDateString() === new Date().toDateString()
}

/** The values that all rows have in the columns that the table leaves out. */
function SameValues(props: LiveTableProps & { readonly same: readonly string[] }) {
  const [row] = props.rows
  const known = props.same.filter((column) => row?.[column] !== undefined)
  if (row === undefined || known.length === 0) return null
  return (
    <p class="panel-body faint small same-values">
      {props.rows.length === 1 ? null : `${texts.live.inAll} `}
      {known.map((column, at) => (
        <span key={column}>
          {at === 0 ? '' : ' · '}
          {texts.live.columns[column] ?? fieldLabel(column)}{' '}
          <LiveCell {...props} column={column} row={row} />
        </span>
      ))}
    </p>
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
    case 'path': {
      const { hostId } = row
      return (
        <>
          <CircuitPathLinks routers={pathRouters(value)} />
          {typeof hostId !== 'string' ? null : (
            <>
              {' → '}
              <ClientLink id={hostId} name={names.get(hostId)} />
            </>
          )}
        </>
      )
    }
    case 'method':
      return (
        <>
          {live.methods[String(value)] ?? '–'}
          {row['isMfaComplete'] === true && row['isMfaRequired'] === true ? (
            <span class="faint"> {live.withFactor}</span>
          ) : null}
        </>
      )
    case 'createdAt':
      // The exact times distinguish the sessions of one user.
      return <Time at={String(value)} isExact={props.keepsOwnSession === true} />
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
  /** One row, or all circuits of a group, the newest first. */
  readonly rows: readonly LiveDataRow[]
  readonly names: ReadonlyMap<string, string>
  readonly end: (id: string) => Promise<void>
  readonly onClose: () => void
  readonly onDone: () => void
}) {
  const { live } = texts
  const { name, rows, names, end, onClose, onDone } = props
  const [row] = rows
  if (row === undefined) return null
  const { ipAddress, createdAt } = row
  const named = liveRowName(row, names)
  const what = rows.length === 1 ? live.one[name] : live.showEach(rows.length)
  return (
    <ConfirmDialog
      title={live.endOf(what, named)}
      verb={rows.length === 1 ? live.end : `${live.end} ${rows.length}`}
      isDangerous
      run={() => endRows(rows, end)}
      done={live.ended(what, named)}
      onClose={onClose}
      onDone={onDone}
    >
      <p class="soft">{rows.length === 1 ? live.endWhat[name] : live.endGroup}</p>
      <p class="soft small">
        {typeof ipAddress === 'string' && ipAddress !== '' ? `${visibleText(ipAddress)}, ` : ''}
        {live.opened} <Time at={String(createdAt)} />
      </p>
    </ConfirmDialog>
  )
}
