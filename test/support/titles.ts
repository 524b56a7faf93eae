import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * A block or test at the beginning of a line, up to its title. With `each`, `for`, `skipIf` and
 * `runIf`, the rows or the condition come first: the title is then the first string of a second
 * call.
 */
const HEADING =
  /^( *)(describe|test)((?:\.\w+)*)(?:(?<=\.(?:each|for|skipIf|runIf))[^]*?\))?\(\s*('(?:[^'\\\n]|\\.)*'|"[^"\n]*"|`[^`\n]*`),/gm

/**
 * Titles in the text of a test file, each after the titles of its blocks, without tests that may be
 * skipped.
 */
export function titlesIn(source: string): string[] {
  const titles: string[] = []
  const blocks: { readonly depth: number; readonly title: string | null }[] = []
  for (const [, indent = '', word, modifier = '', quoted = ''] of source.matchAll(HEADING)) {
    while ((blocks.at(-1)?.depth ?? -1) >= indent.length) blocks.pop()
    const runs = modifier === '' || modifier === '.each' || modifier === '.for'
    const title = runs ? quoted.slice(1, -1).replaceAll(/\\(.)/g, '$1') : null
    const path = [...blocks.map((block) => block.title), title]
    if (word === 'describe') blocks.push({ depth: indent.length, title })
    else if (!path.includes(null)) titles.push(path.join(' > '))
  }
  return titles
}

/** Proofs, each `file > block > test` in `test/`, that name no existing test. */
export function withoutTest(proofs: readonly string[]): string[] {
  const titles = new Map<string, readonly string[]>()
  return proofs.filter((proof) => {
    const [file = ''] = proof.split(' > ', 1)
    const path = join(import.meta.dirname, '..', file)
    if (!titles.has(file))
      titles.set(file, existsSync(path) ? titlesIn(readFileSync(path, 'utf8')) : [])
    return titles.get(file)?.includes(proof.slice(`${file} > `.length)) !== true
  })
}
