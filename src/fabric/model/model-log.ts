import { create, toBinary } from '@bufbuild/protobuf'

import {
  ModelChangeSetSchema,
  type ModelEvent as EncodedEvent,
} from '../../../proto/gen/router_pb.ts'

interface ModelLogLimits {
  readonly modelEntriesMax: number
  readonly modelEntriesBytesMax: number
}

interface Change {
  readonly index: number
  /** A change set without the previous index. */
  readonly bytes: Uint8Array
}

/**
 * Data model changes of the last log entries, encoded once for all routers. A router that
 * reconnects gets the changes it missed if they are still here.
 */
export class ModelLog {
  readonly #limits: ModelLogLimits
  #changes: Change[] = []
  #bytes = 0
  /** Routers at this index or later can be updated from this log. */
  #since: number
  #index: number

  /** @param index of the current model, whose earlier changes are unknown. */
  constructor(index: number, limits: ModelLogLimits) {
    this.#since = index
    this.#index = index
    this.#limits = limits
  }

  /** Index of the last change. */
  get index(): number {
    return this.#index
  }

  add(index: number, changes: EncodedEvent[], timelineId: string): void {
    const set = create(ModelChangeSetSchema, { index: BigInt(index), changes, timelineId })
    const bytes = toBinary(ModelChangeSetSchema, set)
    this.#changes.push({ index, bytes })
    this.#bytes += bytes.length
    this.#index = index
    this.#forget()
  }

  holds(index: number): boolean {
    return index >= this.#since
  }

  /** Changes after the index, in order. Requires `holds(index)`. */
  after(index: number): readonly Change[] {
    let at = this.#changes.length
    while (at > 0 && (this.#changes[at - 1]?.index ?? 0) > index) at -= 1
    return this.#changes.slice(at)
  }

  #forget(): void {
    const { modelEntriesMax, modelEntriesBytesMax } = this.#limits
    let gone = 0
    while (
      gone < this.#changes.length &&
      (this.#changes.length - gone > modelEntriesMax || this.#bytes > modelEntriesBytesMax)
    ) {
      const change = this.#changes[gone]
      if (change === undefined) break
      this.#bytes -= change.bytes.length
      this.#since = change.index
      gone += 1
    }
    // Removes many at once, because shifting the array for each one would take quadratic time.
    if (gone > 0) this.#changes = this.#changes.slice(gone)
  }
}

/**
 * Adds the router's index to a change set: a field that is appended to an encoded message belongs
 * to the message.
 */
export function withPreviousIndex(bytes: Uint8Array, previousIndex: number): Uint8Array {
  const previous = create(ModelChangeSetSchema, { previousIndex: BigInt(previousIndex) })
  return Buffer.concat([bytes, toBinary(ModelChangeSetSchema, previous)])
}
