import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  fieldProblem,
  Problem,
  problems,
  wireCode,
  type ProblemCode,
} from '../../src/lib/problems.ts'
import { readCodes } from '../contract/facts.ts'

const page = join(import.meta.dirname, '../../docs/integrate/errors.md')

function table(): string {
  const rows = Object.entries(problems).map(([code, { http, retry, message }]) => {
    const wire = wireCode[code as ProblemCode]
    return `| \`${wire ?? code}\` | ${http} | ${retry} | ${message} |`
  })
  return `# Errors

Every refusal is \`{error: {code, message, requestId, cause?}, meta}\`. Codes are stable, messages are for people.
\`cause\` names the field and the reason, or tells in a sentence what stood in the way.

What asking again can do: *never* – the same request gets the same answer; *later* – after a pause, which
\`Retry-After\` tells; *after-election* – nothing was changed, another leader is being elected; *same-request-id* – only
with the \`net-request-id\` of the first try, as the write may have happened.

| code | status | ask again | message |
|---|---|---|---|
${rows.join('\n')}
`
}

test('docs/integrate/errors.md lists the problems of the table, no more and no less', () => {
  if (process.env['FLOTILLA_RECORD'] === '1') writeFileSync(page, table())
  expect(readFileSync(page, 'utf8')).toBe(table())
})

test('a problem of a field names the field, and a plain one says its default message', () => {
  expect(fieldProblem('name', 'name is required').fault).toEqual({
    field: 'name',
    reason: 'name is required',
    value: undefined,
  })
  expect(new Problem('NOT_FOUND').message).toBe(problems.NOT_FOUND.message)
})

test('codes of the API family come with the statuses that its clients know', () => {
  const known = readCodes()
  expect(known.size).toBeGreaterThan(50)
  // The mission has 404 for a token that nobody knows, and clients look at the code.
  known.set('INVALID_ENROLLMENT_TOKEN', 404)
  // The mission has 401 for a code that is wrong.
  known.set('MFA_INVALID_TOKEN', 401)
  const others = Object.entries(problems).filter(([code, { http }]) => {
    const wire = wireCode[code as ProblemCode]
    return wire === undefined && known.has(code) && known.get(code) !== http
  })
  expect(others).toEqual([])
})
