import {
  Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  Scalar,
  visit,
  type YAMLError,
  type YAMLWarning,
} from 'yaml'

import { escapeUnprintable, firstUnprintableCharacter } from '../../lib/text/terminal-text.ts'

/**
 * Limits of a YAML tree after its aliases are expanded, because aliases let a small file describe a
 * huge tree.
 */
export const yamlTreeLimits = { yamlNodesMax: 100_000, yamlDepthMax: 32 } as const

interface YamlTreeLimits {
  /**
   * Maximum values of one YAML document after its aliases are expanded; above that, the document
   * is refused.
   */
  readonly yamlNodesMax: number
  /**
   * Maximum nesting of one YAML document after its aliases are expanded; above that, the
   * document is refused.
   */
  readonly yamlDepthMax: number
}

export type YamlScalar = string | number | boolean | null

/** A YAML document with aliases and tags resolved; lines count from 1. */
export type YamlTree =
  | { readonly kind: 'scalar'; readonly line: number; readonly value: YamlScalar }
  | { readonly kind: 'list'; readonly line: number; readonly items: readonly YamlTree[] }
  | { readonly kind: 'map'; readonly line: number; readonly entries: readonly YamlEntry[] }

export interface YamlEntry {
  readonly key: string
  readonly line: number
  readonly value: YamlTree
}

interface YamlFault {
  readonly line: number | null
  readonly problem: string
}

/** A key that occurs more than once in its section. */
interface YamlDuplicate {
  readonly line: number
  readonly key: string
}

type YamlParsed =
  | {
      readonly ok: true
      readonly tree: YamlTree
      readonly duplicates: readonly YamlDuplicate[]
    }
  | { readonly ok: false; readonly faults: readonly YamlFault[] }

/**
 * Every document is read as YAML 1.2, even with the directive `%YAML 1.1`. The tags of YAML 1.1,
 * such as `!!binary`, are unknown: the console contains no code for them.
 */
const parserOptions = { schema: 'core', resolveKnownTags: false, uniqueKeys: false } as const

/**
 * Parses YAML 1.2; never throws. A tag that is not in the core schema is a fault, because the
 * parser would ignore the tag.
 * @param duplicates whether a duplicate key in a section is a fault, or its last value is used.
 */
export function parseYamlTree(
  text: string,
  limits: YamlTreeLimits = yamlTreeLimits,
  duplicates: 'are faults' | 'replace' = 'are faults',
): YamlParsed {
  const lines = new LineCounter()
  try {
    const document = parseDocument(text, { ...parserOptions, lineCounter: lines })
    const unknownTags = document.warnings.filter(({ code }) => code === 'TAG_RESOLVE_FAILED')
    const errors = document.errors.length > 0 ? document.errors : unknownTags
    if (errors.length > 0) return { ok: false, faults: syntaxFaults(errors, lines, text) }
    const builder = new TreeBuilder(document, lines, limits)
    const tree = builder.tree(document.contents, 1, 0)
    const found = builder.duplicates
    return found.length > 0 && duplicates === 'are faults'
      ? { ok: false, faults: duplicateFaults(found) }
      : { ok: true, tree, duplicates: found }
  } catch (error) {
    if (error instanceof TreeFault) {
      return { ok: false, faults: [{ line: error.line, problem: error.message }] }
    }
    // For some malformed texts, the parser throws an error instead of reporting errors.
    const problem = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)
    return { ok: false, faults: [{ line: null, problem: `is not YAML: ${problem}` }] }
  }
}

/** Formats plain data as YAML without folded lines, and escapes terminal control characters. */
export function formatYaml(value: unknown): string {
  const document = new Document(value)
  visit(document, {
    Scalar(_, scalar) {
      const { value: text } = scalar
      // YAML supports escapes only in double quotes.
      // @guard names-at-a-terminal--yaml
      if (typeof text === 'string' && needsEscapes(text)) scalar.type = Scalar.QUOTE_DOUBLE
    },
  })
  return escapeUnprintable(document.toString({ lineWidth: 0 }))
}

/**
 * Whether the string needs escapes: a YAML block scalar may contain line feeds and tabs, but no
 * other control characters.
 */
function needsEscapes(text: string): boolean {
  return firstUnprintableCharacter(text.replace(/[\t\n]/g, '')) !== null
}

class TreeFault extends Error {
  override readonly name = 'TreeFault'
  readonly line: number

  constructor(line: number, message: string) {
    super(message)
    this.line = line
  }
}

class TreeBuilder {
  readonly #document: Document
  readonly #lines: LineCounter
  readonly #limits: YamlTreeLimits
  readonly duplicates: YamlDuplicate[] = []
  #nodes = 0

  constructor(document: Document, lines: LineCounter, limits: YamlTreeLimits) {
    this.#document = document
    this.#lines = lines
    this.#limits = limits
  }

  /** @param line line of the parent, used for a node without a position. */
  tree(node: unknown, line: number, depth: number): YamlTree {
    this.#nodes += 1
    const { yamlNodesMax, yamlDepthMax } = this.#limits
    if (this.#nodes > yamlNodesMax) {
      throw new TreeFault(line, `holds more than ${yamlNodesMax} values`)
    }
    if (depth > yamlDepthMax) {
      throw new TreeFault(line, `is nested deeper than ${yamlDepthMax} levels`)
    }
    const found: unknown = isAlias(node) ? node.resolve(this.#document) : node
    const at = this.#lineOf(node) ?? line
    if (found === undefined) throw new TreeFault(at, 'refers to an anchor that is not there')
    if (isSeq(found)) {
      const items = found.items.map((item) => this.tree(item, at, depth + 1))
      return { kind: 'list', line: at, items }
    }
    if (isMap(found)) {
      // Collects the entries in a map to find duplicates, because the parser's duplicate check
      // compares each key with all earlier keys, which takes quadratic time.
      const entries = new Map<string, YamlEntry>()
      for (const { key, value } of found.items) {
        const keyLine = this.#lineOf(key) ?? at
        const name = keyText(key)
        if (entries.has(name)) this.duplicates.push({ line: keyLine, key: name })
        entries.set(name, { key: name, line: keyLine, value: this.tree(value, keyLine, depth + 1) })
      }
      return { kind: 'map', line: at, entries: [...entries.values()] }
    }
    return { kind: 'scalar', line: at, value: isScalar(found) ? scalarOf(found.value) : null }
  }

  #lineOf(node: unknown): number | null {
    const offset = (node as Node | null | undefined)?.range?.[0]
    return offset === undefined ? null : this.#lines.linePos(offset).line
  }
}

function keyText(key: unknown): string {
  if (isScalar(key)) return String(key.value)
  return isMap(key) || isSeq(key) ? '(a key that is no text)' : String(key)
}

function scalarOf(value: unknown): YamlScalar {
  const isPlain =
    value === null ||
    typeof value === 'string' ||
    typeof value === 'number' ||
    typeof value === 'boolean'
  return isPlain ? value : String(value)
}

const FAULTS_MAX = 3
const CHARACTERS_MAX = 200

/** Sentences that replace parser messages about YAML grammar. */
const sentences: Readonly<Record<string, string>> = {
  BLOCK_AS_IMPLICIT_KEY: 'a key follows a value on its line; check indentation and colons',
  DUPLICATE_KEY: 'the same key is given twice in this section; keep one of them',
  MULTIPLE_DOCS:
    "a second document begins after '---'; keep one document in a file, and put the other one into a second file",
  MULTILINE_IMPLICIT_KEY: 'a key goes over several lines; check indentation and colons',
  TAB_AS_INDENT: 'a tab is used as indentation; use spaces',
}

/** Matches the YAML parser's message for a line without a colon; its error code is ambiguous. */
const NO_COLON_MESSAGE = /^Implicit map keys need to be followed by map values/
const NO_COLON = "a line has no colon; write 'key: value'"

/** Matches the YAML parser's message for a tag that is not in the core schema. */
const UNKNOWN_TAG_MESSAGE = /^Unresolved tag: (\S+)/
const YAML_TAGS = 'tag:yaml.org,2002:'
const unknownTag = (tag: string): string =>
  `the tag ${plain(tag.replace(YAML_TAGS, '!!'))} is not supported; write the value without a tag`

/** Detects a line of a Go, Helm or Jinja template. */
const TEMPLATE_LINE = /\{\{|\{%/
const TEMPLATE =
  'the file is a template with {{ }} or {% %}; render it first, and use the rendered file'

/**
 * The first syntax faults, at most one per line of the file. Omits further faults, which are often
 * consequences of the first ones.
 */
function syntaxFaults(
  errors: readonly (YAMLError | YAMLWarning)[],
  lines: LineCounter,
  text: string,
): { line: number; problem: string }[] {
  const found = new Map<number, string>()
  for (const { code, message, pos } of errors) {
    const { line } = lines.linePos(pos[0])
    if (!found.has(line)) found.set(line, syntaxSentence(code, message))
  }
  const textLines = text.split('\n')
  const templateLine = [...found.keys()].find((line) =>
    TEMPLATE_LINE.test(textLines[line - 1] ?? ''),
  )
  // In a template, other faults are meaningless until the template is rendered.
  const reported = templateLine === undefined ? [...found] : [[templateLine, TEMPLATE] as const]
  return reported
    .slice(0, FAULTS_MAX)
    .map(([line, problem]) => ({ line, problem: `invalid YAML: ${problem}` }))
}

function syntaxSentence(code: string, message: string): string {
  if (NO_COLON_MESSAGE.test(message)) return NO_COLON
  const [, tag] = UNKNOWN_TAG_MESSAGE.exec(message) ?? []
  if (tag !== undefined) return unknownTag(tag)
  return sentences[code] ?? plain(message)
}

/** The first faults for duplicate keys, one per line of the file. */
function duplicateFaults(
  duplicates: readonly YamlDuplicate[],
): { line: number; problem: string }[] {
  const problem = `invalid YAML: ${sentences['DUPLICATE_KEY'] ?? ''}`
  return [...new Set(duplicates.map(({ line }) => line))]
    .slice(0, FAULTS_MAX)
    .map((line) => ({ line, problem }))
}

function plain(message: string): string {
  const [first = ''] = message.split('\n')
  return first.replace(/ at line \d+, column \d+:?$/, '').slice(0, CHARACTERS_MAX)
}
