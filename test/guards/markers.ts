import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { type Comment, isListed, parse, type Parsed, type Visit, walk } from './tree.ts'

/** A source file, which is parsed when it is first needed. */
export class SourceFile {
  /** Path relative to the root of the project. */
  readonly path: string
  readonly text: string
  #parsed: Parsed | null = null

  constructor(path: string, text: string) {
    this.path = path
    this.text = text
  }

  get parsed(): Parsed {
    this.#parsed ??= parse(this.text, this.path.endsWith('x') ? 'tsx' : 'ts')
    if (this.#parsed === null) throw new Error(`${this.path}: the parser does not understand it`)
    return this.#parsed
  }
}

/**
 * A name in a comment `// @guard NAME, NAME`, with the statement or member that follows the
 * comment.
 */
export interface Marker {
  readonly name: string
  readonly file: SourceFile
  readonly line: number
  /** null: no statement or member follows that could be marked. */
  readonly marked: Visit | null
}

/** All source files, with the markers in them. */
export class MarkedSource {
  readonly markers: readonly Marker[]
  readonly #words: ReadonlySet<string>

  constructor(files: readonly SourceFile[]) {
    this.markers = files.filter(({ text }) => text.includes('@guard ')).flatMap(markersIn)
    this.#words = new Set(files.flatMap(({ text }) => text.match(/[\w$]+/g) ?? []))
  }

  /** @param root folder that contains the sources in `src`. */
  static read(root: string): MarkedSource {
    const entries = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
    const paths = entries
      .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
      .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    return new MarkedSource(
      paths.sort().map((path) => new SourceFile(path, readFileSync(join(root, path), 'utf8'))),
    )
  }

  /** @returns whether any file contains the word, as a name or otherwise. */
  has(word: string): boolean {
    return this.#words.has(word)
  }
}

const MARKER = /^\s*@guard (.+)$/

function markersIn(file: SourceFile): Marker[] {
  const { program, comments } = file.parsed
  const marking = comments.filter(({ value }) => MARKER.test(value))
  const starts = marking.map((comment) => startAfter(comment, comments, file.text))
  const marked = new Map<number, Visit>()
  walk(program, (visit) => {
    const { start } = visit.node
    if (isListed(visit) && starts.includes(start) && !marked.has(start)) marked.set(start, visit)
  })
  return marking.flatMap(({ value, start }, at) => {
    const names =
      MARKER.exec(value)?.[1]
        ?.split(',')
        .map((name) => name.trim()) ?? []
    const line = file.text.slice(0, start).split('\n').length
    return names.map((name) => ({ name, file, line, marked: marked.get(starts[at] ?? -1) ?? null }))
  })
}

/** @returns the start of the code after a comment and the comments that follow it directly. */
function startAfter(comment: Comment, comments: readonly Comment[], text: string): number {
  let end = comment.end
  for (;;) {
    const at = end + (/\S/.exec(text.slice(end))?.index ?? text.length)
    const next = comments.find(({ start }) => start === at)
    if (next === undefined) return at
    end = next.end
  }
}
