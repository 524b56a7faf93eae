import {
  appendFileSync,
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { LineWriter } from '../../src/cli/terminal/line-writer.ts'
import { RotatingFile } from '../../src/lib/runtime/rotating-file.ts'
import { eventually } from '../support/eventually.ts'
import { FillingDisk } from '../support/filling-disk.ts'

let folder = ''
let path = ''

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-torn-'))
  path = join(folder, 'log')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const textOf = (name: string): string => readFileSync(name, 'utf8')

test('a log line that was cut off by a full disk damages neither the earlier lines nor the next line', async () => {
  const disk = new FillingDisk()
  const fd = openSync(path, 'a')
  try {
    const writer = new LineWriter(fd, disk)
    const dropped = vi.fn()
    writer.onDropped = dropped
    disk.room = 14
    for (const line of ['whole line', 'torn line', 'lost line']) writer.write(`${line}\n`)
    await eventually(() => expect(disk.refusals).toBeGreaterThan(0))
    writer.write('another lost line\n')
    await eventually(() => expect(disk.refusals).toBeGreaterThan(1))
    disk.room = Infinity
    writer.write('next line\n')
    await eventually(() => expect(textOf(path)).toBe('whole line\ntor\nnext line\n'))
    // A line is in the file shortly before its writer is informed.
    await eventually(() => expect(dropped).toHaveBeenCalledWith(3))
  } finally {
    closeSync(fd)
  }
})

test('a log line of which only the newline was cut off by a full disk is not counted as lost', async () => {
  const disk = new FillingDisk()
  const fd = openSync(path, 'a')
  try {
    const writer = new LineWriter(fd, disk)
    const dropped = vi.fn()
    writer.onDropped = dropped
    disk.room = 10
    for (const line of ['whole line', 'lost line']) writer.write(`${line}\n`)
    await eventually(() => expect(disk.refusals).toBeGreaterThan(0))
    disk.room = Infinity
    writer.write('next line\n')
    await eventually(() => expect(textOf(path)).toBe('whole line\nnext line\n'))
    await eventually(() => expect(dropped).toHaveBeenCalledWith(1))
  } finally {
    closeSync(fd)
  }
})

test('a log file that follows one with a torn line begins with a whole line', async () => {
  const disk = new FillingDisk()
  const file = new RotatingFile({ path, bytesMax: 30, keep: 2 })
  try {
    const writer = new LineWriter(file, disk)
    disk.room = 15
    for (const line of ['whole line', 'torn line']) writer.write(`${line}\n`)
    await eventually(() => expect(disk.refusals).toBeGreaterThan(0))
    disk.room = Infinity
    writer.write('a line of the next file\n')
    await eventually(() => expect(existsSync(`${path}.1`)).toBe(true))
    await eventually(() => expect(textOf(path)).toBe('a line of the next file\n'))
    expect(textOf(`${path}.1`)).toBe('whole line\ntorn')
  } finally {
    file.close()
  }
})

test('a log file that an earlier process left with a torn line continues with a whole line', async () => {
  appendFileSync(path, 'whole line\ntorn')
  const file = new RotatingFile({ path, bytesMax: 1000, keep: 2 })
  try {
    const writer = new LineWriter(file)
    writer.write('next line\n')
    await eventually(() => expect(textOf(path)).toBe('whole line\ntorn\nnext line\n'))
  } finally {
    file.close()
  }
})

test('the last log lines of a process begin on a new line after a torn line', async () => {
  const disk = new FillingDisk()
  const fd = openSync(path, 'a')
  try {
    const writer = new LineWriter(fd, disk)
    disk.room = 4
    writer.write('torn line\n')
    await eventually(() => expect(disk.refusals).toBeGreaterThan(0))
    writer.write('last line\n')
    writer.flushSync()
    expect(textOf(path)).toBe('torn\nlast line\n')
  } finally {
    closeSync(fd)
  }
})
