/** `<generation>:<index>`: how far the answers have come that this page has seen. */
export function laterPosition(known: string | null, seen: string | null): string | null {
  if (seen === null || !POSITION.test(seen)) return known
  if (known === null) return seen
  const [knownGeneration = 0, knownIndex = 0] = known.split(':').map(Number)
  const [generation = 0, index = 0] = seen.split(':').map(Number)
  const isLater =
    generation > knownGeneration || (generation === knownGeneration && index > knownIndex)
  return isLater ? seen : known
}

/** Id of the event from which a new tab begins: a little before what it has seen first. */
export function eventBefore(position: string | null, entries: number): string {
  if (position === null || !POSITION.test(position)) return ''
  const [generation = 0, index = 0] = position.split(':').map(Number)
  return `${generation}:${Math.max(1, index - entries)}:1`
}

const POSITION = /^[0-9]{1,15}:[0-9]{1,15}$/

/** A UUIDv7 (RFC 9562, 5.7), by which a change is made once however often it is sent. */
export function newRequestId(nowMs = Date.now()): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  for (let at = 0; at < 6; at += 1) bytes[at] = Math.floor(nowMs / 2 ** (8 * (5 - at))) % 256
  bytes[6] = 0x70 | ((bytes[6] ?? 0) & 0x0f)
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f)
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
