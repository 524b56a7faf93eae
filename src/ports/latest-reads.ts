/**
 * Makes this controller reflect acknowledged writes of all controllers. Used by
 * `src/api/http/linearizable-reads.ts`.
 */
export interface LatestReads {
  /**
   * Applies everything that was acknowledged on any controller before the call.
   * @throws {Problem} CLUSTER_NO_LEADER when no leader confirms it; INDEX_NOT_REACHED.
   */
  reachLatest(): Promise<void>
  /**
   * Reads again at the latest commit index: another controller may just have created the record.
   * @throws {Problem} CLUSTER_NO_LEADER; INDEX_NOT_REACHED.
   */
  latest<T>(read: () => T | undefined): Promise<T | undefined>
}
