import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  fieldProblem,
  Problem,
  problemTypes,
  reportedProblemCodes,
  type ProblemCode,
} from '../../src/lib/problems.ts'
import { readCodes } from '../contract/facts.ts'

const page = join(import.meta.dirname, '../../docs/integrate/errors.md')

/**
 * The table of problems in the code; each row has the remedy that the page contains for its code,
 * status and message.
 */
function table(remedies: ReadonlyMap<string, string>): string {
  const rows = Object.entries(problemTypes).map(([code, { http, retry, message }]) => {
    const wire = reportedProblemCodes[code as ProblemCode] ?? code
    return `| \`${wire}\` | ${http} | ${retry} | ${message} | ${remedies.get(`${wire} ${http} ${message}`) ?? ''} |`
  })
  return `# Errors

For developers of clients. A refusal is \`{"error": {"code", "message", "requestId", "cause"}, "meta"}\`. Programs compare the code, which is
stable; people read the message. \`cause\`, if present, names the field and the reason, or describes the reason for the failure in a sentence.
The OpenID provider uses other forms. Its OAuth operations answer with \`{"error", "error_description"}\`, except with status 429 and with
statuses from 500 on. The steps of a log-in answer with the content of \`error\` alone, or with a page for a browser.

| retry | meaning |
|---|---|
| never | the same request gets the same answer until the cause is corrected |
| later | retry after \`Retry-After\` seconds |
| after-election | nothing was changed; the cluster is electing a leader, which takes about a second |
| same-request-id | the write may have taken effect; retry with the same \`net-request-id\` only |

| code | status | retry | message | remedy |
|---|---|---|---|---|
${rows.join('\n')}
`
}

/** Remedies in the page, which people write there, by code, status and message. */
function remediesOf(text: string): Map<string, string> {
  const rows = text.matchAll(/^\| `([A-Z_]+)` \| (\d+) \| [a-z-]+ \| ([^|]*) \| ([^|]*) \|$/gm)
  return new Map(
    [...rows].map(([, code, http, message, remedy = '']) => [`${code} ${http} ${message}`, remedy]),
  )
}

test('docs/integrate/errors.md lists exactly the problems in the table, each with a remedy', () => {
  const remedies = remediesOf(readFileSync(page, 'utf8'))
  if (process.env['FLOTILLA_RECORD'] === '1') writeFileSync(page, table(remedies))
  expect(readFileSync(page, 'utf8')).toBe(table(remedies))
  const without = [...remedies].flatMap(([problem, remedy]) => (remedy === '' ? problem : []))
  expect(without, 'write the remedy into the page').toEqual([])
})

test('a problem about a field contains the field, and a problem without a field has its default message', () => {
  expect(fieldProblem('name', 'name is required').fault).toEqual({
    field: 'name',
    reason: 'name is required',
    value: undefined,
  })
  expect(new Problem('NOT_FOUND').message).toBe(problemTypes.NOT_FOUND.message)
})

test('error codes that also exist in OpenZiti have the statuses that its clients expect', () => {
  const known = readCodes()
  expect(known.size).toBeGreaterThan(50)
  const others = Object.entries(problemTypes).filter(([code, { http }]) => {
    const wire = reportedProblemCodes[code as ProblemCode]
    return wire === undefined && known.has(code) && known.get(code) !== http
  })
  expect(others).toEqual([])
})
