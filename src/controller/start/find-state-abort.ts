import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

import { stateProbeUrl } from '../../threads/thread-file.ts'

const OUTPUT_CHARACTERS_MAX = 16_384
/**
 * The message that glibc prints for a failed assertion, from a source file of LevelDB. Assertions
 * of other native code, such as libuv, and aborts for lack of memory do not match: they do not show
 * that the state is damaged. The message of musl has another form and does not match either, so
 * with musl a state is never replaced because of an abort.
 */
const ASSERTION =
  /\/leveldb[^\s:/]{0,50}\/(?:db|table|util)\/\w{1,50}\.cc:\d{1,9}: [^\n]{0,2000}?(Assertion `[^\n]{1,500}' failed)/

/**
 * Opens the state of a data folder in a separate process.
 * @returns the assertion with which LevelDB aborts that process; null if the process ends in any
 * other way, because then the state need not be damaged.
 */
export async function findStateAbort(dir: string): Promise<string | null> {
  const probe = spawn(process.execPath, [fileURLToPath(stateProbeUrl()), dir], {
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  probe.stdin.on('error', () => undefined)
  let output = ''
  probe.stderr.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(-OUTPUT_CHARACTERS_MAX)
  })
  try {
    const [, signal] = (await once(probe, 'close')) as [number | null, NodeJS.Signals | null]
    return signal === 'SIGABRT' ? findLevelDbAssertion(output) : null
  } catch {
    // The process could not be started. The state is opened in this process as usual.
    return null
  }
}

/** @returns the first assertion of LevelDB in the output of a process; null if there is none. */
export function findLevelDbAssertion(output: string): string | null {
  return ASSERTION.exec(output)?.[1] ?? null
}
