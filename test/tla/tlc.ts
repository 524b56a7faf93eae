import { spawn } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { traceModule } from './tla-module.ts'
import type { Trace, TraceEvent } from './trace-event.ts'

export interface Verdict {
  readonly isExplained: boolean
  readonly events: number
  /** Number of states that TLC reached: one more than the number of events that it accepted. */
  readonly states: number
  readonly seconds: number
  /** Name in FlotillaTrace.cfg of a broken guarantee; null if none was broken. */
  readonly broken: string | null
  /**
   * The first event that no action explains, or after which a guarantee is broken; null if no event
   * does.
   */
  readonly culprit: { readonly number: number; readonly event: TraceEvent } | null
}

const MODULES = ['FlotillaRaft.tla', 'FlotillaTrace.tla', 'FlotillaTrace.cfg'] as const

/**
 * Runs TLC over the events step by step with FlotillaTrace.tla.
 * @param jar tla2tools.jar, version 2.15 or later
 * @throws with TLC's output if it gives no verdict
 */
export async function validate(jar: string, trace: Trace): Promise<Verdict> {
  const folder = mkdtempSync(join(tmpdir(), 'flotilla-tlc-'))
  try {
    for (const name of MODULES) {
      copyFileSync(join(import.meta.dirname, name), join(folder, name))
    }
    writeFileSync(join(folder, 'TraceData.tla'), traceModule(trace))
    const startedMs = performance.now()
    const said = await run(jar, folder)
    return judge(trace, said, (performance.now() - startedMs) / 1000)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function judge(trace: Trace, said: string, seconds: number): Verdict {
  const events = trace.events.length
  const broken = /Invariant (\w+) is violated/.exec(said)?.[1] ?? null
  const depth = /depth of the complete state graph search is (\d+)/.exec(said)?.[1]
  // When a guarantee is broken, TLC prints all states up to that one.
  const told = [...said.matchAll(/^State (\d+):/gm)].at(-1)?.[1]
  const states = Number(broken === null ? depth : told)
  if (!Number.isSafeInteger(states)) throw new Error(`TLC gives no verdict:\n${said.slice(-4_000)}`)
  const isExplained = broken === null && states === events + 1
  const number = broken === null ? states : states - 1
  const event = trace.events[number - 1]
  const culprit = isExplained || event === undefined ? null : { number, event }
  return { isExplained, events, states, seconds, broken, culprit }
}

async function run(jar: string, folder: string): Promise<string> {
  const options = ['-workers', '1', '-metadir', join(folder, 'states')]
  const tlc = spawn(
    'java',
    // Values of long logs are deeply nested; TLC processes them recursively.
    ['-XX:+UseParallelGC', '-Xss64m', '-cp', jar, 'tlc2.TLC', ...options].concat(
      '-config',
      'FlotillaTrace.cfg',
      'FlotillaTrace',
    ),
    { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] },
  )
  tlc.stdout.setEncoding('utf8')
  // Only the numbers of these states are needed, not their content.
  const wanted = /^(State \d+:|The depth|Error:|Finished)/
  let said = ''
  let rest = ''
  for await (const chunk of tlc.stdout as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (wanted.test(line) || said.length < 4_000) said += `${line}\n`
  }
  return said
}
