import { type ChildProcess, spawn } from 'node:child_process'

/** Number of characters that are kept from the end of a child's output. */
const OUTPUT_CHARACTERS_MAX = 64 * 1024

export interface Ended {
  /** null: the process was killed because its time was over. */
  readonly code: number | null
  readonly output: string
  readonly ms: number
}

const children = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})

const FAILED = /^FAILED (?:seed=(\d+) )?(?:step=(\d+) )?invariant=(\S+) (.*)\n/m

/** Runs a program to its end, until its time is over, or until it has reported a failure. */
export async function run(
  words: readonly string[],
  { cwd, msMax }: { readonly cwd: string; readonly msMax: number },
): Promise<Ended> {
  const [program = '', ...rest] = words
  const beganMs = performance.now()
  const child = spawn(program, rest, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  children.add(child)
  let output = ''
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-OUTPUT_CHARACTERS_MAX)
    // The rest of the output is only an explanation for a reader at a terminal.
    if (FAILED.test(output)) child.kill('SIGKILL')
  }
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  let isOutOfTime = false
  const timer = setTimeout(() => {
    isOutOfTime = true
    child.kill('SIGKILL')
  }, msMax)
  const code = await new Promise<number>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (status) => resolve(status ?? 1))
  })
  clearTimeout(timer)
  children.delete(child)
  return { code: isOutOfTime ? null : code, output, ms: performance.now() - beganMs }
}

export interface Failure {
  readonly invariant: string
  readonly message: string
  readonly seed: number | null
  readonly step: number | null
}

/**
 * @returns the text of the line that reports a failed seed or scenario; null if the output has
 * none.
 */
export function failureIn(output: string): Failure | null {
  const line = FAILED.exec(output)
  if (line === null) return null
  const [, seed, step, invariant = '', message = ''] = line
  const numberOf = (text: string | undefined): number | null =>
    text === undefined ? null : Number(text)
  return { invariant, message, seed: numberOf(seed), step: numberOf(step) }
}
