import { createInterface } from 'node:readline/promises'

/**
 * Prompts on the terminal for the exact text.
 * @returns the text that the user typed.
 */
export async function promptExactText(wanted: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return (await terminal.question(`type "${wanted}" to continue: `)).trim()
  } finally {
    terminal.close()
  }
}
