/** A running hash over all events in order: two runs that differ anywhere have different hashes. */
export class TraceHash {
  #a = 0x811c9dc5
  #b = 0x01000193
  readonly #print: (line: string) => void

  constructor(print: (line: string) => void) {
    this.#print = print
  }

  add(...parts: readonly (string | number | undefined)[]): void {
    const line = parts.join(' ')
    for (let at = 0; at < line.length; at += 1) {
      const code = line.charCodeAt(at)
      this.#a = Math.imul(this.#a ^ code, 0x01000193)
      this.#b = Math.imul(this.#b + code, 0x85ebca6b) ^ (this.#b >>> 13)
    }
    this.#print(line)
  }

  get hex(): string {
    return [this.#a, this.#b].map((part) => (part >>> 0).toString(16).padStart(8, '0')).join('')
  }
}
