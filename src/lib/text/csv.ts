/** A row of a CSV file (RFC 4180). */
export interface CsvRow {
  /** Line on which the row begins, from 1. */
  readonly line: number
  readonly cells: readonly string[]
}

export interface CsvFault {
  readonly line: number
  readonly problem: string
}

/**
 * Parses a CSV string: cells are separated by commas, and quoted if they contain commas, quotes
 * (doubled) or line breaks. Empty lines are skipped. Takes time linear in the length.
 */
export function parseCsv(text: string): {
  readonly rows: readonly CsvRow[]
  readonly faults: readonly CsvFault[]
} {
  const rows: CsvRow[] = []
  const faults: CsvFault[] = []
  let at = 0
  let line = 1
  while (at < text.length) {
    const begin = line
    const cells: string[] = []
    let isEnd = false
    while (!isEnd) {
      const cell = text[at] === '"' ? quotedCell(text, at) : plainCell(text, at)
      if (cell.problem !== null) faults.push({ line, problem: cell.problem })
      line += cell.lineBreaks
      cells.push(cell.value)
      at = cell.end
      if (text[at] === ',') {
        at += 1
      } else {
        isEnd = true
        if (text[at] === '\r' && text[at + 1] === '\n') at += 1
        if (at < text.length) line += 1
        at += 1
      }
    }
    if (cells.length > 1 || cells[0] !== '') rows.push({ line: begin, cells })
  }
  return { rows, faults }
}

interface Cell {
  readonly value: string
  /** Position of the comma or line break after the cell. */
  readonly end: number
  readonly lineBreaks: number
  readonly problem: string | null
}

const CELL_END = /[,\r\n]/g

function cellEnd(text: string, from: number): number {
  CELL_END.lastIndex = from
  return CELL_END.exec(text)?.index ?? text.length
}

function plainCell(text: string, from: number): Cell {
  const end = cellEnd(text, from)
  const value = text.slice(from, end).trim()
  const problem = value.includes('"')
    ? 'a cell with a quote must be in quotes, with "" for it'
    : null
  return { value, end, lineBreaks: 0, problem }
}

function quotedCell(text: string, from: number): Cell {
  const parts: string[] = []
  let at = from + 1
  for (;;) {
    const quote = text.indexOf('"', at)
    if (quote < 0) {
      const value = text.slice(at)
      const lineBreaks = breaksIn(text.slice(from))
      return { value, end: text.length, lineBreaks, problem: 'a quoted cell does not end' }
    }
    parts.push(text.slice(at, quote))
    at = quote + 1
    if (text[at] !== '"') break
    parts.push('"')
    at += 1
  }
  const end = cellEnd(text, at)
  const isClean = text.slice(at, end).trim() === ''
  const problem = isClean ? null : 'expected a comma after a quoted cell'
  return { value: parts.join(''), end, lineBreaks: breaksIn(text.slice(from, at)), problem }
}

function breaksIn(text: string): number {
  return text.split('\n').length - 1
}
