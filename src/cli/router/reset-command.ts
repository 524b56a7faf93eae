import { resolve } from 'node:path'

import { quoteShellWord } from '../terminal/output.ts'

/** The command that makes a stopped router with this configuration forget its controllers. */
export function resetCommand(path: string): string {
  return `flotilla router reset ${quoteShellWord(resolve(path))}`
}
