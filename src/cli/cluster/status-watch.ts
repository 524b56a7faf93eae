import { printableText } from '../../lib/text/terminal-text.ts'
import type { ClusterStatus } from '../../api/cluster/cluster-status.ts'
import { CommandFailure } from '../../controller/command-failure.ts'
import { formatStreamDocument } from '../terminal/output.ts'
import { clusterStatusLine, clusterStatusText } from './status-screen.ts'

const LOOK_MS = 1000
/**
 * Moves the cursor to the top left. Each line is then cleared to its end when it is written, and
 * the rest of the screen last; clearing the whole screen first would flicker.
 */
const HOME = '\u001b[H'
const TO_LINE_END = '\u001b[K'
const BELOW = '\u001b[J'
const CLEAR = '\u001b[2J'

export interface StatusWatchDeps {
  /** @throws {CommandFailure} when the controller does not respond. */
  readonly ask: () => Promise<ClusterStatus>
  readonly write: (text: string) => void
  /**
   * screen: redrawn at each poll; lines: one text line for each poll; json: one JSON line for each
   * poll.
   */
  readonly form: 'screen' | 'lines' | 'json'
  readonly now: () => Date
  /** @returns false to stop. */
  readonly wait: (ms: number) => Promise<boolean>
}

/** Polls once a second until stopped, even while the controller is unreachable. */
export async function watchStatus(deps: StatusWatchDeps): Promise<void> {
  if (deps.form === 'screen') deps.write(CLEAR)
  do {
    const time = deps.now().toISOString()
    try {
      show(deps, time, await deps.ask())
    } catch (error) {
      if (!(error instanceof CommandFailure)) throw error
      showFailure(deps, time, error.message)
    }
  } while (await deps.wait(LOOK_MS))
}

function show({ form, write }: StatusWatchDeps, time: string, status: ClusterStatus): void {
  switch (form) {
    case 'screen':
      draw(write, `${time}\n${clusterStatusText(status)}`)
      break
    case 'lines':
      write(`${time} ${clusterStatusLine(status)}\n`)
      break
    case 'json':
      write(formatStreamDocument({ time, ...status }))
      break
  }
}

function showFailure({ form, write }: StatusWatchDeps, time: string, message: string): void {
  const shown = printableText(message)
  if (form === 'screen') draw(write, `${time}\n${shown}\nwaiting for the controller`)
  else if (form === 'lines') write(`${time} ${shown}\n`)
  else write(formatStreamDocument({ time, error: message }))
}

function draw(write: (text: string) => void, text: string): void {
  const lines = text.split('\n').map((line) => `${line}${TO_LINE_END}\n`)
  write(`${HOME}${lines.join('')}${BELOW}`)
}
