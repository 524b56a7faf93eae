/**
 * Time limits of answers that wait for the cluster or a disk; the command line waits a little
 * longer.
 */
export const answerTimes = {
  /**
   * A change of members is answered once it is committed; the leader may first have to transfer
   * leadership.
   */
  changeMsMax: 85_000,
  /** A transfer of leadership waits until its target has caught up and been elected. */
  transferMsMax: 28_000,
  /** The cluster has to agree on another issuing authority. */
  installMsMax: 28_000,
  /**
   * A backup starts when its snapshot exists and the leader has reported the index that it must
   * include.
   */
  backupMsMax: 55_000,
  /** A step of a restore waits for a new leader; the last step waits for every voter. */
  restoreMsMax: 115_000,
} as const
