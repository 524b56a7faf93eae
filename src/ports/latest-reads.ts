/**
 * Brings this controller up to date with the acknowledged writes of all controllers. Used by
 * `src/api/http/linearizable-reads.ts`.
 */
export interface LatestReads {
  /**
   * Resolves after this controller has applied every write that any controller acknowledged before
   * the call.
   * @throws {Problem} in the same cases as `ClusterView.readIndex`; INDEX_NOT_REACHED when applying
   * takes too long.
   */
  reachLatest(): Promise<void>
  /**
   * Reads, and if that finds nothing, reads again at the latest commit index: another controller
   * may just have created the record.
   * @throws {Problem} in the same cases as `reachLatest`.
   */
  latest<T>(read: () => T | undefined): Promise<T | undefined>
}
