import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

/** The lines of `sh` below each heading of docs/upgrading.md, a block each. */
export function blocksOf(heading: string): readonly (readonly string[])[] {
  const page = readFileSync(resolve(import.meta.dirname, '../../docs/upgrading.md'), 'utf8')
  const section = page.split(/^## /m).find((one) => one.startsWith(`${heading}\n`))
  if (section === undefined) throw new Error(`docs/upgrading.md has no heading ${heading}`)
  const blocks = [...section.matchAll(/^```sh\n(.*?)^```$/gms)]
  return blocks.map(([, block = '']) => block.trimEnd().split('\n'))
}
