import { type HistoryFields, historyFields } from '../../entities/history-kinds.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { isSameJson, type Json, type JsonObject } from '../../lib/text/canonical-json.ts'
import type { AuditedChange } from '../../ports/audit.ts'
import type { RecordChange } from '../../ports/change-feed.ts'
import { auditLimits, TOO_LARGE_CHANGE } from '../records/audit-line.ts'

const noFields: HistoryFields = { kept: [], withheld: [] }

function isUnset(value: Json | undefined): boolean {
  if (value === undefined || value === null || value === '' || value === false || value === 0) {
    return true
  }
  return typeof value === 'object' && Object.keys(value).length === 0
}

/** All fields of a record that the audit log stores and that have a value. */
export function auditedRecordFields(record: EntityRecord, { kept }: HistoryFields): JsonObject {
  const whole: Record<string, Json> = {}
  for (const name of kept) {
    const value = record[name]
    if (value !== undefined && !isUnset(value)) whole[name] = value
  }
  return whole
}

export function toAuditedChange({ kind, id, before, after }: RecordChange): AuditedChange {
  const fields = historyFields.get(kind) ?? noFields
  const [old, now] = [before as EntityRecord | undefined, after as EntityRecord | undefined]
  const name = String((now ?? old)?.['name'] ?? '')
  const about = { kind, id, name }
  if (old === undefined || now === undefined) {
    const record = old ?? now
    const whole = record === undefined ? {} : auditedRecordFields(record, fields)
    const isPartial = fields.withheld.some((field) => !isUnset(record?.[field]))
    return old === undefined
      ? { ...about, before: null, after: whole, isPartial }
      : { ...about, before: whole, after: null, isPartial }
  }
  const changed = fields.kept.filter((field) => !isSameJson(old[field], now[field]))
  const valuesOf = (record: EntityRecord): JsonObject =>
    Object.fromEntries(changed.map((field) => [field, record[field] ?? null]))
  const isPartial = fields.withheld.some((field) => !isSameJson(old[field], now[field]))
  return { ...about, before: valuesOf(old), after: valuesOf(now), isPartial }
}

/**
 * The changes of one entry as text: a list that begins with the change of the main record, if that
 * record has changed. If some changes do not fit, the list ends with their number; if none fits,
 * the text is `TOO_LARGE_CHANGE`.
 */
export function formatAuditedChanges(changes: readonly RecordChange[], mainId: string): string {
  if (changes.length === 0) return ''
  const main = changes.findIndex(({ id }) => id === mainId)
  const sorted = main <= 0 ? changes : [...changes.slice(main), ...changes.slice(0, main)]
  const texts: string[] = []
  let characters = 0
  for (const change of sorted) {
    const text = JSON.stringify(toAuditedChange(change))
    characters += text.length + 1
    if (characters > auditLimits.changeCharactersMax - RESERVED) break
    texts.push(text)
  }
  if (texts.length === 0) return TOO_LARGE_CHANGE
  const omitted = sorted.length - texts.length
  return `[${texts.join(',')}${omitted === 0 ? '' : `,${omitted}`}]`
}

/** Characters reserved for the brackets and the number of omitted changes. */
const RESERVED = 16
