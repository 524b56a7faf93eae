import { dirname } from 'node:path'

import { type Environment, environmentName, substituteVariables } from './environment.ts'
import { type ConfigFault, shortenText } from './fault.ts'
import {
  type SchemaFields,
  type KeyedSections,
  type SectionList,
  type ConfigOption,
  type RawValue,
  REQUIRED_OPTION,
  type SchemaNode,
  type ConfigSection,
  type ValueType,
  type VariantSection,
} from './schema.ts'
import { formatOptionValue } from './option-display.ts'
import { nearestWord } from './nearest-word.ts'
import type { YamlScalar, YamlTree } from './yaml-tree.ts'

type ValueSource =
  | { readonly kind: 'file'; readonly line: number }
  | {
      readonly kind: 'environment'
      /**
       * Line in the file if the value there contains variables; null if a variable overrides the
       * key.
       */
      readonly line: number | null
      readonly names: readonly string[]
    }
  | { readonly kind: 'default' }

/** The value that a program uses for a key, and the source of the value. */
export interface EffectiveValue {
  /** For example `ctrl.endpoint` or `listeners[0].bind`. */
  readonly key: string
  readonly value: string
  readonly source: ValueSource
  /** False for a key that has no effect in this version. */
  readonly hasEffect: boolean
}

export type UnknownKeys = 'faults' | 'warnings'

interface ReaderDeps {
  /** Absolute path of the file; relative paths in it are relative to its folder. */
  readonly file: string
  readonly environment: Environment
  /**
   * Prefix of environment variables that override keys. null: variables do not override keys;
   * instead, `$NAME` and `${NAME}` within values are replaced.
   */
  readonly overridePrefix: string | null
  readonly unknownKeys: UnknownKeys
}

/** A value as it is written in the file or the environment. */
interface Given {
  /** undefined when the YAML node is neither a scalar nor a list of scalars. */
  readonly raw: RawValue | undefined
  readonly folder: string
  readonly source: ValueSource
  /** The value as it appears in a fault message. */
  readonly shown: string
}

/** Fields of a section or list item. */
interface FieldsAt {
  readonly fields: SchemaFields
  /** For example `ctrl.` or `listeners[0].`; empty at the top level. */
  readonly prefix: string
  readonly hasEffect: boolean
  /** True if a misspelled key is a fault even where other unknown keys are only warnings. */
  readonly refusesMisspellings?: boolean
}

/** A node of the table and its position in the file. */
interface At<N extends SchemaNode = SchemaNode> {
  readonly node: N
  readonly tree: YamlTree | undefined
  readonly key: string
  readonly hasEffect: boolean
}

const SUGGESTED_CHARACTERS_MAX = 60
const SUGGESTED_KEYS_MAX = 40
const LIST_ITEMS_SHOWN_MAX = 64
const KEYED_NAME = /^[A-Za-z0-9_.-]{1,64}$/

type YamlMap = Extract<YamlTree, { kind: 'map' }>
type Values = Record<string, unknown>

/**
 * Reads a configuration by walking the options table, so the sizes of table and file limit its
 * work. Collects faults and warnings; never throws.
 */
export class ConfigReader {
  readonly faults: ConfigFault[] = []
  readonly warnings: ConfigFault[] = []
  readonly effective: EffectiveValue[] = []
  readonly #deps: ReaderDeps
  /** Source and line of each key that is present in the configuration. */
  readonly #places = new Map<string, Pick<ConfigFault, 'source' | 'line'>>()
  /** Names of the environment variables that can override the keys that were read so far. */
  readonly #overrides = new Set<string>()
  /**
   * Keys of the table that a misspelled key in the file probably means. The misspelling is already
   * a fault, so the reader does not report these keys as missing too.
   */
  readonly #meant: string[] = []

  constructor(deps: ReaderDeps) {
    this.#deps = deps
  }

  /** Reads all values. Use them only if there are no faults. */
  read(fields: SchemaFields, tree: YamlTree): Values {
    const values = this.#readFields(isNothing(tree) ? emptyMap(1) : tree, {
      fields,
      prefix: '',
      hasEffect: true,
    })
    this.#checkOverrides()
    return values
  }

  fault(key: string, problem: string): void {
    this.faults.push({ ...this.#placeOf(key), key, problem })
  }

  warn(key: string, problem: string): void {
    this.warnings.push({ ...this.#placeOf(key), key, problem })
  }

  /**
   * Replaces the displayed value of a key that has its default, because another key determines the
   * value.
   */
  replaceDefault(key: string, value: string): void {
    const at = this.effective.findIndex((one) => one.key === key)
    const one = this.effective[at]
    if (one !== undefined) this.effective[at] = { ...one, value }
  }

  isGiven(key: string): boolean {
    return this.#places.has(key)
  }

  /** Whether the key is absent; false if a fault already reports a misspelling of it. */
  isMissing(key: string): boolean {
    return !this.#places.has(key) && !this.#isMeant(key)
  }

  /**
   * Whether a fault reports the key or a misspelling of it; rules that depend on its value are then
   * skipped.
   */
  isFaulty(key: string): boolean {
    return this.#isMeant(key) || this.faults.some((fault) => fault.key === key)
  }

  /**
   * Source and line for a fault; for an absent key, the source and line of the nearest section that
   * is present.
   */
  #placeOf(key: string): Pick<ConfigFault, 'source' | 'line'> {
    for (let at = key; at !== ''; at = parentOf(at)) {
      const place = this.#places.get(at)
      if (place !== undefined) return place
    }
    return { source: this.#deps.file, line: null }
  }

  #place(key: string, line: number): void {
    this.#places.set(key, { source: this.#deps.file, line })
  }

  #isMeant(key: string): boolean {
    return this.#meant.some(
      (meant) => key === meant || key.startsWith(`${meant}.`) || key.startsWith(`${meant}[`),
    )
  }

  #readFields(tree: YamlTree, at: FieldsAt): Values {
    const { fields, prefix, hasEffect } = at
    if (tree.kind !== 'map') {
      this.fault(prefix.slice(0, -1), `expected a section with keys, found ${shownTree(tree)}`)
      return {}
    }
    const members = this.#members(tree, at)
    const values: Values = {}
    for (const [name, node] of Object.entries(fields)) {
      const member = {
        node,
        tree: members.get(name),
        key: prefix + name,
        hasEffect: hasEffect && node.hasEffect !== false,
      }
      values[name] = this.#readNode(member, values)
    }
    return values
  }

  /**
   * The values that a section sets, by the name of the option; an alias counts as the name. Reports
   * unknown keys, and options that are given twice.
   */
  #members(tree: YamlMap, at: FieldsAt): Map<string, YamlTree> {
    const { fields, prefix } = at
    const members = new Map<string, YamlTree>()
    const names = namesOf(fields)
    for (const { key: written, line, value } of tree.entries) {
      const name = names.get(written)
      const key = prefix + (name ?? shortenText(written))
      if (name !== undefined && members.has(name)) {
        const given = [...aliasesOf(fields, name)].join(' and ')
        this.fault(key, `is given twice, as ${given}; give one`)
        continue
      }
      this.#place(key, line)
      if (name === undefined) this.#addUnknown(written, key, names, at)
      else members.set(name, value)
    }
    return members
  }

  #addUnknown(
    written: string,
    key: string,
    names: ReadonlyMap<string, string>,
    { prefix, refusesMisspellings = false }: FieldsAt,
  ): void {
    const known = [...names.keys()]
    const near = nearestWord(written.slice(0, SUGGESTED_CHARACTERS_MAX), known)
    if (this.#deps.unknownKeys === 'warnings' && !(refusesMisspellings && near !== null)) {
      const hint = near === null ? '' : `; did you mean ${prefix}${near}?`
      this.warn(key, `is unknown to this program, and has no effect${hint}`)
      return
    }
    if (near !== null) this.#meant.push(prefix + (names.get(near) ?? near))
    const hint = near === null ? knownKeys(known) : `did you mean ${prefix}${near}?`
    this.fault(key, `unknown key; ${hint}`)
  }

  #readNode(at: At, siblings: Readonly<Values>): unknown {
    const { node } = at
    switch (node.kind) {
      case 'option':
        return this.#readOption({ ...at, node })
      case 'section':
        return this.#readSection({ ...at, node })
      case 'list':
        return this.#readList({ ...at, node })
      case 'keyed':
        return this.#readKeyed({ ...at, node })
      case 'variants':
        return this.#readVariants({ ...at, node }, siblings)
      case 'ignored':
        if (at.tree !== undefined && node.isQuiet !== true)
          this.warn(at.key, `has no effect: ${node.why}`)
        return null
    }
  }

  #readOption({ node, tree, key, hasEffect }: At<ConfigOption<unknown>>): unknown {
    const given = this.#override(node.type, key) ?? this.#written(tree, key)
    if (given === null) return this.#defaultOf(node, key, hasEffect)
    if (node.deprecated !== undefined) this.warn(key, `is deprecated: ${node.deprecated}`)
    const { raw, folder, source, shown } = given
    const found = raw === undefined ? undefined : node.type.read(raw, folder)
    if (found === undefined) {
      // @guard secret-in-a-configuration-fault
      const value = node.isSecret === true ? 'another value' : shown
      const from =
        source.kind === 'environment' && source.line !== null
          ? ` (from the environment: ${source.names.join(', ')})`
          : ''
      this.fault(key, `expected ${node.type.expected}, found ${value}${from}`)
      return null
    }
    this.effective.push({ key, value: formatOptionValue(node, found), source, hasEffect })
    return found
  }

  #defaultOf(node: ConfigOption<unknown>, key: string, hasEffect: boolean): unknown {
    if (node.default === REQUIRED_OPTION) {
      if (!this.#isMeant(key)) this.fault(key, `is missing; expected ${node.type.expected}`)
      return null
    }
    const value = formatOptionValue(node, node.default)
    this.effective.push({ key, value, source: { kind: 'default' }, hasEffect })
    return node.default
  }

  /**
   * Value of the environment variable that overrides a key. A relative path in the variable is
   * relative to the working folder.
   */
  #override({ fromText }: ValueType<unknown>, key: string): Given | null {
    const { overridePrefix, environment } = this.#deps
    if (overridePrefix === null) return null
    const name = environmentName(overridePrefix, key)
    this.#overrides.add(name)
    const text = environment[name]
    if (text === undefined) return null
    this.#places.set(key, { source: `environment ${name}`, line: null })
    return {
      raw: fromText === undefined ? text : fromText(text),
      folder: process.cwd(),
      source: { kind: 'environment', line: null, names: [name] },
      shown: shortenText(JSON.stringify(text)),
    }
  }

  #written(tree: YamlTree | undefined, key: string): Given | null {
    if (tree === undefined) return null
    const names: string[] = []
    const raw = this.#rawOf(tree, key, names)
    const { line } = tree
    const source =
      names.length === 0
        ? ({ kind: 'file', line } as const)
        : ({ kind: 'environment', line, names } as const)
    return { raw, folder: dirname(this.#deps.file), source, shown: shownTree(tree) }
  }

  #readSection({ node, tree, key, hasEffect }: At<ConfigSection<SchemaFields>>): Values | null {
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
      const keys = Object.keys(node.fields).join(', ')
      if (!this.#isMeant(key)) this.fault(key, `is missing; expected a section with ${keys}`)
      return {}
    }
    const map = isAbsent || isEmpty ? emptyMap(tree?.line ?? 1) : tree
    return this.#readFields(map, { ...node, prefix: `${key}.`, hasEffect })
  }

  #readList({ node, tree, key, hasEffect }: At<SectionList<SchemaFields>>): Values[] {
    const { fields, itemsMin, itemsMax } = node
    const sections = `sections with the keys ${Object.keys(fields).join(', ')}`
    if (tree === undefined || isNothing(tree)) {
      if (itemsMin > 0 && !this.#isMeant(key)) {
        this.fault(key, `is missing; expected a list of ${sections}`)
      }
      return []
    }
    if (tree.kind !== 'list') {
      this.fault(key, `expected a list of ${sections}, found ${shownTree(tree)}`)
      return []
    }
    if (tree.items.length < itemsMin) {
      this.fault(key, `is empty; expected one or more ${sections}`)
    }
    if (tree.items.length > itemsMax) {
      this.fault(key, `holds more than ${itemsMax} items`)
      return []
    }
    return tree.items.map((item, at) => {
      const itemKey = `${key}[${at}]`
      this.#place(itemKey, item.line)
      return this.#readFields(item, { ...node, prefix: `${itemKey}.`, hasEffect })
    })
  }

  #readKeyed({ node, tree, key, hasEffect }: At<KeyedSections<SchemaFields>>): Values {
    const { fields, itemsMax } = node
    if (tree === undefined || isNothing(tree)) return {}
    if (tree.kind !== 'map') {
      this.fault(key, `expected a section with sections in it, found ${shownTree(tree)}`)
      return {}
    }
    if (itemsMax === 0) {
      for (const { key: written, line } of tree.entries) {
        const name = `${key}.${shortenText(written)}`
        this.#place(name, line)
        this.#addUnknown(written, name, new Map(), { fields, prefix: `${key}.`, hasEffect })
      }
      return {}
    }
    if (tree.entries.length > itemsMax) {
      this.fault(key, `holds more than ${itemsMax} sections`)
      return {}
    }
    const values: Values = {}
    for (const { key: written, line, value } of tree.entries) {
      const name = `${key}.${shortenText(written)}`
      this.#place(name, line)
      if (!KEYED_NAME.test(written) || written === '__proto__') {
        this.fault(name, 'expected a name of letters, digits, dots, _ and -')
      } else values[written] = this.#readFields(value, { fields, prefix: `${name}.`, hasEffect })
    }
    return values
  }

  #readVariants(
    { node, tree, key, hasEffect }: At<VariantSection>,
    siblings: Readonly<Values>,
  ): Values {
    const kind = siblings[node.by]
    // Skips the fields, because the kind determines which fields are valid. A rejected or missing
    // kind is already a fault; the rules between keys report an unknown one.
    if (typeof kind !== 'string' || !Object.hasOwn(node.fieldsOf, kind)) return {}
    const map = tree === undefined || isNothing(tree) ? emptyMap(tree?.line ?? 1) : tree
    return this.#readFields(map, {
      fields: node.fieldsOf[kind] ?? {},
      prefix: `${key}.`,
      hasEffect,
    })
  }

  /**
   * Reports a variable whose name is nearly valid, because it is probably a typo. Other variables
   * are ignored: for example, a Kubernetes service named flotilla sets FLOTILLA_PORT and
   * FLOTILLA_SERVICE_HOST in every pod.
   */
  #checkOverrides(): void {
    const { overridePrefix, environment } = this.#deps
    if (overridePrefix === null) return
    for (const name of Object.keys(environment)) {
      if (!name.startsWith(overridePrefix) || this.#overrides.has(name)) continue
      const near = nearestWord(name, [...this.#overrides])
      if (near === null) continue
      const problem = `unknown variable; did you mean ${near}?`
      this.faults.push({ source: `environment ${name}`, line: null, key: '', problem })
    }
  }

  /** A scalar or a list of scalars, with variables replaced; undefined for any other node. */
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
    const { overridePrefix, environment } = this.#deps
    if (typeof scalar !== 'string' || overridePrefix !== null) return scalar
    const filled = substituteVariables(scalar, environment)
    names.push(...filled.names.filter((name) => !names.includes(name)))
    for (const name of filled.missing) {
      this.warn(
        key,
        `the environment variable ${shortenText(name)} is not set; replaced by nothing`,
      )
    }
    return filled.text
  }
}

/** The key of the parent: `web[0].bind` → `web[0]` → `web` → ''. */
function parentOf(key: string): string {
  return key.slice(0, Math.max(key.lastIndexOf('.'), key.lastIndexOf('['), 0))
}

/** Maps each accepted name of a key to its name in the table. */
function namesOf(fields: SchemaFields): Map<string, string> {
  const names = new Map<string, string>()
  for (const name of Object.keys(fields)) {
    for (const accepted of aliasesOf(fields, name)) names.set(accepted, name)
  }
  return names
}

function aliasesOf(fields: SchemaFields, name: string): readonly string[] {
  const node = fields[name]
  return [name, ...(node?.kind === 'option' ? (node.aliases ?? []) : [])]
}

function knownKeys(known: readonly string[]): string {
  if (known.length === 0) return 'no keys are known here'
  const shown = known.slice(0, SUGGESTED_KEYS_MAX).join(', ')
  return `known keys: ${shown}${known.length > SUGGESTED_KEYS_MAX ? ', …' : ''}`
}

function emptyMap(line: number): YamlMap {
  return { kind: 'map', line, entries: [] }
}

function isNothing(tree: YamlTree): boolean {
  return tree.kind === 'scalar' && tree.value === null
}

function shownTree(tree: YamlTree): string {
  switch (tree.kind) {
    case 'map':
      return 'a section'
    case 'scalar':
      return tree.value === null ? 'nothing' : shortenText(JSON.stringify(tree.value))
    case 'list': {
      const items = tree.items.slice(0, LIST_ITEMS_SHOWN_MAX)
      if (!tree.items.every((item) => item.kind === 'scalar')) return 'a list'
      return shortenText(JSON.stringify(items.map((item) => item.kind === 'scalar' && item.value)))
    }
  }
}
