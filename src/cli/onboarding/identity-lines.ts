import { CommandFailure } from '../../controller/command-failure.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { type CsvFault, type CsvRow, parseCsv } from '../../lib/text/csv.ts'
import { bodyFromArguments } from '../records/bodies.ts'
import { missingFields } from '../records/body-members.ts'
import { findField, type RecordKind } from '../records/kinds.ts'

export const onboardingLimits = {
  fileBytesMax: 4 * 1024 * 1024,
  /** Maximum identities in one file. */
  identitiesMax: 10_000,
  columnsMax: 64,
  /** Maximum faults that are printed; further faults are only counted. */
  faultsMax: 100,
} as const

/** An identity in one line of the file; references to other records are names or ids as given. */
export interface IdentityLine {
  readonly line: number
  readonly name: string
  readonly body: JsonObject
}

export interface IdentityFile {
  readonly lines: readonly IdentityLine[]
  readonly faults: readonly CsvFault[]
}

/** Reads the identities from a CSV text. Never throws: unusable lines become faults. */
export function parseIdentities(kind: RecordKind, text: string): IdentityFile {
  const { rows, faults } = parseCsv(text)
  const [header, ...rest] = rows
  if (header === undefined)
    return { lines: [], faults: [{ line: 1, problem: 'the file is empty' }] }
  const { identitiesMax } = onboardingLimits
  if (rest.length > identitiesMax) {
    const problem = `expected at most ${identitiesMax} identities, found ${rest.length}; split the file`
    return { lines: [], faults: [{ line: header.line, problem }] }
  }
  const columns = header.cells
  const found = [...faults, ...headerFaults(kind, header)]
  if (found.length > 0) return { lines: [], faults: found }
  const lines: IdentityLine[] = []
  const lineOfName = new Map<string, number>()
  for (const row of rest) {
    const parsed = identityLine(kind, columns, row)
    if (typeof parsed === 'string') {
      found.push({ line: row.line, problem: parsed })
      continue
    }
    const earlier = lineOfName.get(parsed.name)
    if (earlier === undefined) lines.push(parsed)
    else {
      const problem = `${JSON.stringify(parsed.name)} is given twice, first on line ${earlier}`
      found.push({ line: row.line, problem })
    }
    lineOfName.set(parsed.name, earlier ?? row.line)
  }
  return { lines, faults: found }
}

function headerFaults(kind: RecordKind, { line, cells }: CsvRow): CsvFault[] {
  const { columnsMax } = onboardingLimits
  if (cells.length > columnsMax) {
    return [{ line, problem: `expected at most ${columnsMax} columns, found ${cells.length}` }]
  }
  const faults = cells.flatMap((column, at): string[] => {
    if (column === '') return [`column ${at + 1} has no name`]
    if (cells.indexOf(column) < at) return [`the column ${JSON.stringify(column)} is given twice`]
    return faultOf(() => findField(kind, column.split('.')[0] ?? '')) ?? []
  })
  if (!cells.includes('name'))
    faults.push('the column "name" is missing; the first line names them')
  return faults.map((problem) => ({ line, problem }))
}

/** @returns the identity, or the fault of an unusable line. */
function identityLine(
  kind: RecordKind,
  columns: readonly string[],
  { line, cells }: CsvRow,
): IdentityLine | string {
  if (cells.length > columns.length) {
    return `expected ${columns.length} cells, found ${cells.length}; put a value with commas in quotes`
  }
  const words = columns.flatMap((column, at) => {
    const cell = cells[at] ?? ''
    return cell === '' ? [] : [`${column}=${isList(kind, column) ? listCell(cell) : cell}`]
  })
  if (!columns.some((column) => column.startsWith('enrollment'))) words.push('enrollment.ott=true')
  let body: JsonObject = {}
  const fault = faultOf(() => ({ body } = bodyFromArguments(kind, 'create', words, undefined)))
  if (fault !== null) return fault.join()
  const missing = missingFields(kind, body)
  if (missing.length > 0) return `${missing.join(', ')} must be given`
  return { line, name: String(body['name']), body }
}

function isList(kind: RecordKind, column: string): boolean {
  const { schema } = findField(kind, column.split('.')[0] ?? '')
  return !column.includes('.') && [schema['type']].flat().includes('array')
}

function listCell(cell: string): string {
  return cell.startsWith('[') ? cell : cell.replaceAll(';', ',')
}

/** The message of the failure that the step throws, as a list; null if it throws none. */
function faultOf(step: () => unknown): string[] | null {
  try {
    step()
    return null
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error
    return [error.message]
  }
}
