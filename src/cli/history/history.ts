import { usageFailure } from '../../controller/command-failure.ts'
import { parseDuration } from '../../lib/text/duration.ts'
import { printableValue } from '../../lib/text/terminal-text.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import {
  type PreviewResponse,
  previewResponseShape,
  accessPreviewText,
} from '../access/preview-response.ts'
import {
  unknownShape,
  booleanShape,
  listShape,
  nullableShape,
  numberShape,
  objectShape,
  type ShapeCheck,
  textShape,
} from '../client/response-shape.ts'
import type { ApiClient } from '../client/api-client.ts'
import { openContextClient, type ContextOptions } from '../client/context-client.ts'
import { findKind } from '../records/kinds.ts'
import { formatTable, printJson, printLine, printNote } from '../terminal/output.ts'

export interface HistoryOptions extends ContextOptions {
  readonly actor?: string
  readonly action?: string
  readonly since?: string
  readonly until?: string
  readonly limit?: number
  readonly all?: boolean
  readonly undo?: number
  readonly dryRun?: boolean
}

interface ChangedRecord {
  readonly kind: string
  readonly id: string
  readonly name: string
  readonly before: JsonObject | null
  readonly after: JsonObject | null
  readonly isPartial: boolean
}

interface HistoryEntry {
  readonly index: number
  readonly at: string
  readonly actor: { readonly id: string; readonly name: string }
  readonly action: string
  readonly entity: string
  readonly entityId: string
  readonly entityName: string
  readonly fields: readonly string[]
  readonly outcome: string
  readonly changeState: string
  readonly changes: readonly ChangedRecord[]
  readonly omittedChanges: number
}

interface UndoPreview {
  readonly entry: HistoryEntry
  readonly changes: readonly ChangedRecord[]
  readonly omittedChanges: number
  readonly access: PreviewResponse | null
  readonly version: string
}

const values = unknownShape as ShapeCheck<JsonObject | null>

const changedRecord = objectShape<ChangedRecord>({
  kind: textShape,
  id: textShape,
  name: textShape,
  before: values,
  after: values,
  isPartial: booleanShape,
})

const historyEntry = objectShape<HistoryEntry>({
  index: numberShape,
  at: textShape,
  actor: objectShape({ id: textShape, name: textShape }),
  action: textShape,
  entity: textShape,
  entityId: textShape,
  entityName: textShape,
  fields: listShape(textShape),
  outcome: textShape,
  changeState: textShape,
  changes: listShape(changedRecord),
  omittedChanges: numberShape,
})

const undoPreview = objectShape<UndoPreview>({
  entry: historyEntry,
  changes: listShape(changedRecord),
  omittedChanges: numberShape,
  access: nullableShape(previewResponseShape),
  version: textShape,
})

const LIMIT = 50
const PAGE = 500

/** Prints entries of the change history, or undoes one of them. */
export async function showOrUndoHistory(
  kindWord: string | undefined,
  name: string | undefined,
  options: HistoryOptions,
): Promise<void> {
  const { undo, dryRun = false } = options
  if (undo === undefined && dryRun) throw usageFailure('--dry-run belongs to --undo ENTRY')
  if (undo !== undefined) {
    if (kindWord !== undefined) {
      throw usageFailure('--undo takes the number of an entry, and no kind or name')
    }
    await undoEntry(openContextClient(options), undo, options)
    return
  }
  const query = queryOf(kindWord, name, options)
  const { entries, total } = await readEntries(
    openContextClient(options),
    query,
    options.limit ?? LIMIT,
  )
  if (options.json === true) {
    printJson(entries)
    return
  }
  printLine(historyTable(entries))
  if (entries.length < total && options.limit === undefined) {
    printNote(`flotilla: ${entries.length} of ${total}; --limit shows more`)
  }
}

function queryOf(
  kindWord: string | undefined,
  name: string | undefined,
  { actor, action, since, until, all }: HistoryOptions,
): URLSearchParams {
  const kind = kindWord === undefined ? undefined : findKind(kindWord).id
  const given = {
    kind,
    record: name,
    actor,
    action,
    since: timeOf('--since', since),
    until: timeOf('--until', until),
    all: all === true ? 'true' : undefined,
  }
  const query = new URLSearchParams()
  for (const [key, value] of Object.entries(given)) if (value !== undefined) query.set(key, value)
  return query
}

/** @throws {CommandFailure} exit 2 if the text is not a time. */
function timeOf(option: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const days = /^([0-9]{1,4})d$/.exec(text)?.[1]
  const ageMs = days === undefined ? parseDuration(text) : Number(days) * 86_400_000
  const ms = ageMs === null ? Date.parse(text) : Date.now() - ageMs
  if (Number.isNaN(ms) || Math.abs(ms) > 8.64e15) {
    throw usageFailure(
      `${option} ${text}: expected a time such as 2026-11-28T10:00:00Z, or an age such as 24h or 7d`,
    )
  }
  return new Date(ms).toISOString()
}

async function readEntries(
  client: ApiClient,
  query: URLSearchParams,
  limit: number,
): Promise<{ readonly entries: readonly HistoryEntry[]; readonly total: number }> {
  const entries: HistoryEntry[] = []
  for (;;) {
    query.set('limit', String(Math.min(PAGE, limit - entries.length)))
    query.set('offset', String(entries.length))
    const path = `/history?${query.toString()}`
    const { data, meta } = await client.ask({ method: 'GET', path }, listShape(historyEntry))
    entries.push(...data)
    const total = meta.pagination?.totalCount ?? entries.length
    if (data.length === 0 || entries.length >= Math.min(limit, total)) return { entries, total }
  }
}

function historyTable(entries: readonly HistoryEntry[]): string {
  const rows = entries.map((entry) => [
    String(entry.index),
    entry.at,
    entry.actor.name || entry.actor.id,
    entry.action,
    entry.entity,
    entry.entityName || entry.entityId,
    changeSummary(entry),
  ])
  return formatTable(['entry', 'at', 'actor', 'action', 'kind', 'name', 'change'], rows)
}

const CHANGE_CHARACTERS_MAX = 100

const notKept: Readonly<Record<string, string>> = {
  TOO_LARGE: '(too large to keep)',
  DROPPED: '(no longer kept)',
}

function changeSummary(entry: HistoryEntry): string {
  const { outcome, changeState, changes, fields } = entry
  if (outcome !== 'done') return outcome
  const main = changes.find(({ id }) => id === entry.entityId)
  const others = changes.length + entry.omittedChanges - (main === undefined ? 0 : 1)
  const more = others > 0 ? ` (+${others} records)` : ''
  const own =
    main === undefined
      ? [fields.join(', '), notKept[changeState] ?? ''].filter((text) => text !== '').join(' ')
      : fieldTexts(main).join('; ')
  const text = own.length > CHANGE_CHARACTERS_MAX ? `${own.slice(0, CHANGE_CHARACTERS_MAX)}…` : own
  return `${text}${more}`
}

/**
 * `name: "wiki" -> "docs"` for each changed field, none for a creation or deletion; also a note if
 * the change includes a secret.
 */
function fieldTexts({ before, after, isPartial }: ChangedRecord): string[] {
  const hidden = isPartial ? ['(a secret)'] : []
  if (before === null || after === null) return hidden
  const shown = Object.keys(after).map(
    (field) => `${field}: ${valueText(before[field])} -> ${valueText(after[field])}`,
  )
  return [...shown, ...hidden]
}

function valueText(value: Json | undefined): string {
  return JSON.stringify(value ?? null)
}

async function undoEntry(
  client: ApiClient,
  entry: number,
  { dryRun = false, json = false }: HistoryOptions,
): Promise<void> {
  const path = `/history/${entry}/undo`
  const { data: preview } = await client.ask({ method: 'GET', path }, undoPreview)
  if (!dryRun) {
    const body = { version: preview.version }
    await client.ask({ method: 'POST', path, body }, unknownShape)
  }
  if (json) {
    printJson({ isDone: !dryRun, ...preview })
    return
  }
  printLine(undoText(preview))
  printNote(dryRun ? 'flotilla: nothing was written' : `flotilla: entry ${entry} is undone`)
}

function undoText(preview: UndoPreview): string {
  const { changes, omittedChanges, access } = printableValue(preview)
  return [
    ...changes.flatMap(recordLines),
    ...(omittedChanges > 0 ? [`and ${omittedChanges} more records`] : []),
    ...(access === null ? [] : [accessPreviewText(access)]),
  ].join('\n')
}

function recordLines(change: ChangedRecord): string[] {
  const { kind, id, name, before, after } = change
  const verb = before === null ? 'create' : after === null ? 'delete' : 'update'
  const details = fieldTexts(change).map((text) => `  ${text}`)
  return [`${verb} ${kind} ${name || id}`, ...details]
}
