/** One fault, printed in the form `<source>[:<line>]: <key>: <problem>`. */
export interface ConfigFault {
  /** Path of the file, or `environment NAME` for an environment variable. */
  readonly source: string
  /** Line number, counted from 1; null for a fault without a line. */
  readonly line: number | null
  /**
   * For example `raft.tickMs` or `web[0].bind`; empty if the fault concerns the whole file, its
   * YAML syntax, a duplicate key or an unknown variable.
   */
  readonly key: string
  readonly problem: string
}

export function formatConfigFault({ source, line, key, problem }: ConfigFault): string {
  const at = line === null ? source : `${source}:${line}`
  return key === '' ? `${at}: ${problem}` : `${at}: ${key}: ${problem}`
}

const SHOWN_LENGTH_MAX = 60

/** Shortens configured text and replaces control characters by spaces, for a fault message. */
export function shortenText(text: string): string {
  const printable = text.replaceAll(/[^\x20-\x7e\xa0-\uffff]/g, ' ')
  return printable.length <= SHOWN_LENGTH_MAX
    ? printable
    : `${printable.slice(0, SHOWN_LENGTH_MAX)}…`
}
