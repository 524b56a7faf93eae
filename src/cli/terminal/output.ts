import { formatYaml } from '../../config/engine/yaml-tree.ts'
import { escapeUnprintable, printableLine, printableText } from '../../lib/text/terminal-text.ts'

/** Output formats of a command: a table to read, JSON and YAML for programs. */
export const outputFormats = ['table', 'json', 'yaml'] as const
export type OutputFormat = (typeof outputFormats)[number]

/** Set once, before the command runs, according to the command line. */
let format: OutputFormat = 'table'

export function setOutputFormat(chosen: OutputFormat): void {
  format = chosen
}

/**
 * A table with a title line; columns are padded to their widest cell and separated by two spaces.
 */
export function formatTable(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  // @guard names-at-a-terminal--cell
  const lines = [titles, ...rows].map((line) => line.map((cell) => printableLine(cell)))
  const widths = titles.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0)))
  return lines
    .map((line) =>
      line
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/**
 * Prints one or more lines. Makes control characters visible, so that a terminal does not execute
 * control sequences in text that others chose. Text that must stay on one line must first pass
 * through {@link printableLine}.
 */
export function printLine(text: string): void {
  // @guard names-at-a-terminal--line
  process.stdout.write(`${printableText(text)}\n`)
}

/** Prints a note on stderr, so that it is not part of the command's output. */
export function printNote(text: string): void {
  // @guard names-at-a-terminal--note
  process.stderr.write(`${printableText(text)}\n`)
}

/** Prints a document for programs: YAML if the command line requests it, otherwise JSON. */
export function printJson(value: unknown): void {
  printLine(format === 'yaml' ? formatYaml(plain(value)).trimEnd() : jsonText(value, 2))
}

/** One document in a sequence: a line of JSON, or a YAML document. */
export function formatStreamDocument(value: unknown): string {
  return format === 'yaml' ? `---\n${formatYaml(plain(value))}` : `${jsonText(value)}\n`
}

/** JSON in which control characters are escaped. */
export function jsonText(value: unknown, indent = 0): string {
  // @guard names-at-a-terminal--json
  return escapeUnprintable(JSON.stringify(value, null, indent))
}

/** Removes values that JSON omits, and that YAML would print or refuse. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown
}

/** Quotes a word so that it can be pasted into a shell. */
export function quoteShellWord(word: string): string {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
