/** Brings this controller to what was acknowledged anywhere; `src/api/consistency.ts` keeps it. */
export interface LatestReads {
  /**
   * Brings this controller to a point at or after everything acknowledged before the call.
   * @throws {Problem} CLUSTER_NO_LEADER when no leader confirms it; INDEX_NOT_REACHED.
   */
  reachLatest(): Promise<void>
  /**
   * Reads again at the latest commit: what is not here may have been made on another controller a
   * moment ago.
   * @throws {Problem} CLUSTER_NO_LEADER; INDEX_NOT_REACHED.
   */
  latest<T>(read: () => T | undefined): Promise<T | undefined>
}
