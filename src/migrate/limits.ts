const MIB = 1024 * 1024

/** Limits for reading an OpenZiti database. They hold for any file. */
export const migrateLimits = {
  /** Maximum bytes of a database. The reader notes visited pages in one bit each. */
  fileBytesMax: 64 * 1024 * MIB,
  /** Maximum bytes of one page with its overflow pages; the largest record must fit. */
  pageBytesMax: 64 * MIB,
  /** Maximum depth of the tree of one bucket. */
  treeDepthMax: 64,
  /** Maximum depth of buckets in buckets. */
  bucketDepthMax: 32,
  /** Maximum keys and values in one record, without its derived links. */
  recordEntriesMax: 100_000,
  /** Maximum bytes of the keys and values of one record, without its derived links. */
  recordBytesMax: 16 * MIB,
  /** Maximum depth of maps and lists in a record. */
  valueDepthMax: 32,
  /** Maximum findings of each kind that a report lists for one store; it counts all of them. */
  findingsShownMax: 1000,
  /** Maximum databases of one migration: one of each member of the largest cluster. */
  databasesMax: 9,
} as const
