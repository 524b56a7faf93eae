import { createInterface } from 'node:readline/promises'
import type { Readable, Writable } from 'node:stream'

import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { printableText } from '../../lib/text/terminal-text.ts'

const ANSWER_CHARACTERS_MAX = 4096

/**
 * Terminal for prompts. They are written to stderr, because the output of the command may be piped.
 */
interface Terminal {
  readonly input: Readable & {
    readonly isTTY?: boolean
    readonly setRawMode?: (isRaw: boolean) => unknown
  }
  readonly output: Writable
}

const here: Terminal = { input: process.stdin, output: process.stderr }

/** True if a user can respond to a prompt. */
export function isInteractive({ input }: Terminal = here): boolean {
  return input.isTTY === true
}

/** @returns the typed line without surrounding white space; empty at the end of the input. */
export async function promptLine(
  question: string,
  { input, output }: Terminal = here,
): Promise<string> {
  const lines = createInterface({ input, output, terminal: false })
  try {
    // @guard names-at-a-terminal--question
    output.write(printableText(question))
    const { value } = (await lines[Symbol.asyncIterator]().next()) as { value?: string }
    return (value ?? '').trim().slice(0, ANSWER_CHARACTERS_MAX)
  } finally {
    lines.close()
  }
}

/**
 * Prompts the user to type the exact text.
 * @returns the typed text, which the caller must compare with the wanted one; empty at the end of
 * the input.
 */
export function promptExactText(wanted: string, terminal: Terminal = here): Promise<string> {
  return promptLine(`type "${wanted}" to continue: `, terminal)
}

/**
 * Prompts without showing what the user types.
 * @returns the typed line, including surrounding white space.
 * @throws {CommandFailure} exit 1 at ^C or ^D.
 */
export async function promptHidden(question: string, terminal: Terminal = here): Promise<string> {
  const { input, output } = terminal
  output.write(printableText(question))
  input.setRawMode?.(true)
  try {
    return await typedLine(input)
  } finally {
    input.setRawMode?.(false)
    input.pause()
    output.write('\n')
  }
}

function typedLine(input: Readable): Promise<string> {
  return new Promise((resolve, reject) => {
    const line = new HiddenLine()
    const onData = (chunk: Buffer | string): void => {
      const state = line.take(String(chunk))
      if (state === 'open') return
      input.off('data', onData)
      if (state === 'ended') resolve(line.text)
      else reject(new CommandFailure(EXIT_FAILED, 'interrupted; nothing was changed'))
    }
    input.on('data', onData)
    input.resume()
  })
}

const BACKSPACE = new Set(['\b', '\x7f'])
const GIVE_UP = new Set(['\x03', '\x04'])
const KILL_LINE = '\x15'

/**
 * Reads a line without showing it. The terminal is in raw mode, so this class handles Enter,
 * corrections and ^C.
 */
class HiddenLine {
  text = ''

  take(typed: string): 'open' | 'ended' | 'given up' {
    for (const character of typed) {
      if (character === '\r' || character === '\n') return 'ended'
      if (GIVE_UP.has(character)) return 'given up'
      if (BACKSPACE.has(character)) this.text = this.text.slice(0, -1)
      else if (character === KILL_LINE) this.text = ''
      else if (this.text.length < ANSWER_CHARACTERS_MAX) this.text += character
    }
    return 'open'
  }
}
