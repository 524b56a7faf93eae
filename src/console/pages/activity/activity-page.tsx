import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

import { currentCaller, hasPermission } from '../../app/management-document.ts'
import { navigateTo, consolePath, currentPage } from '../../app/navigation.ts'
import { PageHead } from '../../app/page-head.tsx'
import { pageTexts } from '../../page-texts.ts'
import { texts } from '../../texts.ts'
import { EventsPage } from '../events/events-page.tsx'
import { findKindAtPath } from '../records/kinds.ts'
import { isNarrowWindow } from '../../app/narrow.ts'
import { Icon } from '../../controls/icon.tsx'
import { Menu } from '../../controls/menu.tsx'
import {
  emptyHistoryQuery,
  historyKindAtPath,
  historyPaths,
  type HistoryQuery,
} from './activity-data.ts'
import { ActivityList } from './activity-list.tsx'

/** The history of all records, and the events as they happen. */
export function ActivityPage({ name }: { readonly name: string | null }) {
  const { pages } = texts
  const { activity } = pageTexts
  const mayFollow = hasPermission('ops.read')
  const mayRead = historyPaths.some((path) =>
    hasPermission(`${findKindAtPath(path)?.permission}.read`),
  )
  const tab = (name === 'live' && mayFollow) || !mayRead ? 'live' : 'history'
  return (
    <>
      <PageHead title={pages.activity} lead={activity.lead} />
      <div class="stack">
        {mayRead && mayFollow ? (
          <nav class="segments" aria-label={texts.record.tabs}>
            <a href={consolePath('activity')} aria-current={tab === 'history' ? 'page' : undefined}>
              {activity.tabs.history}
            </a>
            <a
              href={consolePath('activity', 'live')}
              aria-current={tab === 'live' ? 'page' : undefined}
            >
              {activity.tabs.live}
            </a>
          </nav>
        ) : null}
        {tab === 'history' ? <History /> : <EventsPage />}
      </div>
    </>
  )
}

function readQuery(): HistoryQuery {
  const { query } = currentPage.value
  const names = Object.keys(emptyHistoryQuery) as readonly (keyof HistoryQuery)[]
  return Object.fromEntries(
    names.map((name) => [name, query.get(name) ?? '']),
  ) as unknown as HistoryQuery
}

/** Pause after the last key press before the typed text is searched for. */
const TYPING_MS = 250

function History() {
  const { activity } = pageTexts
  const query = readQuery()
  const set = (change: Partial<HistoryQuery>): void => {
    const given = Object.entries({ ...readQuery(), ...change }).filter(([, value]) => value !== '')
    const text = new URLSearchParams(given).toString()
    navigateTo(`${consolePath('activity')}${text === '' ? '' : `?${text}`}`, { replaces: true })
  }
  const kinds = historyPaths.flatMap((path) => {
    const kind = findKindAtPath(path)
    const id = historyKindAtPath(path)
    if (kind === null || id === null || !hasPermission(`${kind.permission}.read`)) return []
    return [{ value: id, text: kind.many }]
  })
  const mayReadActors = hasPermission('identity.read')
  const choices = (
    <>
      <Choice
        label={activity.kind}
        value={query.kind}
        options={[{ value: '', text: activity.everyKind }, ...kinds]}
        onChange={(kind) => set({ kind })}
      />
      <Choice
        label={activity.actionLabel}
        value={query.action}
        options={activity.actions}
        onChange={(action) => set({ action })}
      />
      <Choice
        label={activity.range}
        value={query.hours}
        options={activity.ranges}
        onChange={(hours) => set({ hours })}
      />
      {currentCaller.value?.isAdmin === true ? (
        <label class="check">
          <input
            type="checkbox"
            checked={query.all === 'true'}
            onChange={({ currentTarget }) => set({ all: currentTarget.checked ? 'true' : '' })}
          />
          {activity.all}
        </label>
      ) : null}
    </>
  )
  return (
    <>
      <div class="filter">
        <SearchInput
          label={activity.record}
          value={query.record}
          onChange={(record) => set({ record })}
        />
        {mayReadActors ? (
          <SearchInput
            label={activity.actor}
            value={query.actor}
            onChange={(actor) => set({ actor })}
          />
        ) : null}
        {isNarrowWindow.value ? (
          <Menu label={texts.list.filters} icon="filter">
            {choices}
          </Menu>
        ) : (
          choices
        )}
      </div>
      <ActivityList query={query} />
    </>
  )
}

function SearchInput(props: {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
}) {
  const { label, value, onChange } = props
  const typed = useSignal(value)
  useEffect(() => {
    if (typed.value === value) return undefined
    const timer = setTimeout(() => onChange(typed.value.trim()), TYPING_MS)
    return () => clearTimeout(timer)
  }, [typed.value])
  return (
    <div class="filter-input">
      <Icon name="search" />
      <input
        class="input"
        type="search"
        aria-label={label}
        placeholder={label}
        value={typed.value}
        onInput={({ currentTarget }) => (typed.value = currentTarget.value)}
      />
    </div>
  )
}

function Choice(props: {
  readonly label: string
  readonly value: string
  readonly options: readonly { readonly value: string; readonly text: string }[]
  readonly onChange: (value: string) => void
}) {
  return (
    <select
      class="input facet"
      aria-label={props.label}
      value={props.value}
      onChange={({ currentTarget }) => props.onChange(currentTarget.value)}
    >
      {props.options.map(({ value, text }) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  )
}
