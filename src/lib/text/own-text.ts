/** Copies the beginning of a text. A slice would keep the whole original text in memory. */
export function copyTextStart(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text
  // @guard reports-of-a-router--own
  return Buffer.from(text.slice(0, charactersMax), 'utf8').toString('utf8')
}
