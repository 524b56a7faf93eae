export interface LiveRow {
  readonly id: string
}

/**
 * Live rows of one controller that are not in the log: links, circuits, channels of routers. No
 * other controller knows these rows.
 */
export interface LiveTable<R extends LiveRow> {
  /** The controller of these rows. */
  readonly owner: string
  /** Maximum number of rows; a further one is refused. */
  readonly rowsMax: number
  /** Rows in no order. */
  list(): readonly R[]
  get(id: string): R | undefined
  /**
   * Ends the object of the row.
   * @param isImmediate true: does not wait for work in progress, if that makes a difference.
   * @returns false when there is no such row.
   */
  remove(id: string, isImmediate?: boolean): boolean
}
