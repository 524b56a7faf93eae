/**
 * The beginning of a text as a text of its own: a mere slice keeps all that it was cut from in
 * memory, as long as it is kept itself.
 */
export function ownText(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text
  // @guard reports-of-a-router--own
  return Buffer.from(text.slice(0, charactersMax), 'utf8').toString('utf8')
}
