import type { Json } from '../../lib/text/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { AuditRecord } from '../../ports/audit.ts'

/**
 * Limits of the audit log. They are constants, not options, because they determine the replicated
 * state: every controller must drop records and changes at the same entry.
 */
export const auditLimits = {
  /**
   * Audit records that the cluster keeps. When there are `blockRecords` more, a block of old
   * records is dropped.
   */
  recordsMax: 100_000,
  /** Maximum age of an audit record in log time, ms. */
  ageMsMax: 30 * 24 * 60 * 60_000,
  /** Maximum audit records per block. A block is stored and hashed as a whole. */
  blockRecords: 64,
  /**
   * If an actor has more than 1/`actorPartMax` of `recordsMax` records, or of
   * `changesCharactersMax` characters of changes, the oldest records or changes of this actor are
   * dropped first.
   */
  actorPartMax: 8,
  /**
   * Maximum names of changed fields in one audit record. The same maximum applies to the list of
   * other writes in the same log entry.
   */
  namesMax: 64,
  /**
   * Maximum characters of one text in an audit record, such as an id or a field name; longer
   * texts are truncated.
   */
  textCharactersMax: 256,
  /** Maximum characters of the changes that are stored for one entry. */
  changeCharactersMax: 16_384,
  /**
   * Maximum characters of all stored changes; above this limit, the oldest changes are dropped.
   */
  changesCharactersMax: 32 * 1024 * 1024,
  /** A block is full once its changes have this many characters. */
  blockChangeCharactersMax: 65_536,
} as const

/** Marks an entry whose change was too large to store. */
export const TOO_LARGE_CHANGE = '"TOO_LARGE"'
/** Marks an entry whose change was stored first and then dropped to free space. */
const DROPPED = '"DROPPED"'
/** JSON contains no raw tab, so a tab separates the change from the rest of its line. */
const CHANGE_MARK = '\t'

export function quoteAuditText(text: string): string {
  return JSON.stringify(text.slice(0, auditLimits.textCharactersMax))
}

function quotedNames(names: readonly string[]): string {
  if (names.length === 0) return '[]'
  return `[${names.slice(0, auditLimits.namesMax).map(quoteAuditText).join(',')}]`
}

/** One line for a record. JSON contains no raw line breaks, so a line break separates records. */
export function formatAuditLine(record: AuditRecord, who: string): string {
  const { index, atMs, action, entity, entityId, fields, also, outcome, reason } = record
  const { entityName, change } = record
  // Action, kind and outcome are names that the program defines, so they need no escaping.
  const what = `"${action}","${entity}",${quoteAuditText(entityId)},"${outcome}"`
  // Few records have a reason. A line without reason and name keeps the format of earlier releases.
  const why = reason === '' && entityName === '' ? '' : `,${quoteAuditText(reason)}`
  const name = entityName === '' ? '' : `,${quoteAuditText(entityName)}`
  const kept = change === '' ? '' : CHANGE_MARK + change
  return `[${index},${atMs},${who},${what},${quotedNames(fields)},${quotedNames(also)}${why}${name}]${kept}`
}

/**
 * Parses a line into its record. The change in the record remains text, because most readers need
 * the changes of only a few records.
 */
export function parseAuditLine(line: string): EntityRecord {
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
export function auditLineActor(line: string): string {
  return ACTOR.exec(line)?.[1] ?? ''
}

export function auditLineIndex(line: string): number {
  return Number(line.slice(1, line.indexOf(',')))
}

export function auditLineTimeMs(line: string): number {
  return Number(line.slice(line.indexOf(',') + 1, line.indexOf(',', line.indexOf(',') + 1)))
}

/** Characters of the change that a line contains; 0 for a line without a change. */
export function auditLineChangeCharacters(line: string): number {
  const end = line.indexOf(CHANGE_MARK)
  if (end < 0 || line.endsWith(DROPPED) || line.endsWith(TOO_LARGE_CHANGE)) return 0
  return line.length - end - 1
}

/** The line with `DROPPED` instead of its change. */
export function removeAuditLineChange(line: string): string {
  if (auditLineChangeCharacters(line) === 0) return line
  return line.slice(0, line.indexOf(CHANGE_MARK) + 1) + DROPPED
}
