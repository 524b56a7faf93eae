import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { format } from 'oxfmt'
import { moveMarkers } from './markers.ts'
import {
  isProgram,
  moveInnerNames,
  moveLinks,
  moveMentions,
  moveImportRules,
  type CountMention,
  type MentionKind,
} from './mentions.ts'
import type { MovedPaths } from './moved-paths.ts'
import { moveSpecifiers } from './specifiers.ts'

/** All changes of a move. They are computed before the first change is made. */
export interface Plan {
  /** The new text of each file that is rewritten, by its new path. */
  readonly texts: ReadonlyMap<string, string>
  readonly counts: ReadonlyMap<MentionKind, number>
  /** Places that a person must check, each with the reason. */
  readonly toLookAt: readonly string[]
}

const ROOM_TABLE = 'test/tidy.test.ts'
const CHANGES = 'CHANGELOG.md'
/** File with digests of the protobuf definitions from which the code in proto/gen was generated. */
const DIGESTS = 'proto/gen/SOURCES.sha256'
/** Files that stay as they are, because they are generated or recorded. */
const leftAlone = /^(?:package-lock\.json|LICENSE|test\/releases\/.*\.(?:json|tgz))$/

class Planner {
  readonly texts = new Map<string, string>()
  readonly counts = new Map<MentionKind, number>()
  readonly toLookAt: string[] = []
  readonly #root: string
  readonly #moved: MovedPaths
  readonly #formatOptions: Readonly<Record<string, unknown>>

  constructor(root: string, moved: MovedPaths) {
    this.#root = root
    this.#moved = moved
    this.#formatOptions = formatOptionsOf(root)
  }

  readonly #count = (kind: MentionKind): void => {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1)
  }

  async plan(tracked: readonly string[]): Promise<void> {
    for (const file of tracked) if (!leftAlone.test(file)) await this.#planFile(file)
    this.#planDigests()
  }

  async #planFile(file: string): Promise<void> {
    const old = this.#read(file)
    if (old === undefined) return
    const text = isProgram(file) ? await this.#program(file, old) : this.#page(file, old)
    this.#write(file, old, text)
  }

  /**
   * Generated code repeats the comments of its definition. Both are rewritten, so the digest of the
   * definition must be updated as well.
   */
  #planDigests(): void {
    const old = this.#read(DIGESTS)
    if (old === undefined) return
    const text = old.replaceAll(/^\S+ {2}(\S+)$/gm, (line, name: string) => {
      const definition = this.texts.get(`proto/${name}`)
      return definition === undefined ? line : `${hash('sha256', definition)}  ${name}`
    })
    this.#write(DIGESTS, old, text)
  }

  async #program(file: string, old: string): Promise<string> {
    const moved = this.#withNewPaths(file, old, this.#count)
    if (file === ROOM_TABLE) this.#lookAtAlternatives(file, moved)
    if (moved === old || file.startsWith('proto/gen/')) return moved
    const text = await this.#formatted(file, moved)
    this.#lookAtLongComments(file, old, text)
    return text
  }

  #withNewPaths(file: string, old: string, count: CountMention): string {
    const { text, count: specifiers } = moveSpecifiers(file, old, this.#moved)
    for (let k = 0; k < specifiers; k += 1) count('import specifiers')
    const rooms = file === ROOM_TABLE ? moveImportRules(text, this.#moved, count) : text
    const marked = file.startsWith('src/') ? moveMarkers(rooms, this.#moved, count) : rooms
    return this.#mentions(file, marked, count)
  }

  async #formatted(file: string, text: string): Promise<string> {
    const { code, errors } = await format(posix.basename(file), text, this.#formatOptions)
    if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message ?? 'not formatted'}`)
    return code
  }

  #page(file: string, old: string): string {
    if (!file.endsWith('.md')) return this.#mentions(file, old)
    const linked = moveLinks(file, old, this.#moved, this.#count)
    // The sections of released versions stay as they are.
    const end = file === CHANGES ? endOfUnreleased(linked) : linked.length
    return this.#mentions(file, linked.slice(0, end)) + linked.slice(end)
  }

  #mentions(file: string, text: string, count: CountMention = this.#count): string {
    const lines = text.split('\n').map((line) => {
      const inner = file.endsWith('.md') ? moveInnerNames(line, this.#moved, count) : line
      return moveMentions(file, inner, this.#moved, count)
    })
    return lines.join('\n')
  }

  #write(file: string, old: string, text: string): void {
    if (text !== old) this.texts.set(this.#moved.after(file) ?? file, text)
  }

  /**
   * @returns the text of a file; undefined for a binary file, or for a tracked file that was
   * deleted.
   */
  #read(file: string): string | undefined {
    try {
      const text = readFileSync(join(this.#root, file), 'utf8')
      return text.includes('\0') ? undefined : text
    } catch {
      return undefined
    }
  }

  #lookAtLongComments(file: string, old: string, text: string): void {
    const isLong = (line: string): boolean => line.length > 100 && /^\s*(?:\/\/|\/?\*)/.test(line)
    const path = this.#moved.after(file) ?? file
    const known = new Set(old.split('\n'))
    const longIn = (lines: string): number => lines.split('\n').filter(isLong).length
    if (longIn(text) <= longIn(old)) return
    text.split('\n').forEach((line, at) => {
      if (isLong(line) && !known.has(line)) {
        this.toLookAt.push(`${path}:${at + 1}: the comment is over 100 columns`)
      }
    })
  }

  /** Reports regular expressions such as `src\/(raft|fsm)\/` that name a moved folder. */
  #lookAtAlternatives(file: string, text: string): void {
    text.split('\n').forEach((line, at) => {
      const [, names = ''] = /src\\\/\(([\w|]+)\)/.exec(line) ?? []
      const gone = names.split('|').find((name) => this.#moved.after(`src/${name}`) !== undefined)
      if (gone !== undefined) this.toLookAt.push(`${file}:${at + 1}: an expression names ${gone}`)
    })
  }
}

function endOfUnreleased(changes: string): number {
  const [, unreleased = ''] = /(^[^]*?\n## .*unreleased[^]*?\n)## /.exec(changes) ?? []
  return unreleased.length
}

function formatOptionsOf(root: string): Record<string, unknown> {
  const text = readFileSync(join(root, '.oxfmtrc.json'), 'utf8')
  const { ignorePatterns: _, ...options } = JSON.parse(text) as Record<string, unknown>
  return options
}

export async function planMove(
  root: string,
  moved: MovedPaths,
  tracked: readonly string[],
): Promise<Plan> {
  const planner = new Planner(root, moved)
  await planner.plan(tracked)
  const definitions = [...moved.files.keys()].filter((file) => file.endsWith('.proto'))
  if (definitions.length > 0) planner.toLookAt.push('proto/gen: run `make proto`')
  return planner
}
