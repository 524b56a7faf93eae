import { expect, test } from 'vitest'

import {
  createJsonLogger,
  HumanReadableLines,
  wantsColor,
} from '../../src/cli/terminal/log-lines.ts'

// Goal: a person can read a log on a terminal, and a program finds level names in JSON.

function sink(): { readonly lines: string[]; write(line: string): void } {
  const lines: string[] = []
  return { lines, write: (line) => void lines.push(line) }
}

test('a log line for programs is JSON with the name of the level', () => {
  const out = sink()
  createJsonLogger(out, { level: 'info', base: { id: 'ctrl1' } }).warn(
    { term: 3 },
    'a leader is gone',
  )
  expect(JSON.parse(out.lines[0] ?? '')).toEqual({
    level: 'warn',
    time: expect.stringMatching(/^\d{4}-.*Z$/) as string,
    id: 'ctrl1',
    term: 3,
    msg: 'a leader is gone',
  })
})

test('a log line for people contains time, level, controller, message and fields', () => {
  const out = sink()
  const log = createJsonLogger(new HumanReadableLines(out, false), {
    level: 'debug',
    base: { id: 'ctrl1' },
  })
  log.info({ term: 3, web: ['a:1'], name: 'two words' }, 'new leader')
  expect(out.lines[0]).toMatch(
    /^\d{4}-\S+Z INFO {2}ctrl1: new leader {2}term=3 web=\["a:1"\] name="two words"\n$/,
  )
})

test('a log line with an error contains the stack trace on the following lines', () => {
  const out = sink()
  const log = createJsonLogger(new HumanReadableLines(out, false), { level: 'debug', base: {} })
  log.error({ err: new Error('broken') }, 'a component failed')
  const [first, second, third] = (out.lines[0] ?? '').split('\n')
  expect(first).toMatch(/ERROR a component failed$/)
  expect(second).toBe('    Error: broken')
  expect(third).toMatch(/^ {4}at /)
})

test('a log line shows its level by color, and control characters in its text as printable characters', () => {
  const out = sink()
  const log = createJsonLogger(new HumanReadableLines(out, true), { level: 'debug', base: {} })
  log.error({ name: '\u001b[2Jgone\nERROR forged' }, 'a \u001b[31mname\nWARN forged')
  expect(out.lines[0]).toContain('\u001b[31mERROR\u001b[0m')
  expect(out.lines[0]).not.toContain('\u001b[2J')
  expect(out.lines[0]?.match(/\n/g)).toHaveLength(1)
})

test.each([
  [{}, true],
  [{ NO_COLOR: '' }, true],
  [{ NO_COLOR: '1' }, false],
  [{ TERM: 'dumb' }, false],
])('for the environment %j, wantsColor (whether log lines have colors) returns %s', (env, is) => {
  expect(wantsColor(env)).toBe(is)
})
