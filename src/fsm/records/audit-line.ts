import type { Json } from '../../lib/text/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { AuditRecord } from '../../ports/audit.ts'

/**
 * Constants and not options, because they are part of the replicated state: every controller must
 * drop records and changes at the same entry.
 */
export const auditLimits = {
  recordsMax: 100_000,
  /** Log time. */
  ageMsMax: 30 * 24 * 60 * 60_000,
  /** Audit records per block. A block is stored, hashed and dropped as a whole. */
  blockRecords: 64,
  /**
   * An actor with more than a fraction (1 / this number) of all records, or of the characters of
   * all changes, loses its own oldest first.
   */
  actorPartMax: 8,
  /** Names of fields, and of other writes of the same entry. */
  namesMax: 64,
  textCharactersMax: 256,
  /** Characters of the kept change of one entry. */
  changeCharactersMax: 16_384,
  /** Characters of all kept changes; beyond it, the oldest changes are dropped. */
  changesCharactersMax: 32 * 1024 * 1024,
  /** A block with that many characters of changes is full. */
  blockChangeCharactersMax: 65_536,
} as const

/** The change of an entry that was too large to keep. */
export const TOO_LARGE = '"TOO_LARGE"'
/** The change of an entry was kept, and dropped later to make room. */
const DROPPED = '"DROPPED"'
/** JSON contains no raw tab, so a tab separates the change from the rest of its line. */
const CHANGE_MARK = '\t'

export function quoted(text: string): string {
  return JSON.stringify(text.slice(0, auditLimits.textCharactersMax))
}

function quotedNames(names: readonly string[]): string {
  if (names.length === 0) return '[]'
  return `[${names.slice(0, auditLimits.namesMax).map(quoted).join(',')}]`
}

/** One line for a record. JSON contains no raw line breaks, so a line break separates records. */
export function auditLine(record: AuditRecord, who: string): string {
  const { index, atMs, action, entity, entityId, fields, also, outcome, reason } = record
  const { entityName, change } = record
  // Names of the program need no escaping.
  const what = `"${action}","${entity}",${quoted(entityId)},"${outcome}"`
  // Few records have a reason; lines without a reason and a name keep their earlier form.
  const why = reason === '' && entityName === '' ? '' : `,${quoted(reason)}`
  const name = entityName === '' ? '' : `,${quoted(entityName)}`
  const kept = change === '' ? '' : CHANGE_MARK + change
  return `[${index},${atMs},${who},${what},${quotedNames(fields)},${quotedNames(also)}${why}${name}]${kept}`
}

/** The record of a line; its change stays text, because most readers need few of them. */
export function lineRecord(line: string): EntityRecord {
  const end = line.indexOf(CHANGE_MARK)
  const head = end < 0 ? line : line.slice(0, end)
  const [index, at, actor, actorName, session, address, action, entity, entityId, ...rest] =
    JSON.parse(head) as Json[]
  const [outcome, fields, also, reason = '', entityName = ''] = rest
  const change = end < 0 ? '' : line.slice(end + 1)
  const atMs = Number(at)
  const base = { id: String(index), createdAt: atMs, updatedAt: atMs, revision: Number(index) }
  const who = { actor, actorName, session, address } as Record<string, Json>
  const what = { action, entity, entityId, entityName, outcome } as Record<string, Json>
  const more = { fields, also, reason, change } as Record<string, Json>
  return { ...base, index: Number(index), at: atMs, ...who, ...what, ...more }
}

const ACTOR = /^\[\d+,\d+,("(?:[^"\\]|\\.)*")/

/** The actor of a line, as stored. */
export function lineActor(line: string): string {
  return ACTOR.exec(line)?.[1] ?? ''
}

export function lineIndex(line: string): number {
  return Number(line.slice(1, line.indexOf(',')))
}

export function lineTime(line: string): number {
  return Number(line.slice(line.indexOf(',') + 1, line.indexOf(',', line.indexOf(',') + 1)))
}

/** Characters of the change that a line keeps; 0 for a line that keeps none. */
export function changeCharacters(line: string): number {
  const end = line.indexOf(CHANGE_MARK)
  if (end < 0 || line.endsWith(DROPPED) || line.endsWith(TOO_LARGE)) return 0
  return line.length - end - 1
}

/** The line with a mark in place of the change that it keeps. */
export function withoutChange(line: string): string {
  if (changeCharacters(line) === 0) return line
  return line.slice(0, line.indexOf(CHANGE_MARK) + 1) + DROPPED
}
