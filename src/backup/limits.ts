const MIB = 1024 * 1024

/** Limits for the memory of a backup reader; they apply even to a hostile file. */
export const backupLimits = {
  /** Maximum bytes of one frame's body: one snapshot chunk plus the overhead of encryption. */
  frameBytesMax: 8 * MIB + 64,
  /**
   * Maximum bytes of the manifest at the start of a backup; a longer one is refused as damaged.
   */
  manifestBytesMax: MIB,
  /** Maximum bytes of the summary at the end of a backup; a longer one is refused as damaged. */
  summaryBytesMax: 64 * 1024,
  /** Maximum bytes of the secrets in a backup; longer ones are refused as damaged. */
  secretsBytesMax: MIB,
  /** Maximum characters of a recipient's key or certificate. */
  recipientCharactersMax: 64 * 1024,
  /**
   * Maximum bytes between two syncs. A single large sync at the end would delay the syncs of a log
   * on the same disk.
   */
  unsyncedBytesMax: 8 * MIB,
} as const
