import { CommanderError } from 'commander'

import {
  CommandFailure,
  EXIT_SUCCESS,
  EXIT_FAILED,
  EXIT_USAGE,
  toOperatorFailure,
} from '../../controller/command-failure.ts'
import { findFailureCause } from './exit-codes.ts'
import { jsonText, printNote } from './output.ts'

const COMMANDER_PREFIX = 'error: '

/**
 * True if the command line requests JSON. It is determined before the command line is parsed,
 * because parsing may fail.
 */
export function isJsonRequested(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  const words = end < 0 ? argv : argv.slice(0, end)
  return words.some(
    (word, at) =>
      ['--json', '-ojson', '--output=json'].includes(word) ||
      (['-o', '--output'].includes(word) && words[at + 1] === 'json'),
  )
}

/**
 * Prints on stderr why a command failed: a sentence, or `{"error":{"code","message",…}}` with JSON
 * output.
 * @returns the exit code.
 */
export function reportFailure(thrown: unknown, isJson: boolean): number {
  const error = toOperatorFailure(thrown)
  if (error instanceof CommanderError) return reportUsage(error, isJson)
  if (isJson) printNote(jsonText({ error: errorObject(error) }))
  else printNote(`flotilla: ${textOf(error)}`)
  return error instanceof CommandFailure ? findFailureCause(error).exitCode : EXIT_FAILED
}

/**
 * Reports a usage error. Commander has already printed its message; help and version count as
 * success.
 */
function reportUsage(error: CommanderError, isJson: boolean): number {
  if (error.exitCode === 0) return EXIT_SUCCESS
  if (isJson) {
    const isHelp = error.code === 'commander.help'
    const message = isHelp ? 'name a command; --help lists them' : sentenceIn(error.message)
    printNote(jsonText({ error: { code: 'USAGE', message } }))
  }
  return EXIT_USAGE
}

function sentenceIn(message: string): string {
  return message.startsWith(COMMANDER_PREFIX) ? message.slice(COMMANDER_PREFIX.length) : message
}

/** The text of an error. For a bug, it includes the stack, which a bug report needs. */
function textOf(error: unknown): string {
  if (error instanceof CommandFailure) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

function errorObject(error: unknown): Readonly<Record<string, unknown>> {
  if (!(error instanceof CommandFailure)) return { code: 'INTERNAL', message: textOf(error) }
  const { status, field } = error as { readonly status?: unknown; readonly field?: unknown }
  return {
    code: findFailureCause(error).errorCode,
    message: error.message,
    ...(typeof field === 'string' ? { field } : {}),
    ...(typeof status === 'number' ? { status } : {}),
  }
}
