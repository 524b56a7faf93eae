import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { readTextFile } from '../../src/cli/terminal/text-file.ts'
import { runHere } from './run-here.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-text-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

describe('an input file of a command', () => {
  test('is read up to its maximum size, and refused if it is larger by one byte', () => {
    const path = join(folder, 'text')
    const text = 'ä'.repeat(100_000)
    writeFileSync(path, text)
    expect(readTextFile(path, 200_000)).toBe(text)
    expect(() => readTextFile(path, 199_999)).toThrow(/^it is larger than 199999 bytes$/)
  })

  test('that never ends is read only up to its maximum size, and refused', () => {
    expect(() => readTextFile('/dev/zero')).toThrow(/^it is larger than 4194304 bytes$/)
  })

  test('can be a named pipe', async () => {
    const path = join(folder, 'pipe')
    execFileSync('mkfifo', [path])
    const script = 'printf "through a pipe" > "$1"'
    const writer = spawn('sh', ['-c', script, 'sh', path], { stdio: 'ignore' })
    const ended = once(writer, 'exit')
    expect(readTextFile(path)).toBe('through a pipe')
    expect(await ended).toEqual([0, null])
  })

  const endless = [
    ['apply', '-f', '/dev/zero'],
    ['import', '/dev/zero'],
    ['access', 'preview', '-f', '/dev/zero'],
    ['create', 'service', '-f', '/dev/zero'],
    ['create', 'service', 'name@/dev/zero'],
    ['login', 'https://127.0.0.1:9', '--user', 'a', '--ca', '/dev/zero'],
  ]
  test.each(endless.map((words) => [words.join(' '), words] as const))(
    'makes `%s` fail with one sentence if the file never ends',
    async (_line, words) => {
      const done = await runHere(words, { XDG_CONFIG_HOME: folder })
      expect([done.code, done.stderr]).toEqual([
        2,
        expect.stringMatching(
          /^flotilla: [^\n]*\/dev\/zero cannot be (?:read|used) \(it is larger than \d+ bytes\)\n$/,
        ),
      ])
    },
  )
})
