/**
 * Copies the first characters of a string. A slice would keep the whole original string in memory.
 */
export function copyPrefix(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text
  // @guard reports-of-a-router--own
  return Buffer.from(text.slice(0, charactersMax), 'utf8').toString('utf8')
}
