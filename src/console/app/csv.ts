/** Pattern of a cell that spreadsheets would execute as a formula (OWASP, CSV injection). */
const FORMULA = /^\s*[=+\-@\t\r\n|%\uFF1D\uFF0B\uFF0D\uFF20]/

/** Formats one cell of a CSV file (RFC 4180) so that no spreadsheet executes it. */
function csvCell(value: string): string {
  const inert = FORMULA.test(value) ? `'${value}` : value
  return `"${inert.replaceAll('"', '""')}"`
}

/** Formats rows as a CSV file; the first row contains the column names. */
export function csvText(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => `${row.map(csvCell).join(',')}\r\n`).join('')
}
