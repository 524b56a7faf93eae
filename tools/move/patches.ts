import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** One place of one file that a patch changes. */
interface Hunk {
  /** The line of the file that it begins at, by its header. */
  readonly line: number
  readonly before: readonly string[]
  readonly after: readonly string[]
}

/** What a patch does to one file. */
export interface Section {
  readonly file: string
  readonly hunks: readonly Hunk[]
}

const FILE_LINE = /^(?:---|\+\+\+|diff --git|rename (?:from|to)) /
const HUNK_LINE = /^@@ -(\d+)/

/** Rewrites a line of a patch; `file` is the patched file, undefined above the first. */
export type MoveLine = (file: string | undefined, line: string) => string

/** @returns the patch with its files renamed by `after` and all other lines rewritten by `moveLine`. */
export function moveLines(
  patch: string,
  after: (file: string) => string,
  moveLine: MoveLine,
): string {
  let file: string | undefined
  const lines = patch.split('\n').map((line) => {
    if (FILE_LINE.test(line)) {
      file = /^--- a\/(\S+)$/.exec(line)?.[1] ?? file
      return line.replace(/(?<= [ab]\/)\S+/g, after)
    }
    if (HUNK_LINE.test(line)) return line
    const sign = /^[ +-]/.exec(line)?.[0] ?? ''
    return sign + moveLine(file, line.slice(sign.length))
  })
  return lines.join('\n')
}

export function sectionsOf(patch: string): Section[] {
  const sections: { file: string; hunks: { line: number; before: string[]; after: string[] }[] }[] =
    []
  for (const line of patch.trimEnd().split('\n')) {
    const file = /^--- a\/(\S+)$/.exec(line)?.[1]
    if (file !== undefined) sections.push({ file, hunks: [] })
    const section = sections.at(-1)
    if (section === undefined || FILE_LINE.test(line)) continue
    const at = HUNK_LINE.exec(line)?.[1]
    if (at !== undefined) section.hunks.push({ line: Number(at), before: [], after: [] })
    const hunk = section.hunks.at(-1)
    if (hunk === undefined || at !== undefined) continue
    if (/^[ -]/.test(line)) hunk.before.push(line.slice(1))
    if (/^[ +]/.test(line)) hunk.after.push(line.slice(1))
  }
  return sections
}

/** @returns each line of the file at which the lines of a hunk stand. */
function placesOf({ before }: Hunk, lines: readonly string[]): number[] {
  return lines.flatMap((_, at) => (before.every((line, k) => lines[at + k] === line) ? [at] : []))
}

/**
 * Applies each hunk where its lines stand, and nearest to its line number when they stand there
 * more than once. @returns undefined when a hunk does not fit.
 */
export function applyHunks(hunks: readonly Hunk[], text: string): string | undefined {
  let lines = text.split('\n')
  for (const hunk of hunks.toReversed()) {
    const places = hunk.before.length === 0 ? [hunk.line] : placesOf(hunk, lines)
    const [at] = places.toSorted(
      (a, b) => Math.abs(a + 1 - hunk.line) - Math.abs(b + 1 - hunk.line),
    )
    if (at === undefined || at > lines.length) return undefined
    lines = lines.toSpliced(at, hunk.before.length, ...hunk.after)
  }
  return lines.join('\n')
}

/** @returns whether lines inserted above do not change where the hunks apply. */
export function goesByItsLines(hunks: readonly Hunk[], text: string): boolean {
  const lines = text.split('\n')
  return hunks.every((hunk) => hunk.before.length > 0 && placesOf(hunk, lines).length === 1)
}

/** A file and its patched form, both with new paths: before and after they are formatted. */
export interface Layouts {
  readonly raw: string
  readonly rawPatched: string
  readonly formatted: string
  readonly formattedPatched: string
}

/**
 * Makes the hunks of a patch again for a file whose lines the formatter has laid differently. The
 * lines that the patch changes are formatted only where the formatter changed the same lines.
 * @returns undefined when nothing is left of the patch.
 */
export function hunksFor(layouts: Layouts, contextLines: number): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'flotilla-move-'))
  const git = (...words: readonly string[]): { status: number | null; stdout: string } =>
    spawnSync('git', words, { cwd: folder, encoding: 'utf8' })
  try {
    for (const [name, text] of Object.entries(layouts)) writeFileSync(join(folder, name), text)
    const merged = git('merge-file', '-p', 'formatted', 'raw', 'rawPatched')
    const patched = merged.status === 0 ? merged.stdout : layouts.formattedPatched
    writeFileSync(join(folder, 'patched'), patched)
    const context = `-U${contextLines}`
    const { stdout } = git('diff', '--no-index', '--no-color', context, 'formatted', 'patched')
    const at = stdout.indexOf('\n@@ ')
    return at < 0 ? undefined : stdout.slice(at + 1).replaceAll(/^(@@ .*? @@).*$/gm, '$1')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
