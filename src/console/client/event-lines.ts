/** One event of a stream (WHATWG HTML, 9.2.6). */
export interface StreamEvent {
  readonly id: string
  readonly type: string
  readonly data: string
}

/** Collects pieces of a stream and returns complete events. */
export class EventLines {
  #rest = ''
  #id = ''
  #type = ''
  #data: string[] = []

  push(piece: string): StreamEvent[] {
    const lines = (this.#rest + piece).split(/\r\n|\r|\n/)
    this.#rest = lines.pop() ?? ''
    return lines.flatMap((line) => this.#take(line))
  }

  #take(line: string): StreamEvent[] {
    if (line === '') return this.#end()
    const at = line.indexOf(':')
    if (at === 0) return []
    const name = at === -1 ? line : line.slice(0, at)
    const value = at === -1 ? '' : line.slice(at + 1).replace(/^ /, '')
    if (name === 'id') this.#id = value
    else if (name === 'event') this.#type = value
    else if (name === 'data') this.#data.push(value)
    return []
  }

  #end(): StreamEvent[] {
    const event = { id: this.#id, type: this.#type || 'message', data: this.#data.join('\n') }
    const isWhole = this.#data.length > 0
    this.#type = ''
    this.#data = []
    return isWhole ? [event] : []
  }
}
