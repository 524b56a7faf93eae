/**
 * Maximum time until the response, for operations that wait for the cluster or a disk. The CLI
 * waits a little longer than these limits.
 */
export const responseTimeLimits = {
  /**
   * Membership change: the response waits until the change is committed; before that, the leader
   * may have to transfer leadership.
   */
  changeMsMax: 85_000,
  /** Leadership transfer: the response waits until the new leader has caught up and is elected. */
  transferMsMax: 28_000,
  /** New issuing authority: the response waits until the cluster has committed it. */
  installMsMax: 28_000,
  /**
   * Backup: the stream begins once the snapshot exists. Before that, unless the caller accepts a
   * stale backup, the leader reports the log index that the backup must include.
   */
  backupMsMax: 55_000,
  /**
   * Restore: without a leader, each step waits for an election. The last step also waits until all
   * voters have applied the restore, or for a minute.
   */
  restoreMsMax: 115_000,
} as const
