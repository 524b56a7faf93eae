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
  /** An encoded change set, without the previous index, which differs per router. */
  readonly bytes: Uint8Array
}

/**
 * Data model changes of the last log entries, encoded once for all routers. A router that
 * reconnects gets the changes that it missed if this log still contains them.
 */
export class ModelChangeHistory {
  readonly #limits: ModelLogLimits
  #changes: Change[] = []
  #bytes = 0
  /**
   * The log contains all changes after this index, so it can update a router that is at this index
   * or later.
   */
  #since: number
  #index: number

  /** @param index index of the current model; changes before it are unknown. */
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
    // Removes all in one step, because removing each change from the front of the array would take
    // quadratic time.
    if (gone > 0) this.#changes = this.#changes.slice(gone)
  }
}

/**
 * Adds the index that the router has now to an encoded change set: bytes appended to an encoded
 * protobuf message become fields of that message.
 */
export function appendPreviousIndex(bytes: Uint8Array, previousIndex: number): Uint8Array {
  const previous = create(ModelChangeSetSchema, { previousIndex: BigInt(previousIndex) })
  return Buffer.concat([bytes, toBinary(ModelChangeSetSchema, previous)])
}
