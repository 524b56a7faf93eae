/**
 * A table of numbers with one row for each period and one column for each figure. The table keeps a
 * fixed number of the newest rows; its memory is allocated once.
 */
export class RowRingBuffer {
  readonly #length: number
  readonly #width: number
  readonly #values: Float64Array
  /** Period of each row plus one; 0 if the row is unused. */
  readonly #periods: Float64Array

  constructor(length: number, width: number) {
    this.#length = length
    this.#width = width
    this.#values = new Float64Array(length * width)
    this.#periods = new Float64Array(length)
  }

  get bytes(): number {
    return this.#values.byteLength + this.#periods.byteLength
  }

  /**
   * Adds to a value; a new row begins with zeros.
   * @param period a whole number. Periods that are older than the ring are ignored.
   */
  add(period: number, figure: number, amount: number): void {
    const row = period % this.#length
    const kept = (this.#periods[row] ?? 0) - 1
    if (kept > period) return
    const at = row * this.#width
    if (kept < period) {
      this.#values.fill(0, at, at + this.#width)
      this.#periods[row] = period + 1
    }
    this.#values[at + figure] = (this.#values[at + figure] ?? 0) + amount
  }

  clear(): void {
    this.#periods.fill(0)
  }

  /** The value of a figure in a period; undefined if the ring has no row for the period. */
  at(period: number, figure: number): number | undefined {
    const row = period % this.#length
    if ((this.#periods[row] ?? 0) - 1 !== period) return undefined
    return this.#values[row * this.#width + figure]
  }

  /**
   * Values of all figures for the periods from `first` to `last`, one period after the other; 0 for
   * a period without a row.
   */
  rows(first: number, last: number): readonly number[] {
    const values = new Array<number>((last - first + 1) * this.#width).fill(0)
    this.#visit(first, last, (period, figure, value) => {
      values[(period - first) * this.#width + figure] = value
    })
    return values
  }

  /** The sum of each figure over the periods from `first` to `last`. */
  sums(first: number, last: number): readonly number[] {
    const sums = new Array<number>(this.#width).fill(0)
    this.#visit(first, last, (_period, figure, value) => {
      sums[figure] = (sums[figure] ?? 0) + value
    })
    return sums
  }

  /** Adds all rows of another ring of the same size. */
  addAll(other: RowRingBuffer): void {
    other.#visit(0, Infinity, (period, figure, value) => this.add(period, figure, value))
  }

  #visit(
    first: number,
    last: number,
    visit: (period: number, figure: number, value: number) => void,
  ): void {
    for (let row = 0; row < this.#length; row += 1) {
      const period = (this.#periods[row] ?? 0) - 1
      if (period < Math.max(0, first) || period > last) continue
      for (let figure = 0; figure < this.#width; figure += 1) {
        visit(period, figure, this.#values[row * this.#width + figure] ?? 0)
      }
    }
  }
}
