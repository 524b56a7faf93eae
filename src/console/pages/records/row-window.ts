import { useSignal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'

import { firstRowToLoad, type ListState, PAGE_ROWS, type RowRange } from './filters.ts'

/** Maximum rows of a list: browsers limit the height of an element. */
export const LISTED_ROWS_MAX = 200_000
/** Assumed height of a row until a drawn row is measured. */
const ROW_PX_ASSUMED = 40
/** Height of the head of the table, which covers the first visible row. */
const HEAD_PX = 40
/** Interval of row requests while the user scrolls. */
const ASK_MS = 120

/** Smallest height of a row in a wide window. */
const ROW_PX_MIN = 36

/**
 * Rows to load: the visible ones, one page before them, and one after them. Few rows keep the tasks
 * short in which the browser lays them out.
 */
export function rowRange(state: ListState): RowRange {
  const visible = Math.ceil(innerHeight / ROW_PX_MIN)
  // The first visible row may be the last one of its page.
  const pages = 3 + Math.ceil(visible / PAGE_ROWS)
  return { limit: pages * PAGE_ROWS, offset: firstRowToLoad(state) }
}

export interface RowWindow {
  readonly body: RefObject<HTMLTableSectionElement | null>
  /** Total height of the rows that are not loaded: before the loaded rows, and after them. */
  readonly beforePx: number
  readonly afterPx: number
  /** Scrolls to a row. */
  readonly show: (row: number) => void
}

/** Offset of the page that contains the last row. */
export function lastPage(totalRows: number): number {
  return Math.floor(Math.max(0, totalRows - 1) / PAGE_ROWS) * PAGE_ROWS
}

/** Offset of the page that contains the row at the upper edge of the visible area. */
export function firstVisiblePage(bodyTopPx: number, rowPx: number, totalRows: number): number {
  const first = Math.floor(Math.max(0, -bodyTopPx) / rowPx)
  return Math.min(Math.floor(first / PAGE_ROWS) * PAGE_ROWS, lastPage(totalRows))
}

export interface WindowOptions {
  /** Offset of the visible page; also in the page's address. */
  readonly offset: number
  /** The first loaded row, and the number of loaded rows. */
  readonly firstRow: number
  readonly rows: number
  readonly totalRows: number
  /** Called when another page becomes visible. */
  readonly onPage: (offset: number) => void
}

/**
 * A list that scrolls as if all rows were loaded: empty space of the same height replaces the rows
 * that are not. All rows have the same height.
 */
export function useRowWindow(options: WindowOptions): RowWindow {
  const { firstRow, rows, totalRows } = options
  const body = useRef<HTMLTableSectionElement>(null)
  const rowPx = useSignal(ROW_PX_ASSUMED)
  const latest = useRef(options)
  latest.current = options
  const topOf = (row: number): number =>
    (body.current?.getBoundingClientRect().top ?? 0) + row * rowPx.peek()
  const measure = (): void => {
    const measured = body.current?.querySelector('tr:not([aria-hidden])')?.getBoundingClientRect()
    if (measured !== undefined && measured.height > 0) rowPx.value = measured.height
  }
  // True once the list has scrolled to the row in the page's address, for a user who returns or
  // follows a link.
  const isThere = useRef(false)
  // Later rows are measured after the browser has drawn them: otherwise the task that renders them
  // would also have to lay them out, and take twice as long.
  useEffect(measure)
  useLayoutEffect(() => {
    if (isThere.current || rows === 0) return
    isThere.current = true
    measure()
    if (options.offset > 0) scrollBy(0, topOf(options.offset))
  }, [rows])
  // True if the offset in the address is beyond the last row, because rows were deleted meanwhile;
  // the list then shows its last page.
  const isBeyond = totalRows > 0 && firstRow >= totalRows
  useEffect(() => {
    if (isBeyond) latest.current.onPage(lastPage(totalRows))
  }, [isBeyond, totalRows])
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null
    const look = (): void => {
      timer = null
      const { offset, totalRows: all, onPage } = latest.current
      const seen = firstVisiblePage(topOf(0), rowPx.peek(), all)
      if (isThere.current && seen !== offset) onPage(seen)
    }
    const onScroll = (): void => {
      timer ??= setTimeout(look, ASK_MS)
    }
    addEventListener('scroll', onScroll, { passive: true })
    return () => {
      removeEventListener('scroll', onScroll)
      if (timer !== null) clearTimeout(timer)
    }
  }, [])
  const show = (row: number): void => {
    const top = topOf(row)
    const bottom = top + rowPx.peek()
    if (top < HEAD_PX) scrollBy(0, top - HEAD_PX)
    else if (bottom > innerHeight) scrollBy(0, bottom - innerHeight)
  }
  return {
    body,
    beforePx: Math.min(firstRow, totalRows) * rowPx.value,
    afterPx: Math.max(0, totalRows - firstRow - rows) * rowPx.value,
    show,
  }
}
