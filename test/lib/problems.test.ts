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

const page = join(import.meta.dirname, '../../docs/errors.md')

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

test('docs/errors.md lists exactly the problems of the table', () => {
  if (process.env['FLOTILLA_RECORD'] === '1') writeFileSync(page, table())
  expect(readFileSync(page, 'utf8')).toBe(table())
})

test('a field problem names the field, and a plain problem has its default message', () => {
  expect(fieldProblem('name', 'name is required').fault).toEqual({
    field: 'name',
    reason: 'name is required',
    value: undefined,
  })
  expect(new Problem('NOT_FOUND').message).toBe(problems.NOT_FOUND.message)
})

test('OpenZiti codes have the statuses that its clients expect', () => {
  const known = readCodes()
  expect(known.size).toBeGreaterThan(50)
  // Flotilla answers 404 for an unknown token; clients check only the code.
  known.set('INVALID_ENROLLMENT_TOKEN', 404)
  // Flotilla answers 401 for a wrong code.
  known.set('MFA_INVALID_TOKEN', 401)
  const others = Object.entries(problems).filter(([code, { http }]) => {
    const wire = wireCode[code as ProblemCode]
    return wire === undefined && known.has(code) && known.get(code) !== http
  })
  expect(others).toEqual([])
})
