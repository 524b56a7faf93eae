export function warningCount(count: number): string {
  return count === 1 ? '1 warning' : `${count} warnings`
}

/** Ending of the sentence that a configuration is valid; empty without warnings. */
export function withWarnings(count: number): string {
  return count === 0 ? '' : `, with ${warningCount(count)}`
}
