import { readTextFile } from '../terminal/text-file.ts'
import { parseYamlTree } from '../../config/engine/yaml-tree.ts'
import { usageFailure } from '../../controller/command-failure.ts'
import { isObject } from '../../entities/check-fields.ts'
import { errorMessage } from '../../lib/error-code.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { openContextClient, type ContextOptions } from '../client/context-client.ts'
import { addDefaultValues, treeToJson } from '../records/body-members.ts'
import { findField, type RecordKind, findKind } from '../records/kinds.ts'
import { RecordNameResolver } from '../records/names.ts'
import { printJson, printLine } from '../terminal/output.ts'
import { readStandardInput } from '../terminal/secret-input.ts'
import {
  requestPreview,
  PREVIEW_CHANGES_MAX,
  type PreviewChange,
  accessPreviewText,
} from './preview-response.ts'

export interface PreviewOptions extends ContextOptions {
  readonly file: string
  readonly limit?: number
}

const PAIRS = 100

/** Prints the access that the changes in a file would grant and revoke. */
export async function previewNetworkFile(options: PreviewOptions): Promise<void> {
  const wanted = wantedIn(options.file)
  const client = openContextClient(options)
  const changes = await resolvedChanges(new RecordNameResolver(client), wanted)
  const previewed = await requestPreview(client, changes, options.limit ?? PAIRS)
  if (options.json === true) printJson(previewed)
  else printLine(accessPreviewText(previewed))
}

/** One change in the file: `create: service-policy`, `update: identity`, or `delete: service`. */
interface WantedChange {
  readonly verb: (typeof verbs)[number]
  readonly kind: RecordKind
  /** Name or id of the record to update or delete. */
  readonly record: string
  readonly fields: JsonObject
}

const verbs = ['create', 'update', 'delete'] as const
const shape = 'expected a list of changes, each with create, update or delete: KIND'

/**
 * Reads the changes from the file.
 * @throws {CommandFailure} exit 2 with the position of the error in the file.
 */
function wantedIn(path: string): readonly WantedChange[] {
  const parsed = parseYamlTree(textOf(path))
  if (!parsed.ok) {
    const [fault] = parsed.faults
    throw usageFailure(`${path}: line ${fault?.line ?? 1}: ${fault?.problem ?? 'is not YAML'}`)
  }
  const whole = treeToJson(parsed.tree)
  if (!Array.isArray(whole)) throw usageFailure(`${path}: ${shape}`)
  const changes = (whole as readonly Json[]).map((change, at) => wantedChange(path, at + 1, change))
  if (changes.length === 0 || changes.length > PREVIEW_CHANGES_MAX) {
    throw usageFailure(
      `${path}: expected 1 to ${PREVIEW_CHANGES_MAX} changes, found ${changes.length}`,
    )
  }
  return changes
}

function textOf(path: string): string {
  if (path === '-') return readStandardInput('the changes')
  try {
    return readTextFile(path)
  } catch (error) {
    throw usageFailure(`${path} cannot be read (${errorMessage(error)})`)
  }
}

function wantedChange(path: string, number: number, change: Json): WantedChange {
  const at = `${path}: change ${number}`
  const named = isObject(change) ? verbs.filter((one) => one in change) : []
  const [verb] = named
  if (!isObject(change) || verb === undefined || named.length > 1) {
    throw usageFailure(`${at}: ${shape}`)
  }
  const { [verb]: word, record = '', ...rest } = change
  const kind = findKind(String(word))
  if (verb !== 'create' && record === '') throw usageFailure(`${at}: record names what to ${verb}`)
  const fields = Object.entries(rest).map(([name, value]) => [findField(kind, name).name, value])
  return { verb, kind, record: String(record), fields: Object.fromEntries(fields) as JsonObject }
}

/**
 * Replaces record names with IDs. A change can name a record that an earlier change in the file
 * creates.
 */
async function resolvedChanges(
  names: RecordNameResolver,
  wanted: readonly WantedChange[],
): Promise<readonly PreviewChange[]> {
  const changes: PreviewChange[] = []
  for (const [at, { verb, kind, record, fields }] of wanted.entries()) {
    if (verb === 'create') {
      const id = `new-${at + 1}`
      const data = await names.resolved(kind, addDefaultValues(kind, fields))
      changes.push({ action: 'create', kind: kind.id, id, data })
      if (typeof fields['name'] === 'string') names.know(kind, fields['name'], id)
      continue
    }
    const id = await names.idOf(kind, record)
    if (verb === 'delete') changes.push({ action: 'delete', kind: kind.id, id })
    else {
      const data = await names.resolved(kind, fields)
      changes.push({ action: 'patch', kind: kind.id, id, data })
    }
  }
  return changes
}
