const MIB = 1024 * 1024

/** Bounds of what a reader of backups holds in memory, whatever a file says. */
export const backupLimits = {
  /** Most bytes of the body of one frame: a chunk of a snapshot, and what encryption adds. */
  frameBytesMax: 8 * MIB + 64,
  manifestBytesMax: MIB,
  summaryBytesMax: 64 * 1024,
  secretsBytesMax: MIB,
  /** Most characters of a recipient's key or certificate. */
  recipientCharactersMax: 64 * 1024,
  /**
   * Written between two syncs: a large one at the end would hold up those of a log on the same
   * disk.
   */
  unsyncedBytesMax: 8 * MIB,
} as const
