import { estimatedBytes } from './estimated-bytes.ts'

/** Records of one kind, by ID and by name. */
export class ModelTable<T extends { readonly id: string; readonly name: string }> {
  readonly #byId = new Map<string, T>()
  /** Two records may briefly share a name while it moves between them; the later one wins. */
  readonly #idByName = new Map<string, string>()
  #bytes = 0

  get size(): number {
    return this.#byId.size
  }

  /** Estimated. */
  get bytes(): number {
    return this.#bytes
  }

  get(id: string): T | undefined {
    return this.#byId.get(id)
  }

  named(name: string): T | undefined {
    const id = this.#idByName.get(name)
    return id === undefined ? undefined : this.#byId.get(id)
  }

  values(): IterableIterator<T> {
    return this.#byId.values()
  }

  set(record: T): void {
    this.delete(record.id)
    this.#byId.set(record.id, record)
    this.#idByName.set(record.name, record.id)
    this.#bytes += estimatedBytes(record)
  }

  delete(id: string): void {
    const known = this.#byId.get(id)
    if (known === undefined) return
    this.#byId.delete(id)
    if (this.#idByName.get(known.name) === id) this.#idByName.delete(known.name)
    this.#bytes -= estimatedBytes(known)
  }
}
