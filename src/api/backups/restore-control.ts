import type { Actor } from '../../ports/actor.ts'
import type { Index, NodeId } from '../../raft/types.ts'
import type { SchemaValue } from '../schemas/typed-schema.ts'
import type {
  UnencryptedFactorBody,
  restoreBeginSchema,
  restoreChunkSchema,
  restoreEndSchema,
} from './restores-schema.ts'

export type RestoreBeginRequest = Required<SchemaValue<typeof restoreBeginSchema.schema>>

interface RestoreChunkGiven extends Omit<SchemaValue<typeof restoreChunkSchema.schema>, 'bytes'> {
  readonly bytes: Uint8Array
}

export type RestoreEndRequest = Required<SchemaValue<typeof restoreEndSchema.schema>>

/** The log entry that ended the restore, and the controllers that have applied it. */
export interface RestoreProgress {
  /** Index of the entry that replaced the records, or dropped the staged ones. */
  readonly index: Index
  /** Voters that have applied the entry, sorted by id; empty if the restore was abandoned. */
  readonly applied: readonly NodeId[]
}

/** A second factor (TOTP) from a backup, decrypted. */
export interface DecryptedFactor extends Omit<UnencryptedFactorBody, 'secret'> {
  readonly secret: Uint8Array
}

/** A second factor (TOTP) encrypted with the key of this cluster. */
export interface ReencryptedFactor {
  readonly sealed: string
  readonly keyVersion: number
}

/**
 * Replaces the records of the running cluster with the records in a backup. Each step takes effect
 * once, even if a client repeats its request.
 * @throws {Problem} RESTORE_REFUSED, RESTORE_UNDER_WAY, FEATURE_LEVEL_NOT_RAISED; in all of these
 * cases nothing has changed.
 */
export interface RestoreControl {
  begin(announced: RestoreBeginRequest, by: Actor): Promise<void>
  stage(chunk: RestoreChunkGiven, by: Actor): Promise<void>
  /**
   * Replaces the records with the staged ones, and resolves once all voters have done so, or after
   * a minute. With `isAbandoned`, drops the staged records, and does not wait.
   */
  end(ending: RestoreEndRequest, by: Actor): Promise<RestoreProgress>
  /**
   * Encrypts second factors with the factor key of this cluster. The cluster does not have the key
   * with which the backup's factors were encrypted.
   */
  seal(factors: readonly DecryptedFactor[]): Promise<readonly ReencryptedFactor[]>
}
