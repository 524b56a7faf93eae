/** One fault, printed as `<source>[:<line>]: <key>: <problem>`. */
export interface ConfigFault {
  /** Path of the file, or `environment NAME`. */
  readonly source: string
  /** Line number from 1, or null. */
  readonly line: number | null
  /** `raft.tickMs`, `web[0].bind`; empty for the whole file. */
  readonly key: string
  readonly problem: string
}

export function formatFault({ source, line, key, problem }: ConfigFault): string {
  const at = line === null ? source : `${source}:${line}`
  return key === '' ? `${at}: ${problem}` : `${at}: ${key}: ${problem}`
}

const SHOWN_LENGTH_MAX = 60

/** Makes configured text printable and short for a fault. */
export function shortenText(text: string): string {
  const printable = text.replaceAll(/[^\x20-\x7e\xa0-\uffff]/g, ' ')
  return printable.length <= SHOWN_LENGTH_MAX
    ? printable
    : `${printable.slice(0, SHOWN_LENGTH_MAX)}…`
}
