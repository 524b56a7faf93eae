import { readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'

import {
  NoResponseError,
  OutcomeUnknownError,
  UnreachableError,
} from '../../src/client/client-errors.ts'
import { AdminSocketError } from '../../src/cli/client/admin-socket.ts'
import { ApiRefusal } from '../../src/cli/client/api-refusal.ts'
import { exitCodes, findFailureCause } from '../../src/cli/terminal/exit-codes.ts'
import {
  CommandFailure,
  EXIT_DENIED,
  EXIT_FAILED,
  EXIT_NOT_FOUND,
  EXIT_USAGE,
} from '../../src/controller/command-failure.ts'

// Goal: a script knows the cause of a failure from the exit code alone.

const wrapped = (cause: Error): CommandFailure => new CommandFailure(EXIT_FAILED, 'no', cause)
const silent = { origin: 'https://a:1', reason: 'refused the connection' }

test.each([
  ['an unknown cause', wrapped(new Error('no')), 1, 'FAILED'],
  ['wrong usage', new CommandFailure(EXIT_USAGE, 'no'), 2, 'USAGE'],
  ['a missing session', new CommandFailure(EXIT_DENIED, 'no'), 3, 'DENIED'],
  ['a missing permission', new ApiRefusal(401, 'UNAUTHORIZED', 'no'), 3, 'UNAUTHORIZED'],
  ['a refused log-in', wrapped(new ApiRefusal(401, 'INVALID_AUTH', 'no')), 3, 'INVALID_AUTH'],
  [
    'an admin socket of another user',
    wrapped(new AdminSocketError('NO_PERMISSION', 'no')),
    3,
    'NO_PERMISSION',
  ],
  ['an unknown name', new CommandFailure(EXIT_NOT_FOUND, 'no'), 4, 'NOT_FOUND'],
  ['an unknown record', wrapped(wrapped(new ApiRefusal(404, 'NOT_FOUND', 'no'))), 4, 'NOT_FOUND'],
  [
    'a cluster without a leader',
    new ApiRefusal(503, 'CLUSTER_NO_LEADER', 'no'),
    5,
    'CLUSTER_NO_LEADER',
  ],
  ['a stopped controller', wrapped(new AdminSocketError('NOT_RUNNING', 'no')), 5, 'NOT_RUNNING'],
  ['controllers that do not answer', wrapped(new UnreachableError([silent])), 5, 'UNREACHABLE'],
  ['an address without a server', wrapped(new NoResponseError('no', false)), 5, 'UNREACHABLE'],
  [
    'a write whose outcome is unknown',
    wrapped(new OutcomeUnknownError(silent, new NoResponseError('no', true))),
    1,
    'OUTCOME_UNKNOWN',
  ],
  ['an invalid value', new ApiRefusal(400, 'INVALID_FIELD', 'no'), 1, 'INVALID_FIELD'],
])(
  'findFailureCause maps %s to its exit code and its error code',
  (_what, failure, exitCode, errorCode) => {
    expect(findFailureCause(failure)).toEqual({ exitCode, errorCode })
  },
)

const page = resolve(import.meta.dirname, '../../docs/reference/cli.md')
const TABLE = /(<!-- exit codes -->\n)(?:\|.*\n)+/

test('docs/reference/cli.md lists every exit code', () => {
  const rows = exitCodes.map(
    ({ code, meaning, errorCode }) =>
      `| ${code} | ${meaning} | ${errorCode === '' ? '' : `\`${errorCode}\``} |\n`,
  )
  const table = ['| exit code | meaning | `error.code` |\n', '|---|---|---|\n', ...rows].join('')
  const text = readFileSync(page, 'utf8')
  const expected = text.replace(TABLE, `$1${table}`)
  if (process.env['FLOTILLA_RECORD'] === '1') writeFileSync(page, expected)
  expect(readFileSync(page, 'utf8'), 'FLOTILLA_RECORD=1 records it').toBe(expected)
})
