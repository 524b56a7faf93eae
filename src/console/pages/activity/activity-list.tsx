import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'

import { Failure, FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { currentCaller } from '../../app/management-document.ts'
import { visibleText } from '../../app/visible-text.ts'
import type { AuditDetail } from '../../client/served-types.ts'
import { Button } from '../../controls/button.tsx'
import { Icon } from '../../controls/icon.tsx'
import type { IconName } from '../../controls/icon-paths.ts'
import { Badge, EmptyState, Skeleton } from '../../controls/status.tsx'
import { Expandable } from '../../controls/expandable.tsx'
import { dayText, Time } from '../../controls/time.tsx'
import { pageTexts } from '../../page-texts.ts'
import { texts } from '../../texts.ts'
import { columnLabel, fieldLabel } from '../records/form-model.ts'
import { findKindAtPath } from '../records/kinds.ts'
import { useRecordNames } from '../records/record-names.ts'
import {
  collectionForKind,
  type HistoryQuery,
  isUndoable,
  fetchHistory,
  recordLink,
} from './activity-data.ts'
import { type EntryRun, groupRuns, isEnrollment } from './entry-runs.ts'
import { kindDisplayName, RecordChanges, RecordName } from './record-changes.tsx'
import { UndoDialog } from './undo-dialog.tsx'

const PAGE = 50
const SHOWN_MAX = 500
const REFRESH_MS = 10_000

/** Entries of the history, newest first. Each entry shows its change and offers to undo it. */
export function ActivityList({
  query,
  onDone,
}: {
  readonly query: HistoryQuery
  /** Called after an undo. */
  readonly onDone?: () => void
}) {
  const { activity } = pageTexts
  const limit = useSignal(PAGE)
  const undoing = useSignal<AuditDetail | null>(null)
  const isAdmin = currentCaller.value?.isAdmin === true
  const loaded = useLoadedData(
    `history/${isAdmin}/${JSON.stringify(query)}/${limit.value}`,
    (signal) => fetchHistory(query, isAdmin, limit.value, signal),
    REFRESH_MS,
  )
  // Shows the entries of the last search until the entries of the next search have arrived.
  const last = useRef(loaded.data.value)
  if (loaded.data.value !== null) last.current = loaded.data.value
  const found = last.current
  if (found === null) {
    if (loaded.error.value !== null) return <Failure error={loaded.error.value} />
    return (
      <div class="panel panel-body stack" aria-busy="true">
        <Skeleton width="60%" />
        <Skeleton />
        <Skeleton width="80%" />
      </div>
    )
  }
  return (
    <>
      <FailureNotice error={loaded.error.value} />
      <section class="panel" aria-label={activity.list} aria-busy={loaded.data.value === null}>
        {found.rows.length === 0 ? (
          <EmptyState icon="event" title={activity.none}>
            <p>{activity.noneWhat}</p>
          </EmptyState>
        ) : (
          <ul class="activity-list">
            {groupRuns(found.rows).map((run, at, runs) => (
              <li key={run.first.index}>
                <DayHeading at={run.first.at} before={runs[at - 1]?.first.at} />
                {run.entries.length === 1 ? (
                  <Entry entry={run.first} onUndo={() => (undoing.value = run.first)} />
                ) : (
                  <Run {...run} onUndo={(entry) => (undoing.value = entry)} />
                )}
              </li>
            ))}
          </ul>
        )}
        {found.rows.length === 0 || found.rows.length === found.totalCount ? null : (
          <div class="pages">
            <span class="faint small" role="status">
              {activity.count(found.rows.length, found.totalCount)}
            </span>
            {found.rows.length < Math.min(found.totalCount, SHOWN_MAX) ? (
              <Button kind="quiet" onClick={() => (limit.value += PAGE)}>
                {activity.more}
              </Button>
            ) : null}
          </div>
        )}
      </section>
      {undoing.value === null ? null : (
        <UndoDialog
          entry={undoing.value}
          onClose={() => (undoing.value = null)}
          onDone={() => {
            loaded.reload()
            onDone?.()
          }}
        />
      )}
    </>
  )
}

/** The day of an entry, above the first entry of that day. */
function DayHeading({ at, before }: { readonly at: string; readonly before: string | undefined }) {
  const shown = dayText(at)
  if (before !== undefined && dayText(before) === shown) return null
  return <h2 class="day soft small">{shown}</h2>
}

/**
 * A summary of similar entries, for example `Admin created 3 configs and 2 services, 4 identities
 * enrolled`.
 */
export function RunSummary({ entries }: Pick<EntryRun, 'entries'>) {
  const { activity } = pageTexts
  const others = entries.filter((entry) => !isEnrollment(entry))
  const [first] = others
  // An identity enrolls by creating its first authenticator.
  const enrolled = amountsOf(
    entries
      .filter(isEnrollment)
      .map(({ entity }) => (entity === 'authenticator' ? 'identity' : entity)),
  )
  return (
    <>
      {first === undefined ? null : (
        <>
          <ActorLink actor={first.actor} />{' '}
          {activity.action(first.action, first.outcome !== 'done')}{' '}
          {activity.amounts(amountsOf(others.map(({ entity }) => entity)))}
        </>
      )}
      {first === undefined || enrolled.length === 0 ? '' : ', '}
      {enrolled.length === 0 ? '' : activity.enrolledAmounts(enrolled)}
    </>
  )
}

/** The number of records of each kind, for example `3 configs`. */
function amountsOf(kinds: readonly string[]): readonly string[] {
  return [...new Set(kinds)].map((kind) => {
    const found = findKindAtPath(collectionForKind(kind) ?? '')
    const amount = kinds.filter((one) => one === kind).length
    return texts.count(amount, found?.one ?? kind, found?.many ?? kind)
  })
}

function Run(props: EntryRun & { readonly onUndo: (entry: AuditDetail) => void }) {
  const { first, entries, onUndo } = props
  const { activity } = pageTexts
  return (
    <Expandable
      label={activity.runDetails}
      head={
        <>
          <ActionIcon entry={first} />
          <span class="activity-what">
            <RunSummary entries={entries} />
          </span>
          <span class="activity-time faint">
            <Time at={first.at} isClock />
          </span>
        </>
      }
      body={() =>
        entries.map((one) => <Entry key={one.index} entry={one} onUndo={() => onUndo(one)} />)
      }
    />
  )
}

const actionIcons: Readonly<Record<string, readonly [name: IconName, tone: string]>> = {
  create: ['plus', 'good'],
  patch: ['edit', 'accent'],
  replace: ['edit', 'accent'],
  delete: ['trash', 'bad'],
}

/** The kind of an action as an icon; the words beside it say the same. */
function ActionIcon({ entry: { action, outcome } }: { readonly entry: AuditDetail }) {
  const [name, tone] =
    outcome === 'done' ? (actionIcons[action] ?? ['dot', 'plain']) : (['ban', 'plain'] as const)
  return (
    <span class={`action-icon ${tone}`}>
      <Icon name={name} />
    </span>
  )
}

function Entry({ entry, onUndo }: { readonly entry: AuditDetail; readonly onUndo: () => void }) {
  const { activity } = pageTexts
  const { action, entity, entityId, entityName, outcome, changes, omittedChanges } = entry
  const name = visibleText(entityName === '' ? entityId : entityName)
  return (
    <Expandable
      label={activity.details(
        activity.action(action, outcome !== 'done'),
        kindDisplayName(entity),
        name,
      )}
      head={
        <>
          <ActionIcon entry={entry} />
          <span class="activity-what">
            <ChangeSummary entry={entry} /> <RefusalBadge entry={entry} />
            <span class="activity-fields faint">{fieldNames(entry)}</span>
          </span>
          <span class="activity-time faint">
            <Time at={entry.at} isClock />
          </span>
        </>
      }
      body={() => (
        <>
          <RecordChanges changes={changes} namedId={entityId} />
          {omittedChanges > 0 ? (
            <p class="faint small">{activity.omitted(omittedChanges)}</p>
          ) : null}
          {entry.changeState === 'KEPT' ? null : (
            <p class="soft small">{activity.states[entry.changeState]}</p>
          )}
          <dl class="activity-facts small">
            <Fact name={activity.entry} value={String(entry.index)} />
            <Fact name={activity.at} value={<Time at={entry.at} isExact />} />
            <Fact name={activity.address} value={entry.address} />
            <Fact name={activity.reason} value={visibleText(entry.reason)} />
            <Fact name={activity.code} value={outcome === 'done' ? '' : outcome} />
            <Fact name={activity.also} value={entry.also.join(', ')} />
          </dl>
          {isUndoable(entry) ? (
            <div>
              <Button onClick={onUndo}>{activity.undo.open}</Button>
            </div>
          ) : null}
        </>
      )}
    />
  )
}

/** The actor, the action and the record of a change, with links. */
export function ChangeSummary({ entry }: { readonly entry: AuditDetail }) {
  const { action, entity, entityId, entityName, exists } = entry
  if (isEnrollment(entry)) return <Enrolled entry={entry} />
  const isRefused = entry.outcome !== 'done'
  // The ID of a session, or of a record that was never created, has no meaning for a person.
  const isIdOnly = /^(session|hosted)-/.test(action) || (isRefused && action === 'create')
  return (
    <>
      <ActorLink actor={entry.actor} /> {pageTexts.activity.action(action, isRefused)}{' '}
      {entity === 'controller' ? '' : kindDisplayName(entity)}{' '}
      {entityName !== '' || (entityId !== '' && !isIdOnly) ? (
        <RecordName kind={entity} id={entityId} name={entityName} isLinked={exists} />
      ) : null}
    </>
  )
}

/** The reason of a refusal; nothing for an action that was done. */
export function RefusalBadge({ entry: { outcome } }: { readonly entry: AuditDetail }) {
  if (outcome === 'done') return null
  return <Badge>{pageTexts.activity.refused(outcome)}</Badge>
}

/** An enrollment, with the name of the identity or router that enrolled. */
function Enrolled({ entry }: { readonly entry: AuditDetail }) {
  const { activity } = pageTexts
  const { entity, entityId, entityName, exists } = entry
  const path = collectionForKind(entity) ?? ''
  const known = useRecordNames(entityName === '' && exists ? [{ path, id: entityId }] : [])
  // The title of an authenticator is the name of its identity, and its method in parentheses.
  const title = entityName === '' ? (known.get(`${path}/${entityId}`) ?? '') : entityName
  const [, name = title, method = ''] = /^(.*) \((.*)\)$/s.exec(title) ?? []
  const href = exists ? recordLink(entity, entityId) : null
  return (
    <>
      {name === '' ? (
        activity.device
      ) : href === null ? (
        <strong>{visibleText(name)}</strong>
      ) : (
        <a href={href}>{visibleText(name)}</a>
      )}{' '}
      {activity.enrolled(method)}
    </>
  )
}

function Fact(props: { readonly name: string; readonly value: preact.ComponentChildren }) {
  if (props.value === '') return null
  return (
    <div>
      <dt class="faint">{props.name}</dt>
      <dd>{props.value}</dd>
    </div>
  )
}

const ROUTER_ACTOR = 'router:'

/** Identities and routers have a page; other actors are not linked. */
export function ActorLink({ actor: { id, name } }: { readonly actor: AuditDetail['actor'] }) {
  if (id === '' && name === '') return <span>{pageTexts.activity.somebody}</span>
  if (id.startsWith(ROUTER_ACTOR)) {
    return <RecordName kind="edgeRouter" id={id.slice(ROUTER_ACTOR.length)} name={name} isLinked />
  }
  const isIdentity = !/[: ]/.test(id) && name !== '' && id !== 'bootstrap'
  const href = isIdentity ? recordLink('identity', id) : null
  const text = visibleText((name === '' ? id : name).replace(/^controller:/, ''))
  return href === null ? <strong>{text}</strong> : <a href={href}>{text}</a>
}

const FIELDS_SHOWN = 4

function fieldNames(entry: AuditDetail): string {
  const { action, entity, fields } = entry
  if ((action !== 'patch' && action !== 'replace') || isEnrollment(entry)) return ''
  const kind = findKindAtPath(collectionForKind(entity) ?? '')
  const labels = fields.map((name) => (kind === null ? fieldLabel(name) : columnLabel(kind, name)))
  const more = fields.length - FIELDS_SHOWN
  const shown = labels.slice(0, FIELDS_SHOWN).join(', ')
  return more > 0 ? `${shown}, +${more}` : shown
}
