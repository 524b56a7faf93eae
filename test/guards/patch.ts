import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The deletion of one guard: a unified diff of one place in one file, its first line a comment that names the guard. */
export interface GuardPatch {
  readonly name: string
  readonly guard: string
  /** From the root of the project. */
  readonly file: string
  readonly before: string
  readonly after: string
}

/** Those of the folders below have the name of their folder before their own. */
export function readPatches(folder: string): GuardPatch[] {
  const all = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const names = all.filter((file) => file.endsWith('.patch'))
  return names.sort().map((file) => {
    return parsePatch(file.replace('.patch', ''), readFileSync(join(folder, file), 'utf8'))
  })
}

/**
 * The test of an attack, by the name of the patch that removes its guard: `a.patch` and `a--second-guard.patch` both belong to
 * `test/attacks/a.test.ts`.
 */
export function attackTestOf(patchName: string): string {
  return `test/attacks/${patchName.split('--')[0] ?? ''}.test.ts`
}

/** @throws when the text is not what {@link GuardPatch} says. */
export function parsePatch(name: string, text: string): GuardPatch {
  const [guard, from, to, place, ...lines] = text.trimEnd().split('\n')
  const file = /^--- a\/(src\/\S+)$/.exec(from ?? '')?.[1]
  const isWellFormed =
    guard?.startsWith('# Guard: ') === true &&
    file !== undefined &&
    to === `+++ b/${file}` &&
    place?.startsWith('@@ ') === true &&
    lines.every((line) => /^[ +-]/.test(line))
  if (!isWellFormed) throw new Error(`${name}: not the deletion of one guard`)
  const side = (other: string): string =>
    lines
      .filter((line) => !line.startsWith(other))
      .map((line) => `${line.slice(1)}\n`)
      .join('')
  const [before, after] = [side('+'), side('-')]
  if (before === after) throw new Error(`${name}: nothing is deleted`)
  return { name, guard: guard.replace('# Guard: ', ''), file, before, after }
}

/**
 * Goes by the lines and not by their numbers, so that a patch outlives what is written elsewhere in its file.
 * @throws when its lines stand in `text` nowhere, or more than once.
 */
export function applyPatch({ name, file, before, after }: GuardPatch, text: string): string {
  const lined = `\n${text}`
  const at = lined.indexOf(`\n${before}`)
  if (at < 0 || lined.indexOf(`\n${before}`, at + 1) >= 0) {
    const found = at < 0 ? 'nowhere' : 'more than once'
    throw new Error(`${name}: its lines stand in ${file} ${found}; write the patch anew`)
  }
  return text.slice(0, at) + after + text.slice(at + before.length)
}
