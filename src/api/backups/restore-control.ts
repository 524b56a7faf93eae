import type { Actor } from '../../ports/actor.ts'
import type { Index, NodeId } from '../../raft/types.ts'

/** A restore that is to be staged: the sizes and the digest of all that follows. */
export interface RestoreAnnouncement {
  /** Chosen by whoever asks; each step of the restore names it. */
  readonly id: string
  readonly chunks: number
  readonly bytes: number
  /** Hex; over all chunks in their order. */
  readonly sha256: string
  /** That the backup was taken of. */
  readonly clusterId: string
  readonly featureLevel: number
  readonly allowsOtherCluster: boolean
}

export interface RestoreChunkGiven {
  readonly id: string
  /** Number of the part, from 0. */
  readonly number: number
  readonly bytes: Uint8Array
  readonly endsBlock: boolean
}

export interface RestoreEnding {
  readonly id: string
  readonly sha256: string
  /** Staged parts are dropped, and no record changes. */
  readonly isAbandoned: boolean
  /** Refused when a record was written after it; 0: whatever was written. */
  readonly ifIndex: Index
  /** Backup that it is, for the audit log. */
  readonly reason: string
}

export interface RestoredIndex {
  /** Index of the entry that replaced the records. */
  readonly index: Index
  /** Voters that have applied it, sorted by id. */
  readonly applied: readonly NodeId[]
}

/** A second factor in the clear, as the key of its backup gives it. */
export interface OpenFactor {
  readonly identityId: string
  readonly secretId: string
  readonly codesId: string
  readonly secret: Uint8Array
  readonly recoveryCodes: readonly string[]
}

/** A second factor encrypted for this cluster. */
export interface SealedAgain {
  readonly sealed: string
  readonly keyVersion: number
}

/**
 * Replaces the records of the running cluster by those of a backup. Each step takes effect once,
 * however often it is asked for.
 * @throws {Problem} RESTORE_REFUSED, RESTORE_UNDER_WAY, FEATURE_LEVEL_NOT_RAISED: nothing has
 * changed.
 */
export interface RestoreControl {
  begin(announced: RestoreAnnouncement, by: Actor): Promise<void>
  stage(chunk: RestoreChunkGiven, by: Actor): Promise<void>
  /** Resolves once the voters have applied it, or have had a minute to. */
  end(ending: RestoreEnding, by: Actor): Promise<RestoredIndex>
  /** Encrypts second factors whose key this cluster does not hold. */
  seal(factors: readonly OpenFactor[]): Promise<readonly SealedAgain[]>
}
