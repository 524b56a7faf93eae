import { type ChildProcess, spawn } from 'node:child_process'

const DRAIN_MS = 200

/** A program of the operator, with its first arguments. */
export interface Hook {
  readonly command: readonly string[]
  readonly timeoutMs: number
}

export interface ProgramEnd {
  /** null, or what went wrong, to follow the name of the program. */
  readonly fault: string | null
  /** The end of what it wrote to stderr; '' unless that was asked for. */
  readonly errors: string
}

export interface ProgramOptions {
  /** After those of the hook. */
  readonly words: readonly string[]
  /** Aborted: the program is killed. */
  readonly stop: AbortSignal
  /** null: that of this process. */
  readonly env?: Readonly<Record<string, string>> | null
  /** So much of the end of stderr is kept; without it nothing is, as it may hold secrets. */
  readonly errorBytesMax?: number
}

/**
 * Runs a program without a shell, as the same user, and with all that it starts in a group that
 * ends with its time.
 */
export async function runProgram(
  { command, timeoutMs }: Hook,
  { words, stop, env = null, errorBytesMax = 0 }: ProgramOptions,
): Promise<ProgramEnd> {
  if (stop.aborted) return { fault: 'was not run: the controller stops', errors: '' }
  const [program = '', ...first] = command
  const child = spawn(program, [...first, ...words], {
    stdio: ['ignore', 'ignore', errorBytesMax === 0 ? 'ignore' : 'pipe'],
    detached: true,
    ...(env === null ? {} : { env }),
  })
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    killGroup(child)
  }, timeoutMs)
  const onStop = (): void => killGroup(child)
  stop.addEventListener('abort', onStop)
  const errors = endOf(child, errorBytesMax)
  try {
    const fault = await ending(child)
    await drained(child)
    const late = `took longer than ${timeoutMs} ms and was killed`
    return { fault: isLate ? late : fault, errors: errors() }
  } finally {
    clearTimeout(timer)
    stop.removeEventListener('abort', onStop)
    // What it left running in the background could hold the pipe open for ever.
    child.stderr?.destroy()
  }
}

/** All of it is read, so that the program never waits for a reader; what came first is dropped. */
function endOf({ stderr }: ChildProcess, bytesMax: number): () => string {
  let kept = Buffer.alloc(0)
  stderr?.on('data', (chunk: Buffer) => {
    const all = Buffer.concat([kept, chunk])
    kept = Buffer.from(all.subarray(Math.max(0, all.length - bytesMax)))
  })
  stderr?.on('error', () => undefined)
  return () => kept.toString('utf8')
}

/**
 * What it wrote last may arrive after its end; what it left running may keep the pipe open for as
 * long as it likes.
 */
async function drained({ stderr }: ChildProcess): Promise<void> {
  if (stderr === null || stderr.readableEnded) return
  await Promise.race([
    new Promise((resolve) => stderr.once('close', resolve)),
    new Promise((resolve) => setTimeout(resolve, DRAIN_MS).unref()),
  ])
}

function ending(child: ChildProcess): Promise<string | null> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(`could not be run (${error.message})`))
    child.once('exit', (code, signal) => {
      if (code === 0) resolve(null)
      else resolve(code === null ? `was ended by ${String(signal)}` : `ended with code ${code}`)
    })
  })
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}
