import { nearestWord } from '../../config/engine/nearest-word.ts'
import { parseYamlTree, type YamlEntry, type YamlTree } from '../../config/engine/yaml-tree.ts'
import type { Entity } from '../../entities/define-entity.ts'
import { Problem } from '../../lib/problems.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { treeToJson, missingFields, findUnknownMember } from '../records/body-members.ts'
import type { KindField } from '../records/fields.ts'
import {
  entityForKind,
  kindNameInWords,
  unknownFieldMessage,
  withArticle,
} from '../records/kinds.ts'
import { disabledFieldFault, disabledFields } from './disabled-state.ts'
import {
  toRequestBody,
  canonicalFields,
  fileFieldName,
  networkFileFields,
} from './network-file-fields.ts'
import {
  allSections,
  NETWORK_FILE_VERSION,
  identityExtraFields,
  objectKey,
  objectLabel,
  networkFileLimits,
  type NetworkObject,
  type NetworkSection,
} from './sections.ts'
import { assignDuplicateNumbers } from './live-network.ts'

/** An object of a file. */
export interface NetworkFileObject extends NetworkObject {
  readonly line: number
  /** The line number of each field in the file. */
  readonly lines: ReadonlyMap<string, number>
}

/** A fault in the file with its line, as one sentence. */
export interface FileFault {
  readonly line: number
  readonly problem: string
}

/** Contents of a file, with the faults that were found without the network. */
export interface NetworkFile {
  readonly objects: readonly NetworkFileObject[]
  readonly faults: readonly FileFault[]
}

/** Parses a YAML text; JSON is valid too. */
export function parseYamlDocument(text: string): {
  readonly tree: YamlTree | null
  readonly faults: readonly FileFault[]
} {
  const parsed = parseYamlTree(text, networkFileLimits)
  if (parsed.ok) return { tree: parsed.tree, faults: [] }
  const faults = parsed.faults.map(({ line, problem }) => ({ line: line ?? 1, problem }))
  return { tree: null, faults }
}

/**
 * Returns a function that checks a body for creating a record of a kind; that function throws a
 * `Problem`. A program that cannot compile schemas, for example in a browser, leaves this check to
 * the API.
 */
export type BodyCheckFactory = (entity: Entity) => (body: unknown) => void

/** Parses a network file. Never throws: unusable content becomes a fault. */
export function parseNetworkFile(text: string, checks: BodyCheckFactory): NetworkFile {
  const { tree, faults } = parseYamlDocument(text)
  if (tree === null) return { objects: [], faults }
  const reader = new NetworkFileReader(checks)
  reader.readTop(tree)
  return reader.file()
}

export class NetworkFileReader {
  readonly #objects: NetworkFileObject[] = []
  readonly #faults: FileFault[] = []
  readonly #newCheck: BodyCheckFactory
  readonly #checks = new Map<string, (value: unknown) => void>()

  constructor(checks: BodyCheckFactory) {
    this.#newCheck = checks
  }

  file(): NetworkFile {
    const objects = allSections().flatMap((section) =>
      assignDuplicateNumbers(this.#objects.filter((one) => one.section === section)),
    )
    return {
      objects,
      faults: [...this.#faults, ...doubles(objects)].sort((a, b) => a.line - b.line),
    }
  }

  readTop(tree: YamlTree): void {
    if (tree.kind !== 'map') {
      this.fault(tree.line, 'expected the sections of a network, such as services:')
      return
    }
    let version: Json = null
    for (const { key, line, value } of tree.entries) {
      if (key === 'version') version = treeToJson(value)
      else this.#readSection(key, line, value)
    }
    if (version === NETWORK_FILE_VERSION) return
    this.fault(tree.line, `expected version: ${NETWORK_FILE_VERSION}`)
  }

  fault(line: number, problem: string): void {
    this.#faults.push({ line, problem })
  }

  #readSection(name: string, line: number, tree: YamlTree): void {
    const section = allSections().find((one) => one.name === name)
    if (section === undefined) {
      const near = nearestWord(
        name,
        allSections().map((one) => one.name),
      )
      const hint =
        near === null
          ? `known sections: ${allSections()
              .map((one) => one.name)
              .join(', ')}`
          : `did you mean ${near}?`
      this.fault(line, `unknown section ${JSON.stringify(name)}; ${hint}`)
      return
    }
    if (tree.kind !== 'list') {
      // A section without content is valid.
      if (tree.kind === 'scalar' && tree.value === null) return
      this.fault(line, `${name}: expected a list of ${kindNameInWords(section.kind.plural)}`)
      return
    }
    for (const item of tree.items) this.#readItem(section, item)
  }

  #readItem(section: NetworkSection, tree: YamlTree): void {
    const { kind } = section
    if (tree.kind !== 'map') {
      this.fault(tree.line, `expected the fields of ${withArticle(kindNameInWords(kind.name))}`)
      return
    }
    const before = this.#faults.length
    for (const entry of tree.entries) this.#judgeEntry(section, entry)
    // Ends here after the first faults, because the later checks would report consequences of the
    // same faults.
    if (this.#faults.length > before) return
    const fields = Object.fromEntries(
      tree.entries.map(({ key, value }) => [this.#named(section, key), treeToJson(value)]),
    )
    const lines = new Map(tree.entries.map(({ key, line }) => [this.#named(section, key), line]))
    this.take(section, fields, tree.line, lines)
  }

  /** Checks one object without regard to other objects, and adds the object or a fault. */
  take(
    section: NetworkSection,
    fields: JsonObject,
    line: number,
    lines: ReadonlyMap<string, number>,
  ): void {
    const { kind } = section
    const body = toRequestBody(kind, fields)
    const label = objectLabel(section, fields)
    if (kind.id === 'identity' && disabledFields.every((name) => name in fields)) {
      this.fault(line, `${label}: give disabled or disabledUntil, not both`)
      return
    }
    const missing = missingFields(kind, body)
    if (missing.length > 0) {
      this.fault(line, `${label}: ${missing.join(', ')} must be given`)
      return
    }
    try {
      this.#checkOf(section)(structuredClone(body))
      const normal = canonicalFields(kind, fields)
      this.#objects.push({
        section,
        key: objectKey(section, normal),
        label,
        fields: normal,
        line,
        lines,
      })
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      const { field = '', reason = error.message } = error.fault ?? {}
      const named = networkFileFields(kind).find(({ name }) => name === field.split('.')[0])
      const at = named === undefined ? undefined : lines.get(fileFieldName(named))
      this.fault(at ?? line, `${label}: ${reason}`)
    }
  }

  #judgeEntry({ kind }: NetworkSection, { key, line, value }: YamlEntry): void {
    const extra =
      kind.id === 'identity' ? identityExtraFields.find((one) => one === key) : undefined
    if (extra !== undefined) {
      const problem = identityExtraFault(extra, treeToJson(value))
      if (problem !== null) this.fault(line, problem)
      return
    }
    const field = portable(kind.fields, networkFileFields(kind), key)
    if (field === null) this.fault(line, unknownFieldMessage(kind, key))
    else if (field === 'read-only') {
      this.fault(
        line,
        `${key} of ${withArticle(kindNameInWords(kind.name))} cannot be part of a network file`,
      )
    } else {
      const found = findUnknownMember(field.schema, value, key)
      if (found !== null) this.fault(found.line, found.problem)
    }
  }

  #named({ kind }: NetworkSection, key: string): string {
    const field = networkFileFields(kind).find(({ name, alias }) => name === key || alias === key)
    return field === undefined ? key : fileFieldName(field)
  }

  #checkOf({ kind }: NetworkSection): (value: unknown) => void {
    let check = this.#checks.get(kind.id)
    if (check === undefined) {
      const entity = entityForKind(kind)
      check = entity === undefined ? () => undefined : this.#newCheck(entity)
      this.#checks.set(kind.id, check)
    }
    return check
  }
}

/**
 * Why the value of an identity field that is not part of a request body is not valid; null if it is
 * valid.
 */
export function identityExtraFault(
  name: (typeof identityExtraFields)[number],
  value: Json,
): string | null {
  if (name !== 'isDefaultAdmin') return disabledFieldFault(name, value)
  return typeof value === 'boolean' ? null : `${name}: expected true or false`
}

function portable(
  all: readonly KindField[],
  usable: readonly KindField[],
  key: string,
): KindField | 'read-only' | null {
  const isCalled = ({ name, alias }: KindField): boolean => name === key || alias === key
  return usable.find(isCalled) ?? (all.some(isCalled) ? 'read-only' : null)
}

/**
 * Faults for objects that the file contains more than once.
 */
function doubles(objects: readonly NetworkFileObject[]): FileFault[] {
  const first = new Map<string, NetworkFileObject>()
  const faults: FileFault[] = []
  for (const object of [...objects].sort((a, b) => a.line - b.line)) {
    const key = `${object.section.name} ${object.key}`
    const known = first.get(key)
    if (known === undefined) first.set(key, object)
    else {
      const problem = `${object.label} is given twice, first on line ${known.line}`
      faults.push({ line: object.line, problem })
    }
  }
  return faults
}
