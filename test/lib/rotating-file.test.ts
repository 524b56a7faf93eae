import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { createControllerLog, createControllerLogWithSink } from '../../src/cli/controller/log.ts'
import { LineWriter } from '../../src/cli/terminal/line-writer.ts'
import { RotatingFile } from '../../src/lib/runtime/rotating-file.ts'
import { eventually } from '../support/eventually.ts'

let folder = ''
let path = ''
let opened: RotatingFile[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-log-file-'))
  path = join(folder, 'controller.log')
  opened = []
})
afterEach(() => {
  for (const file of opened) file.close()
  rmSync(folder, { recursive: true, force: true })
})

function openFile(bytesMax = 1000, keep = 2): RotatingFile {
  const file = new RotatingFile({ path, bytesMax, keep })
  opened.push(file)
  return file
}

const textOf = (name: string): string => readFileSync(name, 'utf8')
const config = { id: 'ctrl1', logLevel: 'info', audit: { log: false } } as const

/** Resolves when the line is written. */
async function write(writer: LineWriter, line: string): Promise<void> {
  writer.write(`${line}\n`)
  await eventually(() => {
    const there = [path, `${path}.1`, `${path}.2`, `${path}.3`, join(folder, 'moved')].filter(
      (one) => existsSync(one),
    )
    expect(there.some((one) => textOf(one).includes(`${line}\n`))).toBe(true)
  })
}

test('a full log file is renamed, and the configured number of earlier files is kept', async () => {
  const writer = new LineWriter(openFile(100, 2))
  for (let n = 0; n < 8; n += 1) await write(writer, `line ${n} ${'x'.repeat(40)}`)
  const heads = (name: string): string[] => textOf(name).match(/line [0-9]/g) ?? []
  expect(heads(path)).toEqual(['line 6', 'line 7'])
  expect(heads(`${path}.1`)).toEqual(['line 4', 'line 5'])
  expect(heads(`${path}.2`)).toEqual(['line 2', 'line 3'])
  expect(existsSync(`${path}.3`)).toBe(false)
})

test('every line of a burst that fills several log files is written once and completely into one of the files', async () => {
  const { log } = createControllerLogWithSink(new LineWriter(openFile(128 * 1024, 100)), config)
  for (let i = 0; i < 10_000; i += 1) log.info({ i }, 'a line of the burst')
  const files = (): string[] =>
    [path, ...Array.from({ length: 100 }, (_, at) => `${path}.${at + 1}`)].filter((one) =>
      existsSync(one),
    )
  const numbers = (): number[] =>
    files().flatMap((one) =>
      textOf(one)
        .split('\n')
        .slice(0, -1)
        .map((line) => (JSON.parse(line) as { i: number }).i),
    )
  await eventually(() => expect(numbers()).toHaveLength(10_000))
  expect(numbers().sort((a, b) => a - b)).toEqual(Array.from({ length: 10_000 }, (_, i) => i))
  expect(files().length).toBeGreaterThan(5)
  for (const one of files()) expect(statSync(one).size).toBeLessThanOrEqual(128 * 1024)
})

test('only the owner may read the log files, including a file that existed before the start', async () => {
  writeFileSync(path, 'before\n', { mode: 0o644 })
  chmodSync(path, 0o644)
  const writer = new LineWriter(openFile(20, 2))
  for (const line of ['the first line', 'the second line']) await write(writer, line)
  expect(textOf(`${path}.2`)).toBe('before\n')
  for (const one of [path, `${path}.1`, `${path}.2`]) expect(statSync(one).mode & 0o777).toBe(0o600)
})

test('a log file that another program moves away is created again', async () => {
  const writer = new LineWriter(openFile())
  await write(writer, 'before')
  renameSync(path, join(folder, 'moved'))
  await write(writer, 'after')
  expect(textOf(join(folder, 'moved'))).toBe('before\n')
  expect(textOf(path)).toBe('after\n')
})

test('lines are written into the open log file while it cannot be renamed, and older log files are kept', async () => {
  const writer = new LineWriter(openFile(20, 3))
  // The rename fails, because a non-empty folder has the name of an earlier file.
  mkdirSync(join(`${path}.3`, 'in the way'), { recursive: true })
  writeFileSync(`${path}.1`, 'first\n')
  writeFileSync(`${path}.2`, 'second\n')
  for (let n = 0; n < 5; n += 1) await write(writer, `line number ${n}`)
  expect(textOf(path).split('\n')).toHaveLength(6)
  rmSync(`${path}.3`, { recursive: true })
  await write(writer, 'another line')
  expect(textOf(path)).toBe('another line\n')
  expect(textOf(`${path}.1`).split('\n')).toHaveLength(6)
  expect([textOf(`${path}.2`), textOf(`${path}.3`)]).toEqual(['first\n', 'second\n'])
})

test('lines that were lost because the disk was full are counted in the log once the disk has space again', async () => {
  const file = openFile(1_000_000)
  const full = openSync('/dev/full', 'w')
  let isFull = true
  const asked = vi.fn()
  const writer = new LineWriter({
    fdFor: (bytes) => {
      asked()
      return isFull ? full : file.fdFor(bytes)
    },
    get current() {
      return file.current
    },
    isMidLine: false,
  })
  const { log } = createControllerLogWithSink(writer, config)
  for (let n = 0; n < 7; n += 1) log.info('lost')
  await eventually(() => expect(asked).toHaveBeenCalled())
  isFull = false
  log.info('kept')
  await eventually(() => expect(textOf(path)).toContain('log lines: output too slow'))
  closeSync(full)
  const lines = textOf(path)
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as unknown)
  expect(lines).toMatchObject([{ msg: 'kept' }, { level: 'warn', dropped: 7 }])
})

test.each([
  ['a symbolic link', (to: string) => symlinkSync(join(folder, 'elsewhere'), to)],
  ['a folder', (to: string) => mkdirSync(to)],
])(
  '%s at the path of the log file prevents the start, with an error in one sentence',
  (_what, make) => {
    make(path)
    const logFile = { path, bytesMax: 1000, keep: 1 }
    expect(() => createControllerLog({ ...config, logFile })).toThrow(
      /logFile\.path: .* cannot be written/,
    )
    expect(existsSync(join(folder, 'elsewhere'))).toBe(false)
  },
)
