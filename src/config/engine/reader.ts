import type { ConfigFault } from '../controller/load.ts'
import { nearest } from './suggest.ts'
import type { YamlScalar, YamlTree } from './yaml-tree.ts'
import { fillVariables, type RouterEnvironment } from './environment.ts'
import {
  type Keyed,
  type RawValue,
  required,
  type RouterFields,
  type RouterList,
  type RouterSection,
  type SchemaNode,
  type Value,
  type Variants,
} from './schema.ts'

/** One value in force, and where it is from. */
export interface EffectiveValue {
  /** `ctrl.endpoint`, `listeners[0].bind`. */
  readonly key: string
  readonly value: string
  readonly source:
    | { readonly kind: 'file'; readonly line: number }
    | { readonly kind: 'environment'; readonly line: number; readonly names: readonly string[] }
    | { readonly kind: 'default' }
}

const SHOWN_LENGTH_MAX = 60
const SUGGESTED_KEYS_MAX = 40
const KEYED_NAME = /^[A-Za-z0-9_.-]{1,64}$/

type YamlMap = Extract<YamlTree, { kind: 'map' }>

/**
 * Walks the table, so the work is bounded by it and by the file. Faults and warnings are gathered,
 * and nothing is thrown.
 */
export class ConfigReader {
  readonly faults: ConfigFault[] = []
  readonly warnings: ConfigFault[] = []
  readonly effective: EffectiveValue[] = []
  readonly #file: string
  readonly #folder: string
  readonly #environment: RouterEnvironment
  /** Line of each key that stands in the file. */
  readonly #lines = new Map<string, number>()

  constructor(file: string, folder: string, environment: RouterEnvironment) {
    this.#file = file
    this.#folder = folder
    this.#environment = environment
  }

  read(fields: RouterFields, tree: YamlTree): Record<string, unknown> {
    const isEmpty = tree.kind === 'scalar' && tree.value === null
    const map: YamlTree = isEmpty ? { kind: 'map', line: tree.line, entries: [] } : tree
    return this.#readMap(fields, map, '') ?? {}
  }

  fault(key: string, problem: string): void {
    this.faults.push(this.#at(key, problem))
  }

  warn(key: string, problem: string): void {
    this.warnings.push(this.#at(key, problem))
  }

  isGiven(key: string): boolean {
    return this.#lines.has(key)
  }

  /** What follows from a value does not follow from one that was refused. */
  isFaulty(key: string): boolean {
    return this.faults.some((fault) => fault.key === key)
  }

  #at(key: string, problem: string): ConfigFault {
    return { source: this.#file, line: this.#lineOf(key), key, problem }
  }

  /** A key that is not there is told at the section that lacks it. */
  #lineOf(key: string): number | null {
    for (let at = key; at !== ''; at = at.replace(/(?:\.|\[\d+\]|^)[^.[\]]*$|\[\d+\]$/, '')) {
      const line = this.#lines.get(at)
      if (line !== undefined) return line
    }
    return null
  }

  #readMap(fields: RouterFields, tree: YamlTree, prefix: string): Record<string, unknown> | null {
    if (tree.kind !== 'map') {
      const found = this.#shown(tree)
      this.fault(prefix.slice(0, -1), `expected a section with keys, found ${found}`)
      return null
    }
    const members = this.#members(fields, tree, prefix)
    const values: Record<string, unknown> = {}
    for (const [name, node] of Object.entries(fields)) {
      values[name] = this.#readNode(node, members.get(name), prefix + name, values)
    }
    return values
  }

  /**
   * What stands in a section, by the names of the table; what the table does not know is a fault.
   */
  #members(fields: RouterFields, tree: YamlMap, prefix: string): Members {
    const members: Members = new Map()
    const names = namesOf(fields)
    for (const { key: written, line, value } of tree.entries) {
      const name = names.get(written)
      const key = prefix + (name ?? shorten(written))
      if (name === undefined) {
        this.#lines.set(key, line)
        this.fault(key, `unknown key; ${suggestion(written, [...names.keys()], prefix)}`)
      } else if (members.has(name)) {
        this.fault(
          key,
          `is given twice, as ${[...aliasesOf(fields, name)].join(' and ')}; give one`,
        )
      } else {
        this.#lines.set(key, line)
        members.set(name, value)
      }
    }
    return members
  }

  #readNode(
    node: SchemaNode,
    tree: YamlTree | undefined,
    key: string,
    siblings: Readonly<Record<string, unknown>>,
  ): unknown {
    switch (node.kind) {
      case 'value':
        return this.#readValue(node, tree, key)
      case 'section':
        return this.#readSection(node, tree, key)
      case 'list':
        return this.#readList(node, tree, key)
      case 'keyed':
        return this.#readKeyed(node, tree, key)
      case 'variants':
        return this.#readVariants(node, tree, key, siblings)
      case 'ignored':
        if (tree !== undefined) this.warn(key, `has no effect: ${node.why}`)
        return null
    }
  }

  #readValue(node: Value<unknown>, tree: YamlTree | undefined, key: string): unknown {
    if (tree === undefined) return this.#defaultOf(node, key)
    if (node.deprecated !== undefined) this.warn(key, `is deprecated: ${node.deprecated}`)
    const names: string[] = []
    const raw = this.#rawOf(tree, key, names)
    const context = { folder: this.#folder }
    const found = raw === undefined ? undefined : node.type.read(raw, context)
    if (found === undefined) {
      const shown = node.isSecret === true ? 'another value' : this.#shown(tree)
      const from = names.length === 0 ? '' : ` (from the environment: ${names.join(', ')})`
      this.fault(key, `expected ${node.type.expected}, found ${shown}${from}`)
      return null
    }
    const { line } = tree
    const source =
      names.length === 0
        ? ({ kind: 'file', line } as const)
        : ({ kind: 'environment', line, names } as const)
    this.effective.push({ key, value: shownValue(node, found), source })
    return found
  }

  #defaultOf(node: Value<unknown>, key: string): unknown {
    if (node.default === required) {
      this.fault(key, `is missing; expected ${node.type.expected}`)
      return null
    }
    this.effective.push({ key, value: shownValue(node, node.default), source: { kind: 'default' } })
    return node.default
  }

  #readSection(
    node: RouterSection<RouterFields>,
    tree: YamlTree | undefined,
    key: string,
  ): unknown {
    const isEmpty = tree !== undefined && isNothing(tree)
    const isAbsent = tree === undefined || (isEmpty && node.isPresentWhenEmpty !== true)
    if (!isAbsent && node.deprecated !== undefined) {
      this.warn(key, `is deprecated: ${node.deprecated}`)
    }
    if (isAbsent && node.absence === 'null') {
      if (isEmpty) this.warn(key, 'is empty, which counts as absent')
      return null
    }
    if (isAbsent && node.absence === 'required') {
      this.fault(key, `is missing; expected a section with ${Object.keys(node.fields).join(', ')}`)
      return {}
    }
    const none: YamlMap = { kind: 'map', line: tree?.line ?? 1, entries: [] }
    return this.#readMap(node.fields, isAbsent || isEmpty ? none : tree, `${key}.`) ?? {}
  }

  #readList(
    { item, itemsMax }: RouterList<RouterFields>,
    tree: YamlTree | undefined,
    key: string,
  ): unknown[] {
    if (tree === undefined || isNothing(tree)) return []
    if (tree.kind !== 'list') {
      const keys = Object.keys(item.fields).join(', ')
      const found = this.#shown(tree)
      this.fault(key, `expected a list of sections with the keys ${keys}, found ${found}`)
      return []
    }
    if (tree.items.length > itemsMax) {
      this.fault(key, `holds more than ${itemsMax} items`)
      return []
    }
    return tree.items.map((one, at) => {
      const itemKey = `${key}[${at}]`
      this.#lines.set(itemKey, one.line)
      return this.#readMap(item.fields, one, `${itemKey}.`) ?? {}
    })
  }

  #readKeyed(
    { item, itemsMax }: Keyed<RouterFields>,
    tree: YamlTree | undefined,
    key: string,
  ): object {
    if (tree === undefined || isNothing(tree)) return {}
    if (tree.kind !== 'map') {
      this.fault(key, `expected a section with sections in it, found ${this.#shown(tree)}`)
      return {}
    }
    if (tree.entries.length > itemsMax) {
      this.fault(
        key,
        itemsMax === 0 ? 'holds a key, and has none' : `holds more than ${itemsMax} sections`,
      )
      return {}
    }
    const values: Record<string, unknown> = {}
    for (const entry of tree.entries) {
      const name = `${key}.${shorten(entry.key)}`
      this.#lines.set(name, entry.line)
      if (!KEYED_NAME.test(entry.key) || entry.key === '__proto__') {
        this.fault(name, 'expected a name of letters, digits, dots, _ and -')
      } else values[entry.key] = this.#readMap(item.fields, entry.value, `${name}.`) ?? {}
    }
    return values
  }

  #readVariants(
    { by, fieldsOf }: Variants,
    tree: YamlTree | undefined,
    key: string,
    siblings: Readonly<Record<string, unknown>>,
  ): object {
    const kind = siblings[by]
    // A kind that is wrong or missing is a fault already, and says nothing of what may stand here.
    if (typeof kind !== 'string' || !Object.hasOwn(fieldsOf, kind)) return {}
    const fields = fieldsOf[kind] ?? {}
    const isAbsent = tree === undefined || isNothing(tree)
    const none: YamlMap = { kind: 'map', line: tree?.line ?? 1, entries: [] }
    return this.#readMap(fields, isAbsent ? none : tree, `${key}.`) ?? {}
  }

  /** A scalar or a list of scalars, variables filled in; undefined: something else. */
  #rawOf(tree: YamlTree, key: string, names: string[]): RawValue | undefined {
    if (tree.kind === 'scalar') return this.#fill(tree.value, key, names)
    if (tree.kind !== 'list') return undefined
    const items: YamlScalar[] = []
    for (const item of tree.items) {
      if (item.kind !== 'scalar') return undefined
      items.push(this.#fill(item.value, key, names))
    }
    return items
  }

  #fill(scalar: YamlScalar, key: string, names: string[]): YamlScalar {
    if (typeof scalar !== 'string') return scalar
    const filled = fillVariables(scalar, this.#environment)
    names.push(...filled.names.filter((name) => !names.includes(name)))
    for (const name of filled.missing) {
      this.warn(key, `the environment variable ${shorten(name)} is not set; replaced by nothing`)
    }
    return filled.text
  }

  #shown(tree: YamlTree): string {
    if (tree.kind === 'map') return 'a section'
    if (tree.kind === 'list') {
      const isPlain = tree.items.every((item) => item.kind === 'scalar')
      if (!isPlain) return 'a list of sections'
      return shorten(
        JSON.stringify(
          tree.items.slice(0, 64).map((item) => (item.kind === 'scalar' ? item.value : null)),
        ),
      )
    }
    return tree.value === null ? 'nothing' : shorten(JSON.stringify(tree.value))
  }
}

type Members = Map<string, YamlTree>

/** Each accepted name of a key, with its name in the table. */
function namesOf(fields: RouterFields): Map<string, string> {
  const names = new Map<string, string>()
  for (const name of Object.keys(fields)) {
    for (const accepted of aliasesOf(fields, name)) names.set(accepted, name)
  }
  return names
}

function aliasesOf(fields: RouterFields, name: string): readonly string[] {
  const node = fields[name]
  return [name, ...(node?.kind === 'value' ? (node.aliases ?? []) : [])]
}

function suggestion(written: string, known: readonly string[], prefix: string): string {
  const near = nearest(written.slice(0, SHOWN_LENGTH_MAX), known)
  if (near !== null) return `did you mean ${prefix}${near}?`
  if (known.length === 0) return 'no keys are known here'
  const shown = known.slice(0, SUGGESTED_KEYS_MAX).join(', ')
  return `known keys: ${shown}${known.length > SUGGESTED_KEYS_MAX ? ', …' : ''}`
}

function isNothing(tree: YamlTree): boolean {
  return tree.kind === 'scalar' && tree.value === null
}

function shownValue({ isSecret, type }: Value<unknown>, found: unknown): string {
  if (found === null) return ''
  const isInline = typeof found === 'object' && 'pem' in found && found.pem !== null
  if (isSecret === true && isInline) return '(not shown)'
  if (type.show !== undefined) return type.show(found)
  return Array.isArray(found) ? found.join(', ') : String(found)
}

function shorten(text: string): string {
  const printable = text.replaceAll(/[^\x20-\x7e\xa0-\uffff]/g, ' ')
  return printable.length <= SHOWN_LENGTH_MAX
    ? printable
    : `${printable.slice(0, SHOWN_LENGTH_MAX)}…`
}
