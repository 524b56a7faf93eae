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

export function printJson(value: unknown): void {
  printLine(JSON.stringify(value, null, 2))
}

/** A word of a command line that a person may paste into a shell. */
export function shellWord(word: string): string {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
