import type { SoftListener, SoftTopic, SoftValue } from '../../../src/ports/soft-state.ts'

/** Soft state of one controller without a mesh; a test publishes instead of other controllers. */
export class LocalTopic<T> implements SoftTopic<T> {
  readonly own = new Map<string, T>()
  /** True if the topic accepts no more values. */
  isFull = false
  readonly #selfId: string
  readonly #others = new Map<string, SoftValue<T>>()
  readonly #listeners: SoftListener<T>[] = []

  constructor(selfId: string) {
    this.#selfId = selfId
  }

  publish(key: string, value: T): boolean {
    if (this.isFull) return false
    this.own.set(key, value)
    return true
  }

  withdraw(key: string): void {
    this.own.delete(key)
  }

  get(owner: string, key: string): T | undefined {
    return owner === this.#selfId ? this.own.get(key) : this.#others.get(`${owner}\n${key}`)?.value
  }

  values(): Iterable<SoftValue<T>> {
    const own = [...this.own].map(([key, value]) => ({ owner: this.#selfId, key, value }))
    return [...own, ...this.#others.values()]
  }

  onChange(listener: SoftListener<T>): void {
    for (const { owner, key, value } of this.#others.values()) listener(owner, key, value)
    this.#listeners.push(listener)
  }

  /** Simulates that another controller publishes a value, or withdraws it with `undefined`. */
  hear(owner: string, key: string, value: T | undefined): void {
    if (value === undefined) this.#others.delete(`${owner}\n${key}`)
    else this.#others.set(`${owner}\n${key}`, { owner, key, value })
    for (const listener of this.#listeners) listener(owner, key, value)
  }

  /** Simulates that another controller is lost and has withdrawn nothing. */
  lose(owner: string): void {
    for (const { owner: from, key, value } of Array.from(this.#others.values())) {
      if (from !== owner) continue
      this.#others.delete(`${owner}\n${key}`)
      for (const listener of this.#listeners) listener(owner, key, undefined, value)
    }
  }
}
