import { createInterface } from 'node:readline/promises'

/**
 * Prompts the user to type the exact text.
 * @returns the typed text, which the caller must compare with the wanted one.
 */
export async function promptExactText(wanted: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return (await terminal.question(`type "${wanted}" to continue: `)).trim()
  } finally {
    terminal.close()
  }
}
