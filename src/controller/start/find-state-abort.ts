import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

import { stateProbeUrl } from '../../threads/thread-file.ts'

const OUTPUT_CHARACTERS_MAX = 16_384
/**
 * Message of a failed assertion in native code. Other aborts, such as those for lack of memory, do
 * not match.
 */
const ASSERTION = /Assertion `[^\n]{1,500}' failed/

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
    return signal === 'SIGABRT' ? (ASSERTION.exec(output)?.[0] ?? null) : null
  } catch {
    // The process could not be started. The state is opened in this process as usual.
    return null
  }
}
