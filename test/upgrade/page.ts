import { shellBlocksBelow } from '../support/pages.ts'

/** @returns the lines of each `sh` block under a heading of docs/operate/upgrade.md. */
export function blocksOf(heading: string): readonly (readonly string[])[] {
  return shellBlocksBelow('operate/upgrade.md', heading).map((block) => block.trimEnd().split('\n'))
}
