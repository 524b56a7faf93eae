import { toKebabCase } from '../../entities/define-entity.ts'
import {
  CommandFailure,
  EXIT_FAILED,
  EXIT_USAGE,
  usageFailure,
} from '../../controller/command-failure.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'
import { unknownShape, validateResponse } from '../client/response-shape.ts'
import type { ApiResponse, ApiClient, ApiRequest } from '../client/api-client.ts'
import { openContextClient, type ContextOptions } from '../client/context-client.ts'
import { ApiRefusal } from '../client/api-refusal.ts'
import { printJson, printLine, printNote } from '../terminal/output.ts'
import { promptLine, isInteractive } from '../terminal/prompt.ts'
import { type ChangeArguments, bodyFromArguments } from './bodies.ts'
import { missingFields } from './body-members.ts'
import { findReferencingRecordNames } from './referencing-records.ts'
import {
  type RecordKind,
  findKind,
  requireRecordOperation,
  recordPath,
  kindNameInWords,
  withArticle,
} from './kinds.ts'
import { sendKindRequest, RecordNameResolver } from './names.ts'
import {
  createdRecordShape,
  readMemberAt,
  type ApiRecordRow,
  rowShape,
  setMemberAt,
} from './rows.ts'
import { rowName } from './table.ts'
import { parseDurationWord, parseTimeWord } from './time-words.ts'

export interface RecordWriteOptions extends ContextOptions {
  readonly file?: string
  /** Time at which the record expires (`expiresAt`), as a time or as a duration from now. */
  readonly until?: string
  readonly for?: string
}

export interface DeleteOptions extends ContextOptions {
  readonly yes?: boolean
  readonly force?: boolean
}

/** Creates a record from `field=value` words, a file, or both. */
export async function createRecord(
  word: string,
  assignments: readonly string[],
  options: RecordWriteOptions,
): Promise<void> {
  const kind = findKind(word)
  requireRecordOperation(kind, 'create')
  const words = [...assignments, ...endAssignments(kind, options)]
  const { body } = bodyFromArguments(kind, 'create', words, options.file)
  mustBeWhole(kind, body)
  const client = openContextClient(options)
  const label = labelOf(kind, body)
  const id = await sendRecordCreate(
    client,
    kind,
    await new RecordNameResolver(client).resolved(kind, body),
    label,
  )
  if (options.json === true) printJson({ kind: kind.name, id })
  else printLine(`created ${label}, id ${printableLine(id)}`)
}

/**
 * @param body body in which references are ids.
 * @returns the id of the created record.
 */
export async function sendRecordCreate(
  client: ApiClient,
  kind: RecordKind,
  body: JsonObject,
  label: string,
): Promise<string> {
  const request = { method: 'POST', path: `/${kind.plural}`, body } as const
  const { data } = await sendRecordWrite(client, kind, `create ${label}`, request)
  return validateResponse(client.controller, createdRecordShape, data).id
}

/** Changes only the given fields of a record. */
export async function updateRecord(
  word: string,
  name: string,
  assignments: readonly string[],
  options: RecordWriteOptions,
): Promise<void> {
  const kind = findKind(word)
  requireRecordOperation(kind, 'patch')
  const words = [...assignments, ...endAssignments(kind, options)]
  const wanted = bodyFromArguments(kind, 'patch', words, options.file)
  if (Object.keys(wanted.body).length === 0 && wanted.partial.length === 0) {
    throw new CommandFailure(EXIT_USAGE, 'nothing to change; pass FIELD=VALUE, or -f FILE')
  }
  const client = openContextClient(options)
  const names = new RecordNameResolver(client)
  const row = await names.record(kind, name)
  const { id } = row
  const { body, etag } = await wholeValues(client, kind, id, wanted)
  const sent = { ...fieldsRequiredInPatch(kind, row), ...(await names.resolved(kind, body)) }
  const label = `${kindNameInWords(kind.name)} ${printableLine(name)}`
  await sendRecordPatch(client, kind, id, sent, label, etag)
  if (options.json === true) printJson({ kind: kind.name, id })
  else printLine(`updated ${label}`)
}

/** The assignment to `expiresAt` for `--until` or `--for`; none without these options. */
function endAssignments(kind: RecordKind, options: RecordWriteOptions): readonly string[] {
  const { until, for: duration } = options
  if (until === undefined && duration === undefined) return []
  if (until !== undefined && duration !== undefined) {
    throw usageFailure('give --until or --for, not both')
  }
  if (!kind.fields.some(({ name, settable }) => name === 'expiresAt' && settable !== 'never')) {
    const hint = kind.id === 'identity' ? '; use roleAttributesExpireAt.ATTRIBUTE=TIME' : ''
    throw usageFailure(`${withArticle(kindNameInWords(kind.name))} has no end${hint}`)
  }
  const time =
    until === undefined
      ? parseDurationWord('--for', duration ?? '')
      : parseTimeWord('--until', until)
  return [`expiresAt=${time}`]
}

/**
 * The fields, with their current values, that a patch of the record must contain although they
 * cannot change.
 */
export function fieldsRequiredInPatch(kind: RecordKind, row: JsonObject): JsonObject {
  const names = kind.fields.filter(({ isRepeated }) => isRepeated).map(({ name }) => name)
  return Object.fromEntries(names.map((name) => [name, row[name] ?? null]))
}

/**
 * @param body body in which references are IDs.
 * @param etag the patch fails if the record has another ETag; null: the patch is unconditional.
 */
export async function sendRecordPatch(
  client: ApiClient,
  kind: RecordKind,
  id: string,
  body: JsonObject,
  label: string,
  etag: string | null = null,
): Promise<void> {
  const path = recordPath(kind, id, 'patch')
  const headers = etag === null ? {} : { 'if-match': etag }
  await sendRecordWrite(client, kind, `update ${label}`, { method: 'PATCH', path, body, headers })
}

/**
 * Merges the given members into the current value of each map, because a patch replaces a map as a
 * whole. The write fails if the record has changed since the value was read.
 */
async function wholeValues(
  client: ApiClient,
  kind: RecordKind,
  id: string,
  { body, partial }: ChangeArguments,
): Promise<{ readonly body: JsonObject; readonly etag: string | null }> {
  if (partial.length === 0) return { body, etag: null }
  const path = recordPath(kind, id, 'detail')
  const { data, header } = await sendKindRequest(client, kind, { method: 'GET', path }, rowShape)
  let whole = body
  for (const { path: members, value } of partial) {
    const [first = ''] = members
    const held = readMemberAt(whole, [first]) ?? readMemberAt(data, [first]) ?? {}
    whole = setMemberAt({ ...whole, [first]: held }, members, value)
  }
  const etag = header('etag')
  return { body: whole, etag }
}

/**
 * Deletes records, after a confirmation unless the options make it unnecessary. If the API refuses
 * a deletion, the records that were deleted before stay deleted; without JSON output, the command
 * has printed a line for each.
 */
export async function deleteRecords(
  word: string,
  asked: readonly string[],
  options: DeleteOptions,
): Promise<void> {
  const kind = findKind(word)
  requireRecordOperation(kind, 'delete')
  const client = openContextClient(options)
  const names = new RecordNameResolver(client)
  const found: ApiRecordRow[] = []
  for (const name of new Set(asked)) found.push(await names.record(kind, name))
  const losses = options.force === true ? [] : await lossesOf(client, kind, found)
  if (options.force !== true) await mustBeMeant(kind, found, losses, options.yes === true)
  for (const row of found) {
    await sendRecordDelete(
      client,
      kind,
      row.id,
      `${kindNameInWords(kind.name)} ${rowName(kind, row)}`,
    )
    if (options.json !== true)
      printLine(`deleted ${kindNameInWords(kind.name)} ${rowName(kind, row)}`)
  }
  if (options.json === true) printJson(found.map(({ id }) => ({ kind: kind.name, id })))
}

export async function sendRecordDelete(
  client: ApiClient,
  kind: RecordKind,
  id: string,
  label: string,
): Promise<void> {
  const path = recordPath(kind, id, 'delete')
  const { meta } = await sendRecordWrite(client, kind, `delete ${label}`, {
    method: 'DELETE',
    path,
  })
  for (const { entity, ids, totalCount } of meta.detachedFrom ?? []) {
    const more = totalCount > ids.length ? ` and ${totalCount - ids.length} more` : ''
    const holders = `${kindNameInWords(toKebabCase(entity))} ${ids.join(', ')}${more}`
    printNote(`flotilla: delete ${label}: it was taken off ${printableLine(holders)}`)
  }
}

/**
 * One sentence for each record to be deleted to which other records refer; it names the others.
 */
async function lossesOf(
  client: ApiClient,
  kind: RecordKind,
  rows: readonly ApiRecordRow[],
): Promise<readonly string[]> {
  const losses: string[] = []
  for (const row of rows) {
    const holders = await findReferencingRecordNames(client, kind, row.id)
    if (holders.length === 0) continue
    losses.push(
      `${kindNameInWords(kind.name)} ${rowName(kind, row)} is in use by ${holders.join(', ')}`,
    )
  }
  return losses
}

async function mustBeMeant(
  kind: RecordKind,
  rows: readonly ApiRecordRow[],
  losses: readonly string[],
  isConfirmed: boolean,
): Promise<void> {
  if (isConfirmed && losses.length === 0) return
  if (isConfirmed) {
    throw new CommandFailure(
      EXIT_FAILED,
      `${losses.join('; ')}; nothing was deleted. Take it off them, or add --force`,
    )
  }
  const names = rows.map((row) => rowName(kind, row)).join(', ')
  const what = `${kindNameInWords(rows.length === 1 ? kind.name : kind.plural)} ${names}`
  if (!isInteractive()) {
    throw new CommandFailure(
      EXIT_USAGE,
      `no terminal to confirm the deletion of ${what}; add --yes`,
    )
  }
  for (const loss of losses) printNote(`flotilla: ${loss}, and would be taken off`)
  if ((await promptLine(`Delete ${what}? (yes/no) `)) === 'yes') return
  throw new CommandFailure(EXIT_FAILED, 'nothing was deleted')
}

function mustBeWhole(kind: RecordKind, body: JsonObject): void {
  const missing = missingFields(kind, body)
  if (missing.length === 0) return
  throw new CommandFailure(
    EXIT_USAGE,
    `create ${kind.name}: ${missing.join(', ')} must be given; see flotilla explain ${kind.name}`,
  )
}

function labelOf(kind: RecordKind, { name }: JsonObject): string {
  return typeof name === 'string'
    ? `${kindNameInWords(kind.name)} ${printableLine(name)}`
    : kindNameInWords(kind.name)
}

/**
 * Sends a request. Adds the attempted action to the message of a refusal, and prints warnings and
 * ignored fields from the response.
 */
export async function sendRecordWrite(
  client: ApiClient,
  kind: RecordKind,
  attempt: string,
  request: ApiRequest,
): Promise<ApiResponse> {
  try {
    const isOnceOnly = holdsSecret(kind, request.body)
    const answer = await sendKindRequest(client, kind, { ...request, isOnceOnly }, unknownShape)
    const ignored = answer.meta.ignoredFields ?? []
    if (ignored.length > 0) {
      const fields = printableLine(ignored.join(', '))
      printNote(`flotilla: ${attempt}: this controller ignored ${fields}`)
    }
    for (const warning of answer.meta.warnings ?? []) {
      printNote(`flotilla: ${attempt}: ${printableLine(warning)}`)
    }
    return answer
  } catch (error) {
    if (!(error instanceof ApiRefusal)) throw error
    const { status, code, field, message } = error
    throw new ApiRefusal(status, code, `cannot ${attempt}: ${message}`, field)
  }
}

function holdsSecret(kind: RecordKind, body: unknown): boolean {
  const names = Object.keys((body ?? {}) as object)
  return kind.fields.some(({ name, isSecret }) => isSecret && names.includes(name))
}
