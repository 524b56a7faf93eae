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
  /** The encoded changes without the previous index, which is different for each router. */
  readonly bytes: Uint8Array
}

/**
 * Data model changes of the last log entries, each encoded once for all routers. A router that
 * reconnects gets the changes that it missed, if they are still here.
 */
export class ModelChangeHistory {
  readonly #limits: ModelLogLimits
  #changes: Change[] = []
  #bytes = 0
  /**
   * All changes after this index are here, so a router whose model has this index or a later one
   * can be updated.
   */
  #since: number
  #index: number

  /** @param index index of the current model; earlier changes are not available. */
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

  /** Changes after the index, in order. Only for an index for which `holds` returns true. */
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
    // Removes all of them with one copy: removing each change from the front of the array would
    // take quadratic time.
    if (gone > 0) this.#changes = this.#changes.slice(gone)
  }
}

/**
 * Adds the index of the router's current model to encoded changes: bytes appended to an encoded
 * protobuf message become fields of that message.
 */
export function appendPreviousIndex(bytes: Uint8Array, previousIndex: number): Uint8Array {
  const previous = create(ModelChangeSetSchema, { previousIndex: BigInt(previousIndex) })
  return Buffer.concat([bytes, toBinary(ModelChangeSetSchema, previous)])
}
