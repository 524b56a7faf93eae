import { fromBinary } from '@bufbuild/protobuf'
import {
  type Command,
  CommandKind,
  CommandSchema,
  RestoreBeginSchema,
  RestoreChunkSchema,
  RestoreEndSchema,
} from '../../proto/gen/command_pb.ts'
import type { ProblemCode } from '../../src/lib/problems.ts'
import type { Entry } from '../../src/raft/types.ts'

/** Expected result of a restore entry. */
export interface RestoreStep {
  readonly code: 'done' | ProblemCode
  /** Id of the restore that replaced all records; null: nothing was replaced. */
  readonly swapped: string | null
}

const LIFETIME_MS = 10 * 60_000
const done: RestoreStep = { code: 'done', swapped: null }
const refused: RestoreStep = { code: 'RESTORE_REFUSED', swapped: null }

/**
 * Model of restores, written from the documentation and not from the code: one restore at a time,
 * completely or not at all, once.
 */
export class RestoreModel {
  #logTimeMs = 0
  #head: { readonly id: string; readonly chunks: number; readonly expiresAtMs: number } | null =
    null
  #received = 0
  #lastId = ''

  /**
   * Processes each entry of the log once, in order.
   * @param isPassedOver the request already took effect in an earlier entry.
   * @returns null for an entry that is not part of a restore.
   */
  onEntry(entry: Entry, isPassedOver: boolean): RestoreStep | null {
    this.#logTimeMs = Math.max(this.#logTimeMs, entry.timeMs)
    if (this.#head !== null && this.#head.expiresAtMs <= this.#logTimeMs) this.#drop()
    if (entry.type !== 'command' || isPassedOver) return null
    return this.#step(fromBinary(CommandSchema, entry.data))
  }

  /** A reset of log time drops staged data. */
  onLogTimeReset(): void {
    this.#drop()
  }

  #step({ kind, payload }: Command): RestoreStep | null {
    switch (kind) {
      case CommandKind.RESTORE_BEGIN: {
        const { id, chunks } = fromBinary(RestoreBeginSchema, payload)
        return this.#begin(id, chunks)
      }
      case CommandKind.RESTORE_CHUNK: {
        const { id, number } = fromBinary(RestoreChunkSchema, payload)
        return this.#chunk(id, number)
      }
      case CommandKind.RESTORE_END: {
        const { id, isAbandoned } = fromBinary(RestoreEndSchema, payload)
        return this.#end(id, isAbandoned)
      }
      default:
        return null
    }
  }

  #begin(id: string, chunks: number): RestoreStep {
    if (this.#head?.id === id) return done
    if (this.#head !== null) return { code: 'RESTORE_UNDER_WAY', swapped: null }
    if (id === this.#lastId) return refused
    this.#head = { id, chunks, expiresAtMs: this.#logTimeMs + LIFETIME_MS }
    return done
  }

  #chunk(id: string, number: number): RestoreStep {
    if (this.#head?.id !== id || number > this.#received) return refused
    if (number === this.#received) this.#received += 1
    return done
  }

  #end(id: string, isAbandoned: boolean): RestoreStep {
    if (id === this.#lastId) return done
    const head = this.#head?.id === id ? this.#head : null
    if (isAbandoned) {
      if (head !== null) this.#drop()
      return done
    }
    if (head === null || this.#received < head.chunks) return refused
    this.#drop()
    this.#lastId = id
    return { code: 'done', swapped: id }
  }

  #drop(): void {
    this.#head = null
    this.#received = 0
  }
}
