import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

import { readTokenFile } from '../../../src/cli/enroll/token-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'flotilla-token-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Reads a pipe into which a shell writes, as it does for `<(echo "$TOKEN")`. */
async function readFromPipe(name: string, text: string): Promise<unknown> {
  const pipe = join(folder, name)
  execFileSync('mkfifo', [pipe])
  const writer = spawn('sh', ['-c', 'printf %s "$0" > "$1"', text, pipe], { stdio: 'ignore' })
  const ended = once(writer, 'exit')
  try {
    return readTokenFile(pipe)
  } catch (error) {
    return (error as Error).message
  } finally {
    await ended
  }
}

describe('the file of an enrollment token', () => {
  test('can be a pipe', async () => {
    expect(await readFromPipe('short', 'header.claims.signature')).toBe('header.claims.signature')
  })

  test('is refused if it is a pipe with more bytes than any token has', async () => {
    expect(await readFromPipe('long', 'a'.repeat(100_000))).toBe(
      `${join(folder, 'long')} is not an enrollment token file`,
    )
  })

  test('is refused if it is a folder', () => {
    expect(() => readTokenFile(folder)).toThrow(`${folder} is not an enrollment token file`)
  })
})
