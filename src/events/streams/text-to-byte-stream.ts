interface TextPipeDeps {
  /** Called when the reader has taken all buffered text; the writer may continue. */
  readonly onTaken: () => void
  /** Called when the reader stops reading. */
  readonly onReturned: () => void
}

type Taken = IteratorResult<Uint8Array, undefined>
const OVER: Taken = { done: true, value: undefined }

/**
 * Text that is written in pieces and read as bytes. The writer must limit the buffered text: when
 * `write` returns false, the writer must wait for `onTaken`.
 */
export class TextToByteStream implements AsyncIterableIterator<Uint8Array, undefined> {
  readonly #charactersMax: number
  readonly #deps: TextPipeDeps
  #text = ''
  #isOver = false
  #taker: ((taken: Taken) => void) | null = null

  constructor(charactersMax: number, deps: TextPipeDeps) {
    this.#charactersMax = charactersMax
    this.#deps = deps
  }

  /** @returns false if the caller must write nothing more until `onTaken` is called. */
  write(text: string): boolean {
    if (this.#isOver) return true
    this.#text += text
    this.#handOver()
    return this.#text.length < this.#charactersMax
  }

  /** Ends the text. The reader still receives text that is already buffered. */
  end(): void {
    this.#isOver = true
    this.#handOver()
  }

  next(): Promise<Taken> {
    const taken = new Promise<Taken>((resolve) => {
      this.#taker = resolve
    })
    if (this.#handOver()) this.#deps.onTaken()
    return taken
  }

  return(): Promise<Taken> {
    this.#text = ''
    this.end()
    this.#deps.onReturned()
    return Promise.resolve(OVER)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /**
   * Passes buffered text to a waiting reader.
   * @returns true if the reader was waiting and received text.
   */
  #handOver(): boolean {
    const taker = this.#taker
    if (taker === null) return false
    if (this.#text !== '') {
      const value = Buffer.from(this.#text)
      this.#text = ''
      this.#taker = null
      taker({ done: false, value })
      return true
    }
    if (!this.#isOver) return false
    this.#taker = null
    taker(OVER)
    return false
  }
}
