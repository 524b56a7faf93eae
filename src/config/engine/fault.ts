/** One thing wrong, fit to be printed: `<source>[:<line>]: <key>: <problem>`. */
export interface ConfigFault {
  /** The file's path, or `environment NAME`. */
  readonly source: string
  /** Line number, from 1; null when there is no line to point at. */
  readonly line: number | null
  /** `raft.tickMs`, `web[0].bind`; empty for the file as a whole. */
  readonly key: string
  readonly problem: string
}

export function formatFault({ source, line, key, problem }: ConfigFault): string {
  const at = line === null ? source : `${source}:${line}`
  return key === '' ? `${at}: ${problem}` : `${at}: ${key}: ${problem}`
}

const SHOWN_LENGTH_MAX = 60

/** Text of an operator as a fault shows it: printable, and short. */
export function shorten(text: string): string {
  const printable = text.replaceAll(/[^\x20-\x7e\xa0-\uffff]/g, ' ')
  return printable.length <= SHOWN_LENGTH_MAX
    ? printable
    : `${printable.slice(0, SHOWN_LENGTH_MAX)}…`
}
