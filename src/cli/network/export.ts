import { writeFileSync } from 'node:fs'

import { yamlText } from '../../config/yaml-tree.ts'
import { connect } from '../session/contexts.ts'
import type { ContextOptions } from '../session/contexts.ts'
import { printJson } from '../terminal/output.ts'
import { readNetwork } from './live.ts'
import type { LiveNetwork } from './live.ts'
import type { JsonObject } from '../../lib/canonical-json.ts'
import { allSections, FORM_VERSION } from './sections.ts'
import type { Section } from './sections.ts'

export interface ExportOptions extends ContextOptions {
  readonly output?: string
}

const HEAD = '# A network: flotilla apply -f FILE brings another one to what stands here.\n'

/** Writes the whole network as YAML, without secrets; equal networks give equal files. */
export async function exportNetwork(options: ExportOptions): Promise<void> {
  const network = await readNetwork(connect(options))
  const text = networkText(network)
  if (options.output === undefined) {
    process.stdout.write(text)
    return
  }
  writeFileSync(options.output, text)
  if (options.json === true) printJson({ out: options.output, objects: network.objects.length })
}

/** The file of a network. */
export function networkText({ objects }: LiveNetwork): string {
  const document: Record<string, unknown> = { version: FORM_VERSION }
  for (const section of allSections()) {
    const own = objects.filter((one) => one.section === section && !one.isUsual)
    if (own.length > 0) document[section.name] = own.map(({ fields }) => keyFirst(section, fields))
  }
  return `${HEAD}${yamlText(document)}`
}

/** What tells an object apart stands at its head. */
function keyFirst({ key }: Section, fields: JsonObject): JsonObject {
  const own = key.filter((name) => Object.hasOwn(fields, name))
  return { ...Object.fromEntries(own.map((name) => [name, fields[name] ?? null])), ...fields }
}
