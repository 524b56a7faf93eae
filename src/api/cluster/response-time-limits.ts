/**
 * Maximum time until the response of operations that wait for the cluster or a disk. The CLI waits
 * a little longer.
 */
export const responseTimeLimits = {
  /**
   * A membership change is answered once it is committed; the leader may first have to transfer
   * leadership.
   */
  changeMsMax: 85_000,
  /** A leadership transfer waits until its target has caught up and has been elected. */
  transferMsMax: 28_000,
  /** Installing another issuing authority waits until the cluster has committed it. */
  installMsMax: 28_000,
  /**
   * The backup stream starts when its snapshot exists and the leader has reported the index that
   * the backup must include.
   */
  backupMsMax: 55_000,
  /**
   * If there is no leader, a step of a restore waits until one is elected. The last step also waits
   * for all voters.
   */
  restoreMsMax: 115_000,
} as const
