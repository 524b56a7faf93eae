import { join } from 'node:path'

import { CommandFailure, EXIT_FAILED, usageFailure } from '../../controller/command-failure.ts'
import { errorMessage } from '../../lib/error-code.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import type { CsvFault } from '../../lib/text/csv.ts'
import { isJsonObject } from '../../lib/text/json-value.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'
import { writeSecretFile } from '../../pki/secret-file.ts'
import type { ApiClient } from '../client/api-client.ts'
import { openContextClient, type ContextOptions } from '../client/context-client.ts'
import { type RecordKind, kindById } from '../records/kinds.ts'
import { RecordNameResolver } from '../records/names.ts'
import { toFilterLiteral, readMemberAt, type ApiRecordRow } from '../records/rows.ts'
import { readRows } from '../records/read.ts'
import { sendRecordCreate } from '../records/write.ts'
import { makeFolder } from '../terminal/make-folder.ts'
import { printJson, printLine, printNote } from '../terminal/output.ts'
import { readStandardInput } from '../terminal/secret-input.ts'
import { readTextFile } from '../terminal/text-file.ts'
import { type IdentityLine, onboardingLimits, parseIdentities } from './identity-lines.ts'

export interface ImportIdentitiesOptions extends ContextOptions {
  readonly tokens: string
}

/** Number of identities to create before the command reads and writes their tokens. */
const BATCH = 50
/** Number of concurrent requests: a few hide the latency without slowing down other clients. */
const REQUESTS = 4
const FILE_NAME_BYTES_MAX = 200

interface Outcome {
  readonly created: string[]
  readonly existing: string[]
  /** Paths of the token files. */
  readonly tokens: string[]
}

/**
 * Creates the identities in a CSV file, and writes their enrollment tokens. If the user runs the
 * command again, it continues where it stopped.
 * @throws {CommandFailure} exit 2 for faults in the file, with nothing changed; exit 1 for a
 * failure after some identities may have been created.
 */
export async function importIdentities(
  path: string,
  options: ImportIdentitiesOptions,
): Promise<void> {
  const kind = kindById('identity')
  const { lines, faults } = parseIdentities(kind, textOf(path))
  requireNoFaults(path, faults)
  const client = openContextClient(options)
  const resolved = await resolvedLines(path, client, kind, lines)
  makeFolder(options.tokens, 0o700)
  const outcome: Outcome = { created: [], existing: [], tokens: [] }
  for (let at = 0; at < resolved.length; at += BATCH) {
    try {
      await importBatch(client, kind, resolved.slice(at, at + BATCH), options, outcome)
    } catch (error) {
      if (!(error instanceof CommandFailure)) throw error
      const { created, existing } = outcome
      const done = created.length + existing.length
      const sentence = `${error.message}; ${done} of ${resolved.length} identities done, rerun the same command to continue`
      throw new CommandFailure(EXIT_FAILED, sentence, error)
    }
    const done = Math.min(at + BATCH, resolved.length)
    if (done < resolved.length) printNote(`flotilla: ${done} of ${resolved.length} identities`)
  }
  report(outcome, options)
}

function textOf(path: string): string {
  const { fileBytesMax } = onboardingLimits
  if (path === '-') return readStandardInput('the file of identities', fileBytesMax)
  try {
    return readTextFile(path, fileBytesMax)
  } catch (error) {
    throw usageFailure(`${path} cannot be read (${errorMessage(error)})`)
  }
}

/** @throws {CommandFailure} exit 2, one line for each fault. */
function requireNoFaults(path: string, faults: readonly CsvFault[]): void {
  if (faults.length === 0) return
  const inOrder = [...faults].sort((a, b) => a.line - b.line)
  const lines = inOrder
    .slice(0, onboardingLimits.faultsMax)
    .map(({ line, problem }) => `${path}: line ${line}: ${problem}`)
  const more = inOrder.length - lines.length
  if (more > 0) lines.push(`${path}: and ${more} more faults`)
  throw usageFailure(`nothing was changed\n${lines.join('\n')}`)
}

/** Why the name cannot be requested; undefined if it can. */
function nameFault(name: string): string | undefined {
  try {
    toFilterLiteral(name)
    return undefined
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error
    return error.message
  }
}

/**
 * Replaces the names of other records with ids. A line whose other fields equal those of a faulty
 * line gets the same fault without a request.
 */
async function resolvedLines(
  path: string,
  client: ApiClient,
  kind: RecordKind,
  lines: readonly IdentityLine[],
): Promise<readonly IdentityLine[]> {
  const names = new RecordNameResolver(client)
  const faults: CsvFault[] = []
  const resolved: IdentityLine[] = []
  const unknown = new Map<string, string>()
  for (const one of lines) {
    const { name: _, ...rest } = one.body
    const key = JSON.stringify(rest)
    const problem = nameFault(one.name) ?? unknown.get(key)
    if (problem !== undefined) {
      faults.push({ line: one.line, problem })
      continue
    }
    try {
      resolved.push({ ...one, body: await names.resolved(kind, one.body) })
    } catch (error) {
      if (!(error instanceof CommandFailure) || 'status' in error) throw error
      unknown.set(key, error.message)
      faults.push({ line: one.line, problem: error.message })
    }
  }
  requireNoFaults(path, faults)
  return resolved
}

async function importBatch(
  client: ApiClient,
  kind: RecordKind,
  lines: readonly IdentityLine[],
  { tokens: folder, json }: ImportIdentitiesOptions,
  outcome: Outcome,
): Promise<void> {
  const before = await identitiesNamed(client, kind, lines)
  const missing = lines.filter(({ name }) => !before.has(name))
  for (let at = 0; at < missing.length; at += REQUESTS) {
    await Promise.all(
      missing.slice(at, at + REQUESTS).map((one) => created(client, kind, one, outcome)),
    )
  }
  const now = missing.length === 0 ? before : await identitiesNamed(client, kind, lines)
  for (const { name, line } of lines) {
    const row = now.get(name)
    if (before.has(name)) {
      outcome.existing.push(name)
      if (json !== true)
        printLine(`line ${line}: ${printableLine(name)} exists and stays unchanged`)
    }
    const file = row === undefined ? null : writeToken(folder, row)
    if (file !== null) outcome.tokens.push(file)
  }
}

async function created(
  client: ApiClient,
  kind: RecordKind,
  { name, line, body }: IdentityLine,
  outcome: Outcome,
): Promise<void> {
  const label = `identity ${printableLine(name)} of line ${line}`
  await sendRecordCreate(client, kind, body, label)
  outcome.created.push(name)
}

async function identitiesNamed(
  client: ApiClient,
  kind: RecordKind,
  lines: readonly IdentityLine[],
): Promise<ReadonlyMap<string, ApiRecordRow>> {
  const filter = `name in [${lines.map(({ name }) => toFilterLiteral(name)).join(',')}]`
  const { rows } = await readRows(client, kind, { filter }, lines.length)
  return new Map(rows.map((row) => [String(row['name']), row]))
}

/** @returns the path of the token file; null: the identity has no unused token. */
function writeToken(folder: string, row: ApiRecordRow): string | null {
  const token = tokenOf(row)
  if (token === null) return null
  const path = join(folder, `${fileName(row)}.jwt`)
  writeSecretFile(path, `${token}\n`)
  return path
}

function tokenOf(row: ApiRecordRow): string | null {
  const enrollment = row['enrollment']
  if (!isJsonObject(enrollment)) return null
  for (const method of Object.keys(enrollment as JsonObject)) {
    const jwt = readMemberAt(enrollment, [method, 'jwt'])
    if (typeof jwt === 'string' && jwt !== '') return jwt
  }
  return null
}

/**
 * File name for the token, made from the name of the identity. Characters that are unsafe in a file
 * name, such as the path separator, are encoded.
 */
function fileName({ id, name }: ApiRecordRow): string {
  const safe = encodeURIComponent(String(name)).replace(/^\./, '%2E').replaceAll('*', '%2A')
  return safe.length > FILE_NAME_BYTES_MAX ? id : safe
}

function report({ created, existing, tokens }: Outcome, options: ImportIdentitiesOptions): void {
  if (options.json === true) {
    printJson({ created, existing, tokens })
    return
  }
  printLine(
    `${created.length} created, ${existing.length} existed; ${tokens.length} enrollment tokens in ${options.tokens}`,
  )
}
