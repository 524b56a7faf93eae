import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node as YamlNode,
  parseDocument,
} from 'yaml'

import { canonicalJson } from '../../lib/text/canonical-json.ts'
import { type Fields, type List, type Node, type Option, required } from './values.ts'
import { type ControllerConfig, controllerOptions } from './options.ts'
import { relationFaults } from './relations.ts'
import { nearest } from '../engine/suggest.ts'
import { syntaxFaults } from '../engine/yaml-syntax.ts'

export const CONFIG_BYTES_MAX = 1024 * 1024
const SHOWN_LENGTH_MAX = 60
const VALUE_ITEMS_MAX = 64

/** One thing wrong, fit to be printed: `<source>[:<line>]: <key>: <problem>`. */
export interface ConfigFault {
  /** The file's path, or `environment NAME`. */
  readonly source: string
  /** From 1; null when there is no line to point at. */
  readonly line: number | null
  /** `raft.tickMs`, `web[0].bind`; empty for the file as a whole. */
  readonly key: string
  readonly problem: string
}

export type LoadedConfig =
  | { readonly ok: true; readonly config: ControllerConfig; readonly path: string }
  | { readonly ok: false; readonly faults: readonly ConfigFault[] }

export type Environment = Readonly<Record<string, string | undefined>>

export function formatFault({ source, line, key, problem }: ConfigFault): string {
  const at = line === null ? source : `${source}:${line}`
  return key === '' ? `${at}: ${problem}` : `${at}: ${key}: ${problem}`
}

/**
 * Reads a controller's configuration: the YAML file, then environment variables over it
 * (`raft.tickMs` is FLOTILLA_RAFT_TICK_MS). Every fault is found in one go; nothing is thrown for a
 * bad file.
 */
export function loadControllerConfig(path: string, environment: Environment): LoadedConfig {
  const file = resolve(path)
  const read = readConfigFile(file)
  if (!read.ok) return { ok: false, faults: [wholeFileFault(file, read.problem)] }
  return parseControllerConfig(file, read.text, environment)
}

/**
 * As `loadControllerConfig`, for text already read; relative paths start at the folder of `file`.
 */
export function parseControllerConfig(
  file: string,
  text: string,
  environment: Environment,
): LoadedConfig {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines })
  if (document.errors.length > 0) {
    const faults = syntaxFaults(document.errors, lines)
    return { ok: false, faults: faults.map((fault) => ({ source: file, key: '', ...fault })) }
  }
  const reader = new Reader(file, document, lines, environment)
  const config = reader.read(controllerOptions)
  if (reader.faults.length === 0) {
    for (const { key, problem } of relationFaults(config)) reader.addFault(key, problem)
  }
  if (reader.faults.length > 0) return { ok: false, faults: reader.faults }
  return { ok: true, config, path: file }
}

/** SHA-256, hex, of the options that must be equal on every controller. */
export function clusterFingerprint(config: ControllerConfig): string {
  const shared = sharedValues(controllerOptions, config)
  return createHash('sha256').update(canonicalJson(shared)).digest('hex')
}

function sharedValues(fields: Fields, values: object): Record<string, unknown> {
  const shared: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(values) as [string, unknown][]) {
    const node = fields[key]
    if (node?.kind === 'option' && node.scope === 'cluster') shared[key] = value
    if (node?.kind === 'section' && value !== null && typeof value === 'object') {
      shared[key] = sharedValues(node.fields, value)
    }
  }
  return shared
}

/** `raft.tickMs` → FLOTILLA_RAFT_TICK_MS, `web[0].bind` → FLOTILLA_WEB_0_BIND. */
export function environmentName(key: string): string {
  const words = key
    .replaceAll(/\[(\d+)\]/g, '_$1')
    .replaceAll('.', '_')
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
  return `FLOTILLA_${words.toUpperCase()}`
}

type FileText =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly problem: string }

function readConfigFile(file: string): FileText {
  try {
    if (statSync(file).size > CONFIG_BYTES_MAX) {
      return { ok: false, problem: `is larger than ${CONFIG_BYTES_MAX} bytes` }
    }
    const text = readFileSync(file, 'utf8')
    if (text.includes('\0')) return { ok: false, problem: 'is not a text file' }
    return { ok: true, text }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    if (code === 'ENOENT') return { ok: false, problem: 'file not found' }
    if (code === 'EACCES') return { ok: false, problem: 'no permission to read it' }
    if (code === 'EISDIR') return { ok: false, problem: 'is a folder; name the file in it' }
    return { ok: false, problem: `cannot be read: ${String(error)}` }
  }
}

function wholeFileFault(source: string, problem: string): ConfigFault {
  return { source, line: null, key: '', problem }
}

/** Walks the options table, not the document, so the work is bounded whatever the file holds. */
class Reader {
  readonly faults: ConfigFault[] = []
  readonly #file: string
  readonly #document: Document
  readonly #lines: LineCounter
  readonly #environment: Environment
  /** Keys that a misspelled one was probably meant to be: that they are missing is said already. */
  readonly #meant: string[] = []
  /** Where each key was found, for the faults found later. */
  readonly #places = new Map<string, Pick<ConfigFault, 'source' | 'line'>>()

  constructor(file: string, document: Document, lines: LineCounter, environment: Environment) {
    this.#file = file
    this.#document = document
    this.#lines = lines
    this.#environment = environment
  }

  /** Only meaningful when no fault was found. */
  read(options: typeof controllerOptions): ControllerConfig {
    const values = this.#readFields(options, this.#document.contents, '')
    this.#checkEnvironmentNames()
    return values as unknown as ControllerConfig
  }

  addFault(key: string, problem: string): void {
    const place = this.#places.get(key) ?? { source: this.#file, line: null }
    this.faults.push({ ...place, key, problem })
  }

  #readFields(fields: Fields, node: unknown, prefix: string): Record<string, unknown> {
    const found = this.#resolve(node)
    const members = new Map<string, unknown>()
    if (isMap(found)) {
      for (const { key, value } of found.items) {
        const name = isScalar(key) ? String(key.value) : String(key)
        this.#place(prefix + name, isNode(key) ? key : null)
        if (Object.hasOwn(fields, name)) members.set(name, value)
        else this.#addUnknown(fields, name, prefix)
      }
    } else if (found !== null && !(isScalar(found) && found.value === null)) {
      this.addFault(prefix.slice(0, -1), `expected a section with keys, found ${this.#show(found)}`)
      return {}
    }
    const values: Record<string, unknown> = {}
    for (const [name, member] of Object.entries(fields)) {
      const key = prefix + name
      if (!members.has(name)) this.#inheritPlace(key, prefix)
      values[name] = this.#readNode(member, members.get(name), members.has(name), key)
    }
    return values
  }

  #readNode(member: Node, node: unknown, isGiven: boolean, key: string): unknown {
    switch (member.kind) {
      case 'option':
        return this.#readOption(member, node, isGiven, key)
      case 'section':
        return this.#readFields(member.fields, node, `${key}.`)
      case 'list':
        return this.#readList(member, node, isGiven, key)
    }
  }

  #readOption(member: Option<unknown>, node: unknown, isGiven: boolean, key: string): unknown {
    const name = environmentName(key)
    const text = this.#environment[name]
    if (text !== undefined) {
      this.#places.set(key, { source: `environment ${name}`, line: null })
      const value = member.type.read(member.type.fromText(text), process.cwd())
      if (value === undefined) this.#addUnexpected(member, key, shorten(JSON.stringify(text)))
      return value
    }
    if (isGiven) {
      const found = this.#resolve(node)
      const raw = this.#plain(found)
      const value = member.type.read(raw, dirname(this.#file))
      if (value === undefined) this.#addUnexpected(member, key, this.#show(found))
      return value
    }
    if (member.default === required && !this.#isMeant(key)) {
      this.addFault(key, `is missing; expected ${member.type.expected}`)
    }
    return member.default
  }

  #readList(member: List<Fields>, node: unknown, isGiven: boolean, key: string): unknown[] {
    const found = this.#resolve(node)
    if (!isGiven && (member.itemsMin === 0 || this.#isMeant(key))) return []
    if (!isGiven || !isSeq(found) || found.items.length < member.itemsMin) {
      const problem = isGiven ? `found ${this.#show(found)}` : 'is missing'
      const keys = Object.keys(member.fields).join(', ')
      this.addFault(key, `${problem}; expected a list of sections with the keys ${keys}`)
      return []
    }
    if (found.items.length > member.itemsMax) {
      this.addFault(key, `holds more than ${member.itemsMax} items`)
      return []
    }
    return found.items.map((item, at) => {
      const itemKey = `${key}[${at}]`
      this.#place(itemKey, isNode(item) ? item : null)
      return this.#readFields(member.fields, item, `${itemKey}.`)
    })
  }

  #addUnexpected(member: Option<unknown>, key: string, found: string): void {
    this.addFault(key, `expected ${member.type.expected}, found ${found}`)
  }

  #isMeant(key: string): boolean {
    return this.#meant.some((meant) => key === meant || key.startsWith(`${meant}.`))
  }

  #addUnknown(fields: Fields, name: string, prefix: string): void {
    const suggestion = nearest(name, Object.keys(fields))
    if (suggestion !== null) this.#meant.push(prefix + suggestion)
    const hint =
      suggestion === null
        ? `known keys: ${Object.keys(fields).join(', ')}`
        : `did you mean ${prefix}${suggestion}?`
    this.addFault(prefix + shorten(name), `unknown key; ${hint}`)
  }

  /**
   * A variable that is nearly one of ours is a typo that would otherwise go unnoticed. Others are
   * left alone: a Kubernetes service named flotilla, say, sets FLOTILLA_PORT and
   * FLOTILLA_SERVICE_HOST in every pod.
   */
  #checkEnvironmentNames(): void {
    const known = new Set([...this.#places.keys()].map(environmentName))
    for (const name of Object.keys(this.#environment)) {
      if (!name.startsWith('FLOTILLA_') || known.has(name)) continue
      const suggestion = nearest(name, [...known])
      if (suggestion !== null) {
        const problem = `unknown variable; did you mean ${suggestion}?`
        this.faults.push(wholeFileFault(`environment ${name}`, problem))
      }
    }
  }

  #resolve(node: unknown): unknown {
    const found: unknown = isAlias(node) ? node.resolve(this.#document) : node
    return found ?? null
  }

  /** A scalar, or a short list of scalars: all that a value can be. undefined: something else. */
  #plain(node: unknown): unknown {
    const found = this.#resolve(node)
    if (found === null) return null
    if (isScalar(found)) return found.value
    if (!isSeq(found) || found.items.length > VALUE_ITEMS_MAX) return undefined
    const items = found.items.map((item) => this.#resolve(item))
    return items.every((item) => isScalar(item)) ? items.map(({ value }) => value) : undefined
  }

  #place(key: string, node: YamlNode | null): void {
    const offset = node?.range?.[0]
    const line = offset === undefined ? null : this.#lines.linePos(offset).line
    this.#places.set(key, { source: this.#file, line })
  }

  /** A key that is not there is told at the section that lacks it. */
  #inheritPlace(key: string, prefix: string): void {
    const place = this.#places.get(prefix.slice(0, -1)) ?? { source: this.#file, line: null }
    this.#places.set(key, place)
  }

  #show(node: unknown): string {
    if (isMap(node)) return 'a section'
    const raw = this.#plain(node)
    if (raw === undefined) return 'a list'
    return raw === null ? 'nothing' : shorten(JSON.stringify(raw))
  }
}

function isNode(value: unknown): value is YamlNode {
  return isMap(value) || isSeq(value) || isScalar(value) || isAlias(value)
}

function shorten(text: string): string {
  return text.length <= SHOWN_LENGTH_MAX ? text : `${text.slice(0, SHOWN_LENGTH_MAX)}…`
}
