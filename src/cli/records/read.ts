import { CommandFailure, EXIT_USAGE } from '../../controller/command-failure.ts'
import { openContextClient, type ContextOptions } from '../client/context-client.ts'
import type { ApiClient } from '../client/api-client.ts'
import { ApiRefusal } from '../client/api-refusal.ts'
import { printNote } from '../terminal/output.ts'
import { type RecordKind, findKind, requireRecordOperation } from './kinds.ts'
import { RecordNameResolver } from './names.ts'
import { type ApiRecordRow, rowsShape } from './rows.ts'
import { findColumn, rowName, type RecordOutputFormat, printRow, printRows } from './table.ts'

export interface ReadOptions extends ContextOptions {
  readonly output?: RecordOutputFormat
}

export interface RecordListOptions extends ReadOptions {
  readonly filter?: string
  readonly sort?: string
  readonly limit?: number
  readonly all?: boolean
  readonly fields?: string
}

const LIMIT = 100
const PAGE = 500
/** Maximum number of rows that a command reads; a user must filter a longer list. */
const ROWS_MAX = 100_000

/** Prints one record. */
export async function getRecord(
  word: string,
  name: string | undefined,
  options: ReadOptions,
): Promise<void> {
  const kind = findKind(word)
  if (name === undefined) throw nameMissing(kind)
  requireRecordOperation(kind, kind.hasName ? 'list' : 'detail')
  const names = new RecordNameResolver(openContextClient(options))
  const row = await names.record(kind, name)
  const output = options.json === true ? 'json' : (options.output ?? 'yaml')
  if (output === 'table') await printRows(kind, [row], 'table', names)
  else printRow(kind, row, output)
}

function nameMissing({ plural }: RecordKind): CommandFailure {
  return new CommandFailure(
    EXIT_USAGE,
    `get shows one record, by its name or id; to list all: flotilla list ${plural}`,
  )
}

/** Prints the records of a kind, by default at most one hundred. */
export async function listRecords(word: string, options: RecordListOptions): Promise<void> {
  const kind = findKind(word)
  requireRecordOperation(kind, 'list')
  if (options.all === true && options.limit !== undefined) {
    throw new CommandFailure(EXIT_USAGE, '--all and --limit exclude each other')
  }
  const columns = options.fields?.split(',').map((name) => findColumn(kind, name.trim()))
  const output = options.json === true ? 'json' : (options.output ?? 'table')
  if (columns !== undefined && output === 'name') {
    throw new CommandFailure(EXIT_USAGE, '--fields and -o name exclude each other')
  }
  const client = openContextClient(options)
  const limit = options.all === true ? ROWS_MAX : (options.limit ?? LIMIT)
  const { rows, total } = await readRows(client, kind, options, limit)
  await printRows(kind, rows, output, new RecordNameResolver(client), columns)
  if (rows.length < total && options.limit === undefined) {
    const all = options.all === true ? 'narrow the list with --filter' : '--all shows all'
    printNote(`flotilla: ${rows.length} of ${total}; ${all}`)
  }
}

const syntax: Readonly<Record<string, string>> = {
  INVALID_FILTER: `write it as --filter 'name contains "web"'`,
  INVALID_SORT_IDENTIFIER: "write it as --sort 'name desc'",
}

/**
 * Adds an example of the syntax to the error for an invalid filter or sort order, because the API's
 * message contains none.
 */
function withSyntax(error: unknown, plural: string): unknown {
  if (!(error instanceof ApiRefusal)) return error
  const { status, code, field, message } = error
  const example = syntax[code]
  if (example === undefined) return error
  const sentence = `${message}; ${example}, flotilla explain ${plural} lists the fields`
  return new ApiRefusal(status, code, sentence, field)
}

/**
 * Reads up to `limit` records. If each controller has its own records, prints on stderr which
 * controllers did not respond.
 * @throws {CommandFailure} when a controller refuses the request, or none responds.
 */
export async function readRows(
  client: ApiClient,
  kind: RecordKind,
  query: RowsQuery,
  limit: number,
): Promise<Rows> {
  if (!kind.isOfEachController) return await readRowsAt(client, kind, query, limit)
  const found = new Map<string, ApiRecordRow>()
  const faults: CommandFailure[] = []
  let total = 0
  for (const origin of client.controllers) {
    try {
      const { rows, total: ofOne } = await readRowsAt(client, kind, query, limit, origin)
      total = Math.max(total, ofOne)
      for (const row of rows) if (!found.has(row.id)) found.set(row.id, row)
    } catch (error) {
      if (!(error instanceof CommandFailure) || error instanceof ApiRefusal) throw error
      faults.push(error)
    }
  }
  const [fault] = faults
  if (fault !== undefined && faults.length === client.controllers.length) throw fault
  for (const { message } of faults) printNote(`flotilla: incomplete: ${message}`)
  const rows = [...found.values()]
  return { rows: rows.slice(0, limit), total: Math.max(total, rows.length) }
}

interface RowsQuery {
  readonly filter?: string
  readonly sort?: string
}

interface Rows {
  readonly rows: readonly ApiRecordRow[]
  readonly total: number
}

async function readRowsAt(
  client: ApiClient,
  { plural, api }: RecordKind,
  { filter, sort }: RowsQuery,
  limit: number,
  origin?: string,
): Promise<Rows> {
  const rows: ApiRecordRow[] = []
  for (;;) {
    const query = new URLSearchParams({
      limit: String(Math.min(PAGE, limit - rows.length)),
      offset: String(rows.length),
      ...(filter === undefined ? {} : { filter }),
      ...(sort === undefined ? {} : { sort }),
    })
    const path = `/${plural}?${query.toString()}`
    const at = origin === undefined ? {} : { origin }
    const { data, meta } = await client
      .ask({ method: 'GET', path, api, ...at }, rowsShape)
      .catch((error: unknown) => {
        throw withSyntax(error, plural)
      })
    const page = data
    rows.push(...page)
    const total = meta.pagination?.totalCount ?? rows.length
    if (page.length === 0 || rows.length >= Math.min(limit, total)) return { rows, total }
  }
}

/** Names of at most `limit` records, for shell completion. */
export async function recordNamesForCompletion(
  kind: RecordKind,
  client: ApiClient,
  limit: number,
): Promise<string[]> {
  const { rows } = await readRows(client, kind, {}, limit)
  return rows.map((row) => rowName(kind, row))
}
