export interface LiveRow {
  readonly id: string
}

/**
 * What is live on one controller and in no log: links, circuits, channels of routers. Each
 * controller has the rows that came to it, and no other one knows them.
 */
export interface LiveTable<R extends LiveRow> {
  /** The controller whose rows these are. */
  readonly owner: string
  /** What would be a row beyond it is refused where it comes from. */
  readonly rowsMax: number
  /** In no order. */
  list(): readonly R[]
  get(id: string): R | undefined
  /**
   * Ends what the row stands for.
   * @param isImmediate without waiting for what is under way, where there is such a difference.
   * @returns false when there is no such row.
   */
  remove(id: string, isImmediate?: boolean): boolean
}
