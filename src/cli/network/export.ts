import { writeFileSync } from 'node:fs'

import { formatYaml } from '../../config/engine/yaml-tree.ts'
import { openContextClient, type ContextOptions } from '../client/context-client.ts'
import { jsonText, printLine } from '../terminal/output.ts'
import { type LiveNetwork, readNetwork } from './live-network.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { allSections, NETWORK_FILE_VERSION, type NetworkSection } from './sections.ts'

export interface ExportOptions extends ContextOptions {
  readonly out?: string
  readonly output?: 'yaml' | 'json'
}

const HEAD = '# A network; flotilla apply -f FILE applies it to another controller.\n'

/**
 * Writes the objects that a network file can describe, as YAML or JSON, without those that need not
 * be in a file (`isUsual`). Equal networks yield equal files.
 */
export async function exportNetwork(options: ExportOptions): Promise<void> {
  const network = await readNetwork(openContextClient(options))
  const isJson = options.json === true || options.output === 'json'
  const document = networkDocument(network)
  const text = isJson ? `${jsonText(document, 2)}\n` : `${HEAD}${formatYaml(document)}`
  if (options.out === undefined) printLine(text.trimEnd())
  else writeFileSync(options.out, text)
}

function networkDocument({ objects }: LiveNetwork): Readonly<Record<string, unknown>> {
  const document: Record<string, unknown> = { version: NETWORK_FILE_VERSION }
  for (const section of allSections()) {
    const own = objects.filter((one) => one.section === section && !one.isUsual)
    if (own.length > 0) document[section.name] = own.map(({ fields }) => keyFirst(section, fields))
  }
  return document
}

/** Moves the fields that identify the object to its beginning. */
function keyFirst({ key }: NetworkSection, fields: JsonObject): JsonObject {
  const own = key.filter((name) => Object.hasOwn(fields, name))
  return { ...Object.fromEntries(own.map((name) => [name, fields[name] ?? null])), ...fields }
}
