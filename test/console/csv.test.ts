import { expect, test } from 'vitest'

import { csvText } from '../../src/console/app/csv.ts'

// Goal: a spreadsheet program that opens an exported file evaluates no formulas in the names that
// it contains.

test.each([
  '=1+1',
  '+1',
  '-1',
  '@SUM(A1)',
  '|calc',
  '%0A=1',
  '\t=1',
  '\r=1',
  '\n=1',
  ' =1',
  '\u00A0=1',
  '\uFEFF=1',
  '\uFF1D1',
  '\uFF0B1',
  '\uFF0D1',
  '\uFF201',
  '=cmd|\' /C calc\'!A0","=2',
])(
  'the CSV cell %j begins with an apostrophe, so that a spreadsheet does not run it, and is correctly quoted',
  (value) => {
    expect(csvText([['a', value, 'b']])).toBe(`"a","'${value.replaceAll('"', '""')}","b"\r\n`)
  },
)

test.each(['wiki', 'a=1', 'a,b', '"', ''])(
  'the CSV cell %j is quoted, and does not begin with an apostrophe',
  (value) => {
    expect(csvText([[value]])).toBe(`"${value.replaceAll('"', '""')}"\r\n`)
  },
)
