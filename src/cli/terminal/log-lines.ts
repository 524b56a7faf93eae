import { isatty } from 'node:tty'

import { type Logger, pino, stdTimeFunctions } from 'pino'

import { escapeUnprintable, printableLine } from '../../lib/text/terminal-text.ts'

/** An output that receives lines with their newlines. */
export interface LineSink {
  write(line: string): void
}

interface LogLinesOptions {
  readonly level: string
  /** Members that every line contains. */
  readonly base: Readonly<Record<string, unknown>>
}

/**
 * Writes JSON lines with level names:
 * {"level":"info","time":"2026-01-02T03:04:05.678Z",…,"msg":"…"}.
 */
export function createJsonLogger(sink: LineSink, { level, base }: LogLinesOptions): Logger {
  const formatters = { level: (label: string) => ({ level: label }) }
  const escaped: LineSink = { write: (line) => sink.write(escapeUnprintable(line)) }
  return pino({ base, timestamp: stdTimeFunctions.isoTime, level, formatters }, escaped)
}

/** A sink that converts JSON lines to readable lines if stdout is a terminal. */
export function createStdoutSink(sink: LineSink): LineSink {
  return isatty(1) ? new HumanReadableLines(sink, wantsColor(process.env)) : sink
}

/** False if NO_COLOR is not empty (https://no-color.org), and if TERM is `dumb`. */
export function wantsColor(env: NodeJS.ProcessEnv): boolean {
  return (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb'
}

const RESET = '\u001b[0m'
const DIM = '\u001b[2m'
const colours: Readonly<Record<string, string>> = {
  trace: DIM,
  debug: DIM,
  info: '\u001b[32m',
  warn: '\u001b[33m',
  error: '\u001b[31m',
  fatal: '\u001b[31;1m',
}
const LEVEL_COLUMNS = 5

/**
 * Converts JSON lines to `TIME LEVEL message field=value …`, with the stack of an error below.
 */
export class HumanReadableLines implements LineSink {
  readonly #sink: LineSink
  readonly #isColoured: boolean

  constructor(sink: LineSink, isColoured: boolean) {
    this.#sink = sink
    this.#isColoured = isColoured
  }

  write(line: string): void {
    this.#sink.write(`${this.#readable(JSON.parse(line) as Record<string, unknown>)}\n`)
  }

  #readable({ level, time, msg, id, err, ...fields }: Record<string, unknown>): string {
    const name = String(level)
    // @guard names-at-a-terminal--log
    const shown = Object.entries(fields).map(
      ([key, value]) => ` ${printableLine(key)}=${valueText(value)}`,
    )
    const parts = [
      this.#in(DIM, String(time)),
      this.#in(colours[name] ?? '', name.toUpperCase().padEnd(LEVEL_COLUMNS)),
      ...(id === undefined ? [] : [this.#in(DIM, `${valueText(id)}:`)]),
      printableLine(String(msg ?? '')),
    ]
    const rest = shown.length === 0 ? '' : ` ${this.#in(DIM, shown.join(''))}`
    return `${parts.join(' ')}${rest}${errorText(err)}`
  }

  #in(colour: string, text: string): string {
    return this.#isColoured && colour !== '' ? `${colour}${text}${RESET}` : text
  }
}

function valueText(value: unknown): string {
  if (typeof value === 'string' && /^[^\s"=]+$/.test(value)) return printableLine(value)
  return printableLine(JSON.stringify(value))
}

/**
 * The stack of the error as indented lines; only the message if there is no stack, and the value as
 * JSON if there is no message either.
 */
function errorText(error: unknown): string {
  const { stack, message } = (error ?? {}) as {
    readonly stack?: unknown
    readonly message?: unknown
  }
  const text = typeof stack === 'string' ? stack : message
  if (typeof text !== 'string') return error === undefined ? '' : `  err=${valueText(error)}`
  return text
    .split('\n')
    .map((line) => `\n    ${printableLine(line.trim())}`)
    .join('')
}
