import { effect } from '@preact/signals'

import { currentCaller, hasPermission } from '../../app/management-document.ts'
import { consolePath, currentPage } from '../../app/navigation.ts'
import { recordTitle } from '../../app/page-title.ts'
import { visibleText } from '../../app/visible-text.ts'
import type { PickerOption, PickerSuggestions } from '../../controls/picker.tsx'
import type { IconName } from '../../controls/icon-paths.ts'
import { texts } from '../../texts.ts'
import { findKindAtPath } from '../records/kinds.ts'
import { type RecordRow, suggestAttributes, suggestRecords } from '../records/record-data.ts'
import { recordState, recordStates } from '../records/record-state.tsx'
import { type HostCount, hostState, readHostCounts } from '../records/service-hosts.tsx'

/** Kinds in the order of the results; others have no names, or are looked for rarely. */
const searched = [
  'identities',
  'services',
  'edge-routers',
  'service-policies',
  'edge-router-policies',
  'service-edge-router-policies',
  'configs',
  'posture-checks',
  'external-jwt-signers',
  'auth-policies',
  'cas',
]
const ROWS_OF_KIND = 5
const OPTIONS_MAX = 10

/** A page of the console that the user may open. */
export interface SearchablePage {
  readonly title: string
  readonly path: string
  readonly icon: IconName
}

interface Found extends PickerOption {
  readonly name: string
}

/**
 * Pages, tasks, records and role attributes by name; records also by ID. The value of an option is
 * the address that it leads to.
 */
export async function searchConsole(
  pages: readonly SearchablePage[],
  typed: string,
  signal: AbortSignal,
): Promise<PickerSuggestions> {
  const text = typed.trim()
  const isAttribute = text.startsWith('#')
  const word = text.replace(/^#/, '').toLowerCase()
  if (text === '') {
    // The menu beside the dialog has all pages.
    const first = [...openedRecords(), ...tasks()]
    return { options: first.slice(0, OPTIONS_MAX), totalCount: first.length }
  }
  const places = isAttribute ? [] : [...pages.map(pageOption), ...tasks()].filter(has(word))
  const records = isAttribute || word === '' ? [] : await recordsOf(text, signal)
  const attributes = word === '' ? [] : await attributesOf(word, signal)
  const found = [...places, ...records, ...attributes].sort(
    (a, b) => distance(a.name, word) - distance(b.name, word),
  )
  return { options: found.slice(0, OPTIONS_MAX), totalCount: found.length }
}

const has =
  (word: string) =>
  ({ name }: Found): boolean =>
    name.toLowerCase().includes(word)

/** 0 for the typed name itself, 1 for a name that starts with it, and otherwise 2. */
function distance(name: string, word: string): number {
  const lower = name.toLowerCase()
  return lower === word ? 0 : lower.startsWith(word) ? 1 : 2
}

function found(name: string, note: string, value: string, icon: IconName): Found {
  return { name, text: visibleText(name), note, value, icon }
}

function pageOption({ title, path, icon }: SearchablePage): Found {
  return found(title, texts.search.page, path, icon)
}

const OPENED_MAX = 5
/**
 * The records that were opened in this tab, the newest first, with the caller who opened them: the
 * object changes with each log-in.
 */
let opened: readonly (Found & { readonly caller: unknown })[] = []

effect(() => {
  const { value: name } = recordTitle
  const [path = '', id = ''] = currentPage.peek().names
  const kind = findKindAtPath(path)
  const caller = currentCaller.peek()
  if (name === '' || kind === null || id === '') return
  const one = { ...found(name, kind.one, consolePath(path, id), kind.icon), caller }
  opened = [one, ...opened.filter(({ value }) => value !== one.value)].slice(0, OPENED_MAX)
})

function openedRecords(): readonly Found[] {
  return opened.filter(({ caller }) => caller === currentCaller.value)
}

function tasks(): Found[] {
  const { search, wizards, ticket } = texts
  const mayEnroll = hasPermission('identity.create')
  return [
    ...(mayEnroll
      ? (['service', 'identity', 'router', 'import'] as const).map((name) =>
          found(wizards.titles[name], search.task, consolePath('wizards', name), 'wand'),
        )
      : []),
    ...(hasPermission('admin')
      ? [
          found(wizards.titles.signer, search.task, consolePath('wizards', 'signer'), 'wand'),
          found(ticket.title, search.task, `${consolePath('cluster')}?add=controller`, 'wand'),
        ]
      : []),
    found(texts.profile.title, search.page, consolePath('profile'), 'identity'),
  ]
}

function iconOf(path: string): IconName {
  return findKindAtPath(path)?.icon ?? 'dot'
}

async function recordsOf(text: string, signal: AbortSignal): Promise<Found[]> {
  const readable = searched.filter((path) =>
    hasPermission(`${findKindAtPath(path)?.permission}.read`),
  )
  const lists = await Promise.all(
    readable.map(async (path) => {
      const { rows: all } = await suggestRecords(path, text, signal)
      const rows = all.slice(0, ROWS_OF_KIND)
      const hosts = path === 'services' ? await hostsOf(rows, signal) : null
      return rows.map((row) => ({
        ...found(
          String(row['name'] ?? row.id),
          findKindAtPath(path)?.one ?? '',
          consolePath(path, row.id),
          iconOf(path),
        ),
        ...stateOf(path, { ...row, hosts: hosts?.get(row.id) }),
      }))
    }),
  )
  return lists.flat()
}

function stateOf(path: string, row: RecordRow): Pick<PickerOption, 'state'> {
  const name = recordState(path, row)
  const state = name === null ? hostState(row) : recordStates[name]
  return state === null ? {} : { state }
}

/** Errors are ignored: results without a state are better than none. */
async function hostsOf(
  services: readonly RecordRow[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, HostCount> | null> {
  const ids = services.map(({ id }) => id)
  return await readHostCounts(ids, signal).catch(() => null)
}

/** Kinds with role attributes. */
export const kindsWithAttributes = [
  'identities',
  'services',
  'edge-routers',
  'posture-checks',
] as const

async function attributesOf(word: string, signal: AbortSignal): Promise<Found[]> {
  const readable = kindsWithAttributes.filter((path) =>
    hasPermission(`${findKindAtPath(path)?.permission}.read`),
  )
  const lists = await Promise.all(readable.map((path) => suggestAttributes(path, word, signal)))
  return [...new Set(lists.flat())].slice(0, ROWS_OF_KIND).map((name) => ({
    ...found(name, texts.search.attribute, consolePath('attributes', name), 'tag'),
    text: `#${visibleText(name)}`,
  }))
}
