import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { type FormedPiece, piecesOf } from './fragment.ts'
import type { MarkedSource, Marker } from './markers.ts'
import { type Bound, gapOf, match, ownerOf } from './match.ts'
import { isTree, nameOf, parse, type Tree, type Visit, walk } from './tree.ts'

const root = resolve(import.meta.dirname, '../..')

/**
 * One place of the source, and the code that replaces it. test/guards/README.md describes the
 * format of the file.
 */
export interface Change {
  /** Name of the marked statement or member. */
  readonly marker: string
  /** Number of the match to change, and the number of all matches. */
  readonly ordinal: { readonly at: number; readonly of: number } | null
  readonly before: string
  /** The new code; empty if the matched code is deleted. */
  readonly after: string
  /** Names in `after` that need not exist in the source. */
  readonly newNames: readonly string[]
}

export interface Mutation {
  readonly name: string
  /** The fault that the mutated code prevents; empty if another list contains it. */
  readonly reason: string
  /** Path of the mutation file, relative to the root of the project. */
  readonly path: string
  readonly changes: readonly Change[]
}

/**
 * Reads the mutations of a folder. The name of a mutation is its path below the folder, without the
 * extension.
 */
export function readMutations(folder: string): Mutation[] {
  const all = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const files = all.filter((file) => file.endsWith('.mutation')).sort()
  return files.map((file) => readMutation(folder, file.slice(0, -'.mutation'.length)))
}

export function readMutation(folder: string, name: string): Mutation {
  const path = join(folder, `${name}.mutation`)
  return parseMutation(name, relative(root, path), readFileSync(path, 'utf8'))
}

/**
 * The attack test for a mutation that removes its guard, by the name of the mutation: both `a` and
 * `a--second-guard` belong to `test/attacks/a.test.ts`.
 */
export function attackTestOf(mutationName: string): string {
  return `test/attacks/${mutationName.split('--')[0] ?? ''}.test.ts`
}

/** @throws if the text does not have the format that test/guards/README.md describes. */
export function parseMutation(name: string, path: string, text: string): Mutation {
  const lines = text.trimEnd().split('\n')
  const reason = /^# Guard: (.+)$/.exec(lines[0] ?? '')?.[1] ?? ''
  if (reason !== '') lines.shift()
  const places: { marker: string; lines: string[] }[] = []
  for (const line of lines) {
    const place = /^@ place (\d+)$/.exec(line)?.[1]
    if (place !== undefined) places.push({ marker: `${name}:${place}`, lines: [] })
    else if (places.length === 0) places.push({ marker: name, lines: [line] })
    else places.at(-1)?.lines.push(line)
  }
  if (places.length === 0) throw malformed(path)
  return { name, reason, path, changes: places.map((place) => parseChange(path, place)) }
}

function parseChange(
  path: string,
  { marker, lines }: { readonly marker: string; readonly lines: readonly string[] },
): Change {
  const heads = lines.filter((line) => line.startsWith('@'))
  const [before = '', after = ''] = ['-', '+'].map((sign) => {
    const own = lines.filter((line) => line.startsWith(sign))
    return own.map((line) => line.slice(1).replace(/^ /, '')).join('\n')
  })
  // The lines must be in this order: heads, old code, new code.
  const order = lines.map((line) => '@-+'.indexOf(line[0] ?? ''))
  const isOrdered = order.every((rank, k) => rank >= Math.max(0, order[k - 1] ?? 0))
  let ordinal: Change['ordinal'] = null
  let newNames: readonly string[] = []
  for (const head of heads) {
    const [, at, of] = /^@ match (\d+) of (\d+)$/.exec(head) ?? []
    const names = /^@ new (.+)$/.exec(head)?.[1]
    if (at !== undefined) ordinal = { at: Number(at), of: Number(of) }
    else if (names !== undefined) newNames = names.split(',').map((name) => name.trim())
    else throw malformed(path)
  }
  if (!isOrdered || before.trim() === '') throw malformed(path)
  return { marker, ordinal, before, after, newNames }
}

function malformed(path: string): Error {
  return new Error(`${path}: not the form that test/guards/README.md describes`)
}

/** A mutation does not fit the current source. The message contains the reason and the remedy. */
export class MutationMisfit extends Error {}

/** A source file to which a mutation was applied. */
export interface MutatedFile {
  /** Path relative to the root of the project. */
  readonly path: string
  readonly text: string
}

/** @throws {MutationMisfit} */
export function applyMutation(mutation: Mutation, source: MarkedSource): MutatedFile[] {
  const edits = new Map<string, { readonly text: string; readonly edits: Edit[] }>()
  for (const change of mutation.changes) {
    const { marker, marked } = findMarked(mutation, change, source)
    const edit = new Placement(mutation, change, marker, marked, source).edit()
    const { path, text } = marker.file
    const known = edits.get(path) ?? { text, edits: [] }
    edits.set(path, { text, edits: [...known.edits, edit] })
  }
  return [...edits].map(([path, file]) => {
    const text = edited(file.text, file.edits)
    if (text === file.text) throw new MutationMisfit(`${mutation.path}: it changes nothing`)
    if (parse(text, path.endsWith('x') ? 'tsx' : 'ts') === null) {
      throw new MutationMisfit(`${mutation.path}: ${path} is no TypeScript with it`)
    }
    return { path, text }
  })
}

/** @returns a sentence for each mutation that does not fit the source. */
export function misfitsOf(mutations: readonly Mutation[], source: MarkedSource): string[] {
  return mutations.flatMap((mutation) => {
    try {
      applyMutation(mutation, source)
      return []
    } catch (error) {
      if (!(error instanceof MutationMisfit)) throw error
      return [error.message]
    }
  })
}

/** @returns a sentence for each marker in the source to which no mutation belongs, or several. */
export function markerMisfits(mutations: readonly Mutation[], source: MarkedSource): string[] {
  const paths = new Map<string, string[]>()
  for (const { path, changes } of mutations) {
    for (const { marker } of changes) paths.set(marker, [...(paths.get(marker) ?? []), path])
  }
  return source.markers.flatMap(({ name, file, line }) => {
    const found = paths.get(name) ?? []
    if (found.length === 1) return []
    const place = `${file.path}:${line}: "@guard ${name}"`
    return found.length === 0
      ? [`${place} belongs to no mutation; remove the marker, or write the mutation`]
      : [`${place} belongs to ${found.join(' and ')}; rename one of them`]
  })
}

function findMarked(
  { path }: Mutation,
  { marker: name }: Change,
  { markers }: MarkedSource,
): { readonly marker: Marker; readonly marked: Visit } {
  const found = markers.filter((one) => one.name === name)
  const [marker] = found
  if (marker === undefined) {
    throw new MutationMisfit(
      `${path}: no comment "// @guard ${name}" is in src; put it before the statement or member to mutate, or delete the mutation with its proof`,
    )
  }
  if (found.length > 1) {
    const places = found.map(({ file, line }) => `${file.path}:${line}`).join(' and ')
    throw new MutationMisfit(`${path}: "@guard ${name}" is at ${places}; leave it at one of them`)
  }
  if (marker.marked === null) {
    throw new MutationMisfit(
      `${path}: no statement or member follows "@guard ${name}" at ${marker.file.path}:${marker.line}; put the comment before one`,
    )
  }
  return { marker, marked: marker.marked }
}

/** Consecutive nodes that have the form of a fragment. */
interface Match extends Omit<Visit, 'node'> {
  readonly nodes: readonly Tree[]
  readonly bound: Bound
}

interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

function edited(text: string, edits: readonly Edit[]): string {
  let result = text
  for (const { start, end, text: put } of edits.toSorted((a, b) => b.start - a.start)) {
    result = result.slice(0, start) + put + result.slice(end)
  }
  return result
}

const COMMA_LISTS = new Set(['properties', 'elements', 'arguments', 'params'])

/** Applies one change to its place in the source. */
class Placement {
  readonly #path: string
  readonly #change: Change
  readonly #marker: Marker
  readonly #marked: Visit
  readonly #source: MarkedSource
  readonly #text: string

  constructor(
    { path }: Mutation,
    change: Change,
    marker: Marker,
    marked: Visit,
    source: MarkedSource,
  ) {
    this.#path = path
    this.#change = change
    this.#marker = marker
    this.#marked = marked
    this.#source = source
    this.#text = marker.file.text
  }

  edit(): Edit {
    const { before, after } = this.#change
    const found = piecesOf(before).flatMap((piece) => {
      const matches = this.#matches(piece)
      return matches.length === 0 ? [] : [{ piece, matches }]
    })
    const [first] = found
    if (first === undefined) {
      throw this.#misfit(`nothing has the form of the "-" lines; write them for the code as it is`)
    }
    const place = this.#theOne(first.matches)
    if (after === '' && COMMA_LISTS.has(place.member)) return this.#withoutItem(place)
    const put = piecesOf(after).find(({ form }) => form === first.piece.form)
    if (put === undefined) {
      throw this.#misfit(`the "-" lines are ${first.piece.form}, and the "+" lines are not`)
    }
    return this.#replace(place, put)
  }

  #misfit(what: string): MutationMisfit {
    const { file, line, name } = this.#marker
    return new MutationMisfit(
      `${this.#path}: below "@guard ${name}" at ${file.path}:${line} ${what}`,
    )
  }

  #theOne(matches: readonly Match[]): Match {
    const { ordinal } = this.#change
    const one = matches[(ordinal?.at ?? 1) - 1]
    if (one !== undefined && matches.length === (ordinal?.of ?? 1)) return one
    const given = ordinal === null ? '' : `, not ${ordinal.of},`
    throw this.#misfit(
      `${matches.length}${given} places have the form of the "-" lines; add to them until one is left, or write "@ match K of ${matches.length}" above them`,
    )
  }

  #matches(piece: FormedPiece): Match[] {
    const count = piece.nodes.length
    const found: Match[] = []
    const add = (nodes: readonly Tree[], visit: Omit<Visit, 'node'>): void => {
      const bound = match(piece, nodes, visit)
      if (bound !== null) found.push({ ...visit, nodes, bound })
    }
    const visitor = (visit: Visit): void => {
      const { node, list, at } = visit
      if (count === 1) add([node], visit)
      else if (list !== null) {
        const run = list.slice(at, at + count).filter(isTree)
        if (run.length === count) add(run, visit)
      }
    }
    walk(this.#marked.node, visitor, this.#marked)
    return found
  }

  #replace(place: Match, put: FormedPiece): Edit {
    const [first, last] = [place.nodes[0], place.nodes.at(-1)]
    if (first === undefined || last === undefined) throw this.#misfit('nothing is to be replaced')
    const { start } = first
    const text = this.#written(put, place.bound)
    if (put.form === 'an expression' || put.form === 'a type') {
      return { start, end: last.end, text: this.#asOperand(place, put, text) }
    }
    if (put.nodes.length === 0) {
      const semicolon = this.#text.slice(start, last.end).endsWith(';') ? ';' : ''
      return { start, end: last.end, text: place.list === null ? '{}' : semicolon }
    }
    // If a semicolon is on the next line, the parser includes it in the statement before it.
    const hadSemicolon = this.#text.slice(start, last.end).endsWith(';') && !text.endsWith(';')
    const ended = hadSemicolon ? `${text};` : text
    return { start, end: last.end, text: place.list === null ? ended : separated(ended) }
  }

  #withoutItem({ nodes, list, at }: Match): Edit {
    const [first, last] = [nodes[0], nodes.at(-1)]
    const next = list?.[at + nodes.length]
    const previous = list?.[at - 1]
    const start = isTree(next) || !isTree(previous) ? first?.start : previous.end
    const end = isTree(next) ? next.start : last?.end
    if (start === undefined || end === undefined) throw this.#misfit('nothing is to be deleted')
    return { start, end, text: '' }
  }

  /**
   * Puts an operand in parentheses unless it never needs them, because parentheses would break an
   * optional chain.
   */
  #asOperand({ parent, member }: Match, put: FormedPiece, text: string): string {
    const isPlain =
      /^(?:Identifier|Literal|(?:Call|Member|Chain|This|Array)\w*|TS\w+Keyword)$/.test(
        put.nodes[0]?.type ?? '',
      ) || /^(?:arguments|elements)$/.test(member)
    const isStatement = parent?.type === 'ExpressionStatement'
    if (isStatement) return separated(text)
    const operand = isPlain ? text : `(${text})`
    const key = parent?.['shorthand'] === true && member === 'value' ? parent['key'] : null
    return isTree(key) ? `${this.#text.slice(key.start, key.end)}: ${operand}` : operand
  }

  /**
   * @returns the text of the fragment, with all names and placeholders replaced by the source code
   * that they match.
   */
  #written(put: FormedPiece, bound: Bound): string {
    const declared = declaredIn(put)
    const edits: Edit[] = []
    const edit = ({ start, end }: Tree, text: string): void => {
      edits.push({ start, end, text })
    }
    const visitor = ({ node, parent, member }: Visit): boolean => {
      const gap = gapOf(node)
      if (gap !== null) {
        edit(node, this.#gapText(gap, bound))
        return false
      }
      const isShort = node['shorthand'] === true || isShortSpecifier(node)
      if (isShort) {
        const [outer, inner] = SHORT[node.type] ?? ['key', 'value']
        const key = node[outer]
        const value = node[inner]
        const isDefault = isTree(value) && value.type === 'AssignmentPattern'
        const variable = isDefault ? value['left'] : value
        if (isTree(key) && isTree(variable)) {
          const names = [
            this.#nameNow(key, node, outer, put, bound, declared),
            this.#nameNow(variable, node, inner, put, bound, declared),
          ]
          const joint = outer === 'key' ? ': ' : ' as '
          edit(variable, names[0] === names[1] ? `${names[0]}` : names.join(joint))
        }
        if (isDefault && isTree(value['right'])) {
          walk(value['right'], visitor, { parent: value, member: 'right', list: null, at: 0 })
        }
        return false
      }
      const name = nameOf(node, parent, member)
      if (name === null) return true
      // A type annotation may follow the name.
      const end = node.type === 'Identifier' ? node.start + name.name.length : node.end
      edits.push({
        start: node.start,
        end,
        text: this.#nameNow(node, parent, member, put, bound, declared),
      })
      return true
    }
    for (const node of put.nodes) {
      walk(node, visitor, { parent: null, member: '', list: null, at: 0 })
    }
    return this.#withEdits(put, edits)
  }

  #withEdits(put: FormedPiece, edits: readonly Edit[]): string {
    const end = put.text.length - put.end
    const text = edited(put.text, edits)
    return text.slice(put.start, text.length - end)
  }

  #gapText(gap: string, { gaps }: Bound): string {
    const nodes = gaps.get(gap)
    if (nodes === undefined)
      throw this.#misfit(`the "+" lines name ${gap}, and the "-" lines do not`)
    const [first, last] = [nodes[0], nodes.at(-1)]
    if (first === undefined || last === undefined) return ''
    return this.#text.slice(first.start, last.end)
  }

  #nameNow(
    node: Tree,
    parent: Tree | null,
    member: string,
    put: FormedPiece,
    bound: Bound,
    declared: ReadonlySet<string>,
  ): string {
    const found = nameOf(node, parent, member)
    if (found === null) return put.text.slice(node.start, node.end)
    const { name, role } = found
    if (role === 'itself') return name
    const now =
      role === 'variable'
        ? bound.variables.get(name)
        : this.#propertyNow(name, ownerOf(parent, put.text), bound)
    if (now !== undefined) return now
    const isKnown =
      this.#change.newNames.includes(name) ||
      (role === 'variable'
        ? declared.has(name) || globals.has(name) || this.#usesVariable(name)
        : builtinProperties.has(name) || this.#source.has(name.replace('#', '')))
    if (isKnown) return name
    throw this.#misfit(
      `the "+" lines name ${name}, which ${role === 'variable' ? this.#marker.file.path : 'src'} no longer has; write the name that it has now`,
    )
  }

  #propertyNow(name: string, owner: string, { properties }: Bound): string | undefined {
    const names = properties.get(name)
    if (names === undefined) return undefined
    const exact = names.get(owner)
    if (exact !== undefined) return exact
    const all = new Set(names.values())
    if (all.size === 1) return [...all][0]
    throw this.#misfit(
      `the "-" lines have several properties ${name}, which are ${[...all].join(' and ')} now; the "+" lines do not show which one is meant`,
    )
  }

  #usesVariable(name: string): boolean {
    let isUsed = false
    walk(this.#marker.file.parsed.program, ({ node, parent, member }) => {
      const found = nameOf(node, parent, member)
      if (found?.name === name && found.role === 'variable') isUsed = true
      return !isUsed
    })
    return isUsed
  }
}

/**
 * Without semicolons, a statement that begins with such a character would continue the previous
 * line.
 */
function separated(statement: string): string {
  return /^[([`/+-]/.test(statement) ? `;${statement}` : statement
}

const SHORT: Readonly<Record<string, readonly [string, string]>> = {
  ImportSpecifier: ['imported', 'local'],
}

function isShortSpecifier({ type, imported, local }: Tree): boolean {
  return (
    type === 'ImportSpecifier' &&
    isTree(imported) &&
    isTree(local) &&
    imported.start === local.start
  )
}

/**
 * @returns the variables that a fragment declares: parameters, and all names to the left of an
 * assignment.
 */
function declaredIn({ nodes }: FormedPiece): ReadonlySet<string> {
  const names = new Set<string>()
  const addAll = (pattern: unknown): void => {
    for (const one of [pattern].flat()) {
      if (!isTree(one)) continue
      walk(one, ({ node, parent, member }) => {
        const found = nameOf(node, parent, member)
        if (found?.role === 'variable') names.add(found.name)
      })
    }
  }
  for (const root of nodes) {
    walk(root, ({ node }) => {
      if (/^(?:VariableDeclarator|Function|Class|TS\w+Declaration)/.test(node.type))
        addAll(node['id'])
      if (/Function/.test(node.type)) addAll(node['params'])
      if (node.type === 'CatchClause') addAll(node['param'])
    })
  }
  return names
}

/** Types that the language defines. */
const types =
  'Record Readonly Partial Required Pick Omit Exclude Extract NonNullable ReturnType Parameters Awaited ReadonlyArray ReadonlyMap ReadonlySet Iterable AsyncIterable Iterator Generator ArrayLike PromiseLike NodeJS'
const globals: ReadonlySet<string> = new Set([
  ...Object.getOwnPropertyNames(globalThis),
  ...types.split(' '),
])

const builtinProperties: ReadonlySet<string> = new Set(
  Object.getOwnPropertyNames(globalThis).flatMap((name) => {
    const value = (globalThis as Record<string, unknown>)[name]
    if (typeof value !== 'function' && typeof value !== 'object') return []
    const prototype = (value as { readonly prototype?: object } | null)?.prototype
    return [
      ...Object.getOwnPropertyNames(value ?? {}),
      ...Object.getOwnPropertyNames(prototype ?? {}),
    ]
  }),
)
