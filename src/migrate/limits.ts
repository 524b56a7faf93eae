const MIB = 1024 * 1024

/** Limits for reading an OpenZiti database; they apply even to a hostile file. */
export const migrateLimits = {
  /**
   * Maximum bytes of a database. The limit exists because the reader needs one bit of memory for
   * each page.
   */
  fileBytesMax: 64 * 1024 * MIB,
  /**
   * Maximum bytes of one page with its overflow pages; the limit must be high enough for the
   * largest record.
   */
  pageBytesMax: 64 * MIB,
  /** Maximum depth of the page tree of one bucket. */
  treeDepthMax: 64,
  /** Maximum depth of buckets inside other buckets. */
  bucketDepthMax: 32,
  /** Maximum keys and values in one record, not counting its derived links. */
  recordEntriesMax: 100_000,
  /** Maximum total bytes of keys and values in one record, not counting its derived links. */
  recordBytesMax: 16 * MIB,
  /** Maximum depth of maps and lists in a record. */
  valueDepthMax: 32,
  /**
   * Maximum findings of each kind that a report lists for one store; the report's counts include
   * all findings.
   */
  findingsShownMax: 1000,
  /** Maximum databases in one migration: one from each member of the largest cluster. */
  databasesMax: 9,
} as const
