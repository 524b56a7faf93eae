/** HOST:PORT alone, or with another scheme, is what people type first. */
export function schemeHint(text: string): string {
  const address = text.replace(/^[a-z]+:\/\//i, '').replace(/\/$/, '')
  return /^[\w.[\]:-]+:\d{1,5}$/.test(address) ? `; did you mean https://${address}?` : ''
}
