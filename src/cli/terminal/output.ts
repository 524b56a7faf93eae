import { yamlText } from '../../config/engine/yaml-tree.ts'

/** How a verb prints what it found: for people, or for programs. */
export const outputFormats = ['table', 'json', 'yaml'] as const
export type OutputFormat = (typeof outputFormats)[number]

/** Chosen once by the command line, before its verb runs. */
let format: OutputFormat = 'table'

export function useOutputFormat(chosen: OutputFormat): void {
  format = chosen
}

/** Columns padded to their widest cell, two spaces between, a line for the titles first. */
export function formatTable(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const lines = [titles, ...rows]
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

export function printLine(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** A document for programs: YAML when the command line asks for it, else JSON. */
export function printJson(value: unknown): void {
  printLine(format === 'yaml' ? yamlText(plain(value)).trimEnd() : JSON.stringify(value, null, 2))
}

/** The same where documents follow each other: a line of JSON, or a YAML document, each. */
export function streamDocument(value: unknown): string {
  return format === 'yaml' ? `---\n${yamlText(plain(value))}` : `${JSON.stringify(value)}\n`
}

/** Without what JSON leaves out, which YAML would name or refuse. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown
}

/** A word of a command line that a person may paste into a shell. */
export function shellWord(word: string): string {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
