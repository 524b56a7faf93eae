import type { Index } from '../../src/raft/types.ts'

/** Expected records of a run. */
export interface ModelledRecords {
  /** Register → value. */
  readonly registers: Map<string, number>
  readonly services: Set<string>
  /** Records of kinds that a restore does not change. */
  readonly kept: Set<string>
  /** Records of kinds that a restore deletes. */
  readonly ended: Set<string>
}

type Step =
  | { readonly index: Index; readonly type: 'write'; readonly id: string; readonly value: number }
  | { readonly index: Index; readonly type: 'services' | 'kept' | 'ended'; readonly id: string }
  | { readonly index: Index; readonly type: 'restore'; readonly of: Index }

/**
 * The history of all client writes, and of the restores that replaced them. A write before a
 * restore counts only if the restored backup contains it.
 */
export class RecordsModel {
  readonly #steps: Step[] = []
  /** Register → its value after each index that changed it, oldest first. */
  readonly #registers = new Map<string, { readonly index: Index; readonly value: number }[]>()

  /** Records the creation of a register. */
  formed(index: Index, register: string): void {
    this.#registers.set(register, [{ index, value: 0 }])
  }

  written(index: Index, id: string, value: number): void {
    this.#steps.push({ index, type: 'write', id, value })
    this.#registers.get(id)?.push({ index, value })
  }

  created(index: Index, type: 'services' | 'kept' | 'ended', id: string): void {
    this.#steps.push({ index, type, id })
  }

  /** @param of index of the backup. */
  restored(index: Index, of: Index): void {
    this.#steps.push({ index, type: 'restore', of })
    for (const [id, values] of this.#registers) values.push({ index, value: this.valueAt(id, of) })
  }

  valueAt(register: string, index: Index): number {
    const values = this.#registers.get(register) ?? []
    for (let at = values.length - 1; at >= 0; at -= 1) {
      const found = values[at]
      if (found !== undefined && found.index <= index) return found.value
    }
    return 0
  }

  at(index: Index): ModelledRecords {
    const registers = new Map<string, number>()
    for (const [id, [first]] of this.#registers) {
      if (first !== undefined && first.index <= index) registers.set(id, 0)
    }
    let made: ModelledRecords = {
      registers,
      services: new Set(),
      kept: new Set(),
      ended: new Set(),
    }
    for (const step of this.#steps) {
      if (step.index > index) break
      if (step.type === 'write') made.registers.set(step.id, step.value)
      else if (step.type !== 'restore') made[step.type].add(step.id)
      else made = { ...this.at(step.of), kept: made.kept, ended: new Set() }
    }
    return made
  }
}
