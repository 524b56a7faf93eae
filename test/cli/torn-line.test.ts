import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, write } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'

import { LineWriter } from '../../src/cli/terminal/line-writer.ts'
import { eventually } from '../support/eventually.ts'

// Method: a simulated disk that accepts only this many bytes, like one that becomes full during a
// write.

const disk = {
  room: Infinity,
  refusals: 0,
  write(
    fd: number,
    bytes: Buffer,
    done: (error: NodeJS.ErrnoException | null, written: number) => void,
  ): void {
    const taken = Math.min(bytes.length, disk.room)
    disk.room -= taken
    if (taken > 0) {
      write(fd, bytes.subarray(0, taken), done)
      return
    }
    disk.refusals += 1
    setImmediate(done, Object.assign(new Error('no space left'), { code: 'ENOSPC' }), 0)
  },
}

test('a log line that was cut off by a full disk damages neither the earlier lines nor the next line', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'flotilla-torn-'))
  const path = join(folder, 'log')
  const fd = openSync(path, 'a')
  try {
    const writer = new LineWriter(fd, disk)
    const dropped = vi.fn()
    writer.onDropped = dropped
    disk.room = 14
    for (const line of ['whole line', 'torn line', 'lost line']) writer.write(`${line}\n`)
    await eventually(() => expect(disk.refusals).toBeGreaterThan(0))
    disk.room = Infinity
    writer.write('next line\n')
    await eventually(() => expect(readFileSync(path, 'utf8')).toContain('next line\n'))
    const lines = readFileSync(path, 'utf8').split('\n')
    expect(lines).toContain('whole line')
    expect(lines).toContain('next line')
    // A line is in the file shortly before its writer is informed.
    await eventually(() => expect(dropped).toHaveBeenCalledWith(2))
  } finally {
    closeSync(fd)
    rmSync(folder, { recursive: true, force: true })
  }
})
