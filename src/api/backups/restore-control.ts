import type { Actor } from '../../ports/actor.ts'
import type { Index, NodeId } from '../../raft/types.ts'
import type { SchemaValue } from '../schemas/typed-schema.ts'
import type { FactorBody, restoreBegin, restoreChunk, restoreEnd } from './restores-schema.ts'

export type RestoreAnnouncement = Required<SchemaValue<typeof restoreBegin.schema>>

interface RestoreChunkGiven extends Omit<SchemaValue<typeof restoreChunk.schema>, 'bytes'> {
  readonly bytes: Uint8Array
}

export type RestoreEnding = Required<SchemaValue<typeof restoreEnd.schema>>

/** Index of the entry that replaced the records, and the controllers that have applied it. */
export interface RestoredIndex {
  /** Index of the entry that replaced the records. */
  readonly index: Index
  /** Voters that have applied it, sorted by id. */
  readonly applied: readonly NodeId[]
}

/** A decrypted second factor of a backup. */
export interface DecryptedFactor extends Omit<FactorBody, 'secret'> {
  readonly secret: Uint8Array
}

/** A second factor encrypted for this cluster. */
export interface ResealedFactor {
  readonly sealed: string
  readonly keyVersion: number
}

/**
 * Replaces the records of the running cluster with those of a backup. Each step takes effect once,
 * however often it is requested.
 * @throws {Problem} RESTORE_REFUSED, RESTORE_UNDER_WAY, FEATURE_LEVEL_NOT_RAISED: nothing has
 * changed.
 */
export interface RestoreControl {
  begin(announced: RestoreAnnouncement, by: Actor): Promise<void>
  stage(chunk: RestoreChunkGiven, by: Actor): Promise<void>
  /** Resolves once all voters have applied it, or after a minute. */
  end(ending: RestoreEnding, by: Actor): Promise<RestoredIndex>
  /** Encrypts second factors whose key this cluster does not have. */
  seal(factors: readonly DecryptedFactor[]): Promise<readonly ResealedFactor[]>
}
