/**
 * Time limits of answers that wait for the cluster or a disk; the command line waits a little
 * longer.
 */
export const answerTimes = {
  /**
   * A change of the members is answered once it is committed; the leader may first have to hand
   * over.
   */
  changeMsMax: 85_000,
  /** A transfer of leadership waits until its target has caught up and been elected. */
  transferMsMax: 28_000,
  /** The cluster has to agree on another issuing authority. */
  installMsMax: 28_000,
  /**
   * A backup starts after its snapshot exists and the leader has reported the index it must
   * include.
   */
  backupMsMax: 55_000,
  /** A step of a restore waits for a new leader, and the last one for every voter. */
  restoreMsMax: 115_000,
} as const
