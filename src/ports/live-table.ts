export interface LiveRow {
  readonly id: string
}

/**
 * Live rows of one controller, in no log: links, circuits, channels of routers. Each
 * controller has the rows that came to it, and no other one knows them.
 */
export interface LiveTable<R extends LiveRow> {
  /** The controller whose rows these are. */
  readonly owner: string
  /** Most rows that it takes; one more is refused where it comes from. */
  readonly rowsMax: number
  /** Rows in no order. */
  list(): readonly R[]
  get(id: string): R | undefined
  /**
   * Ends what the row stands for.
   * @param isImmediate without waiting for what is under way, where there is such a difference.
   * @returns false when there is no such row.
   */
  remove(id: string, isImmediate?: boolean): boolean
}
