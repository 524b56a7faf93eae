import { execFileSync } from 'node:child_process'
import {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import {
  type ControllerLogWriters,
  createControllerLogWithSink,
} from '../../src/cli/controller/log.ts'
import { LineWriter, lineBufferLimits } from '../../src/cli/terminal/line-writer.ts'
import { requirePresent } from '../../src/lib/assert.ts'
import type { AuditTrail } from '../../src/ports/audit.ts'
import { eventually } from '../support/eventually.ts'

let folder: string
let opened: number[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-lines-'))
  opened = []
})
afterEach(() => {
  for (const fd of opened) closeSync(fd)
  rmSync(folder, { recursive: true, force: true })
})

function open(path: string, flags: string | number): number {
  const fd = openSync(path, flags)
  opened.push(fd)
  return fd
}

const config = { id: 'ctrl1', logLevel: 'warn', audit: { log: true } } as const
const record = {
  index: 7,
  atMs: 0,
  actor: 'root',
  actorName: 'Root',
  session: 's',
  address: '10.0.0.1',
  action: 'create',
  entity: 'service',
  entityId: 'mail',
  fields: [],
  also: [],
  outcome: 'done',
  reason: '',
  entityName: '',
  change: '',
}

type Line = Readonly<Record<string, unknown>>
const linesOf = (text: string): Line[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line)

interface Pipe {
  readonly writer: LineWriter
  readonly log: ControllerLogWriters['log']
  readonly audit: AuditTrail
  /** Lines that have arrived since the last call. */
  read(): string
}

function pipe(): Pipe {
  const path = join(folder, 'pipe')
  execFileSync('mkfifo', [path])
  const from = open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const writer = new LineWriter(open(path, constants.O_WRONLY | constants.O_NONBLOCK))
  const { log, audit } = createControllerLogWithSink(writer, config)
  const bytes = Buffer.alloc(1024 * 1024)
  const read = (): string => {
    try {
      return bytes.toString('utf8', 0, readSync(from, bytes))
    } catch {
      return ''
    }
  }
  return { writer, log, audit: requirePresent(audit, 'lines are wanted'), read }
}

test('while the reader of the log output stalls, audit lines are dropped before log lines, and the log contains the number of dropped lines', async () => {
  const { writer, log, audit, read } = pipe()
  let written = 0
  while (!writer.isCrowded) {
    written += 1
    audit.applied({ ...record, index: written })
    // Lets the pipe accept data from time to time.
    if (written % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  for (let i = 0; i < 500; i += 1) audit.applied(record)
  log.warn('this one is kept')
  let text = ''
  await eventually(
    () => {
      text += read()
      expect(text).toContain('log lines: output too slow')
      expect(text.endsWith('\n')).toBe(true)
    },
    { interval: 5 },
  )
  const lines = linesOf(text)
  expect(lines.filter(({ audit: kind }) => kind === 'write').map(({ index }) => index)).toEqual(
    Array.from({ length: written }, (_, i) => i + 1),
  )
  expect(lines.filter(({ dropped }) => dropped !== undefined)).toMatchObject([
    { level: 'warn', id: 'ctrl1', dropped: 500 },
  ])
  expect(lines.at(-2)).toMatchObject({ msg: 'this one is kept' })
})

test('the log writer limits the total size of its buffered lines', () => {
  const { writer } = pipe()
  const line = `${'x'.repeat(1023)}\n`
  const spy = vi.spyOn(writer, 'drop')
  for (let i = 0; i < lineBufferLimits.waitingCharactersMax / 1024 + 200; i += 1) writer.write(line)
  expect(spy.mock.calls.length).toBeGreaterThan(100)
  // Nobody reads the pipe: the process waits for the pipe only until a time limit, and then ends.
  writer.flushSync()
  expect(writer.isCrowded).toBe(false)
})

test('the log writer writes all its buffered lines completely when the process ends', async () => {
  const path = join(folder, 'log')
  const writer = new LineWriter(open(path, 'a'))
  const { log } = createControllerLogWithSink(writer, config)
  for (let i = 0; i < 1000; i += 1) log.warn({ i }, 'ü')
  writer.flushSync()
  await eventually(() => expect(linesOf(readFileSync(path, 'utf8'))).toHaveLength(1000))
  const numbers = linesOf(readFileSync(path, 'utf8')).map(({ i }) => Number(i))
  expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: 1000 }, (_, i) => i))
})

test('if the disk is full, the log writer drops lines, and does not log a warning about the dropped lines', async () => {
  const writer = new LineWriter(open('/dev/full', 'w'))
  const { log } = createControllerLogWithSink(writer, config)
  const spy = vi.spyOn(log, 'warn')
  for (let i = 0; i < 5000; i += 1) log.warn({ i }, 'lost')
  await eventually(() => {
    writer.write('x\n')
    expect(writer.isCrowded).toBe(false)
  })
  // The loss is not reported while nothing can be written, because the report itself would be lost
  // and cause another report.
  expect(spy).toHaveBeenCalledTimes(5000)
})

test('no audit line is written if the configuration disables the audit log', () => {
  const writer = new LineWriter(open(join(folder, 'log'), 'a'))
  expect(createControllerLogWithSink(writer, { ...config, audit: { log: false } }).audit).toBeNull()
})
