import { createInterface } from 'node:readline/promises'

/** Asks on the terminal for a text word by word. @returns what was typed. */
export async function typedText(wanted: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return (await terminal.question(`type "${wanted}" to continue: `)).trim()
  } finally {
    terminal.close()
  }
}
