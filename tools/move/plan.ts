import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { format } from 'oxfmt'
import {
  moveInnerNames,
  moveLinks,
  moveMentions,
  moveRooms,
  type Count,
  type Kind,
} from './mentions.ts'
import type { MovedPaths } from './moved-paths.ts'
import {
  applyHunks,
  goesByItsLines,
  hunksFor,
  moveLines,
  sectionsOf,
  type Section,
} from './patches.ts'
import { moveSpecifiers, moveSpecifiersOfLine } from './specifiers.ts'

/** All changes of a move; they are computed before the first one is made. */
export interface Plan {
  /** The new text of each file that is rewritten, by its new path. */
  readonly texts: ReadonlyMap<string, string>
  readonly counts: ReadonlyMap<Kind, number>
  /** Places that a person has to judge, each with the reason. */
  readonly toLookAt: readonly string[]
  /** Patches that fitted before, and cannot be made to fit. */
  readonly lostPatches: readonly string[]
}

const ROOM_TABLE = 'test/tidy.test.ts'
const CHANGES = 'CHANGELOG.md'
/** Digests of the message definitions that the generated code belongs to. */
const DIGESTS = 'proto/gen/SOURCES.sha256'
/** Recorded files keep their text. */
const leftAlone = /^(?:package-lock\.json|LICENSE|test\/releases\/.*\.(?:json|tgz))$/

class Planner {
  readonly texts = new Map<string, string>()
  readonly counts = new Map<Kind, number>()
  readonly toLookAt: string[] = []
  readonly lostPatches: string[] = []
  readonly #root: string
  readonly #moved: MovedPaths
  readonly #formatOptions: Readonly<Record<string, unknown>>

  constructor(root: string, moved: MovedPaths) {
    this.#root = root
    this.#moved = moved
    this.#formatOptions = formatOptionsOf(root)
  }

  readonly #count = (kind: Kind): void => {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1)
  }

  async plan(tracked: readonly string[]): Promise<void> {
    const files = tracked.filter((file) => !leftAlone.test(file))
    // Patches are held against the new text of their files, and so come last.
    for (const file of files) if (!file.endsWith('.patch')) await this.#planFile(file)
    for (const file of files) if (file.endsWith('.patch')) await this.#planPatch(file)
    this.#planDigests()
  }

  async #planFile(file: string): Promise<void> {
    const old = this.#read(file)
    if (old === undefined) return
    const text = file.endsWith('.ts') ? await this.#program(file, old) : this.#page(file, old)
    this.#write(file, old, text)
  }

  /** Generated code has the comments of its definition: both are rewritten, and stay a pair. */
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

  #withNewPaths(file: string, old: string, count: Count): string {
    const { text, count: specifiers } = moveSpecifiers(file, old, this.#moved)
    for (let k = 0; k < specifiers; k += 1) count('import specifiers')
    const rooms = file === ROOM_TABLE ? moveRooms(text, this.#moved, count) : text
    return this.#mentions(file, rooms, count)
  }

  async #formatted(file: string, text: string): Promise<string> {
    const { code, errors } = await format(posix.basename(file), text, this.#formatOptions)
    if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message ?? 'not formatted'}`)
    return code
  }

  #page(file: string, old: string): string {
    if (!file.endsWith('.md')) return this.#mentions(file, old)
    const linked = moveLinks(file, old, this.#moved, this.#count)
    // A released version keeps the words that it was released with.
    const end = file === CHANGES ? endOfUnreleased(linked) : linked.length
    return this.#mentions(file, linked.slice(0, end)) + linked.slice(end)
  }

  #mentions(file: string, text: string, count: Count = this.#count): string {
    const lines = text.split('\n').map((line) => {
      const inner = file.endsWith('.md') ? moveInnerNames(line, this.#moved, count) : line
      return moveMentions(file, inner, this.#moved, count)
    })
    return lines.join('\n')
  }

  async #planPatch(file: string): Promise<void> {
    const old = this.#read(file)
    if (old === undefined) return
    const text = moveLines(
      old,
      (path) => this.#moved.after(path) ?? path,
      (target, line) => {
        const specified =
          target === undefined ? line : moveSpecifiersOfLine(target, line, this.#moved)
        return moveMentions(target ?? file, specified, this.#moved, () => {})
      },
    )
    const fitting = await this.#fit(file, old, text)
    const [before, after] = [old.split('\n'), fitting.split('\n')]
    for (const line of after) if (!before.includes(line)) this.#count('lines of patches')
    this.#write(file, old, fitting)
  }

  /** Makes the hunks for a file again if the formatter has laid its lines differently. */
  async #fit(name: string, old: string, text: string): Promise<string> {
    const parts = text.split(/^(?=--- a\/)/m)
    const formerSections = sectionsOf(old)
    const firstSection = parts.length - formerSections.length
    const fitting: string[] = []
    for (const [at, part] of parts.entries()) {
      const former = formerSections[at - firstSection]
      const isFitting = former === undefined || this.#stillFits(former, part)
      const hunks = isFitting ? '' : await this.#newHunks(former, part)
      if (hunks === undefined) this.lostPatches.push(name)
      fitting.push(isFitting ? part : part.slice(0, part.indexOf('\n@@ ') + 1) + (hunks ?? ''))
    }
    return fitting.join('')
  }

  /** @returns whether the part of a patch fits the new text; a broken one is left as it is. */
  #stillFits(former: Section, part: string): boolean {
    const old = this.#read(former.file)
    if (old === undefined || applyHunks(former.hunks, old) === undefined) return true
    const hunks = sectionsOf(part)[0]?.hunks ?? []
    const now = this.texts.get(this.#moved.after(former.file) ?? former.file) ?? old
    const hasSameLines = now.split('\n').length === old.split('\n').length
    return (hasSameLines || goesByItsLines(hunks, now)) && applyHunks(hunks, now) !== undefined
  }

  async #newHunks({ file, hunks }: Section, patch: string): Promise<string | undefined> {
    const old = this.#read(file)
    const patched = old === undefined ? undefined : applyHunks(hunks, old)
    if (old === undefined || patched === undefined) return undefined
    const raw = this.#withNewPaths(file, old, () => {})
    const rawPatched = this.#withNewPaths(file, patched, () => {})
    const layouts = {
      raw,
      rawPatched,
      formatted: await this.#formatted(file, raw),
      formattedPatched: await this.#formatted(file, rawPatched),
    }
    const hasContext = /^ /m.test(patch.slice(patch.indexOf('\n@@ ')))
    return hunksFor(layouts, hasContext ? 3 : 0)
  }

  #write(file: string, old: string, text: string): void {
    if (text !== old) this.texts.set(this.#moved.after(file) ?? file, text)
  }

  /** @returns undefined for a file of bytes, or one that was deleted and is tracked still. */
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

  /** Rooms named in an expression as `src\/(raft|fsm)\/`, of which one may have moved. */
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
