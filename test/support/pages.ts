import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const docs = resolve(import.meta.dirname, '../../docs')

/** @returns the text of a page; its name is its path in `docs`. */
export function pageText(name: string): string {
  return readFileSync(join(docs, name), 'utf8')
}

/** @returns the names of all pages in a folder of `docs` and its subfolders. */
export function pageNames(folder = ''): string[] {
  return readdirSync(join(docs, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name))
    .sort()
}

/** @returns the `sh` blocks of a text in order, without the indentation of a list. */
export function shellBlocks(text: string): string[] {
  return [...text.matchAll(/^( *)```sh\n(.*?)^ *```$/gms)].map(([, indent = '', block = '']) =>
    block.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  )
}

/** @returns the lines of output that a text shows directly after each selected `sh` block. */
export function shownOutput(text: string, isTyped: (block: string) => boolean): string[] {
  const pairs = text.matchAll(/^( *)```sh\n(.*?)^ *```\n *```text\n(.*?)^ *```$/gms)
  return [...pairs].flatMap(([, indent = '', block = '', output = '']) => {
    const plain = block.replaceAll(new RegExp(`^${indent}`, 'gm'), '')
    return isTyped(plain) ? output.trimEnd().split('\n') : []
  })
}

/** @returns the `sh` blocks under a heading of the second level. */
export function shellBlocksBelow(name: string, heading: string): string[] {
  const sections = pageText(name).split(/^## /m)
  const section = sections.find((one) => one.startsWith(`${heading}\n`))
  if (section === undefined) throw new Error(`docs/${name} has no heading ${heading}`)
  return shellBlocks(section)
}
