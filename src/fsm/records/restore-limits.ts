const MIB = 1024 * 1024

/**
 * Limits of a restore. They are constants, not options, because every controller must refuse a
 * restore at the same entry.
 */
export const restoreLimits = {
  /**
   * Maximum bytes of one chunk. Each chunk is one log entry; the command line sends it to the admin
   * socket in one request, encoded as base64.
   */
  chunkBytesMax: 44 * 1024,
  /** Maximum bytes of all chunks, which every controller holds in memory until the restore ends. */
  stagedBytesMax: 128 * MIB,
  /**
   * Maximum log time from the beginning to the end of a restore; a restore that takes longer is
   * dropped.
   */
  lifetimeMs: 10 * 60_000,
  /** Length of the uncompressed text at which a block is complete. */
  blockCharacters: 256 * 1024,
  /**
   * Maximum bytes of uncompressed text in one block: the largest record and the text before it.
   */
  blockTextBytesMax: 20 * MIB,
  /** Maximum bytes of uncompressed text in all blocks. */
  textBytesMax: 1024 * MIB,
} as const
