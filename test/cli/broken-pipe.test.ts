import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { flotilla } from '../support/program.ts'

// Goal: `flotilla … | head` ends without a stack trace. Method: the reading side of the pipe is
// closed before anything is printed.

test('a command ends without an error message when the reader of its output closes the pipe', async () => {
  const child = spawn(flotilla, ['cluster', '--help'], { stdio: ['ignore', 'pipe', 'pipe'] })
  child.stdout.destroy()
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
  const [, signal] = (await once(child, 'close')) as [number | null, string | null]
  expect(said).toBe('')
  expect(signal).toBe('SIGTERM')
})
