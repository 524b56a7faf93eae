import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'
import type { Result } from './simulate.ts'
import { type Subject, Tally } from './tally.ts'
import { TraceHash } from './trace-hash.ts'

export interface CampaignOptions {
  readonly subject: Subject
  readonly first: number
  readonly seeds: number
  readonly workers: number
  readonly untilFailure: boolean
  /** A seed that takes longer than this counts as hanging. */
  readonly seedMsMax: number
  readonly onResult: (result: Result, done: number) => void
}

export interface CampaignResult {
  readonly done: number
  readonly failures: readonly (Result & { readonly ok: false })[]
  /** Hash of the traces of all seeds, in the order of the seeds. */
  readonly trace: string
  readonly tally: Tally
  readonly steps: number
  readonly stepsMin: number
  readonly acknowledged: number
  readonly checkMs: number
  readonly checkedMs: number
}

/** Runs seeds in several processes; the results do not depend on the number of processes. */
export async function runCampaign(options: CampaignOptions): Promise<CampaignResult> {
  const results = new Map<number, Result>()
  const end = options.first + options.seeds
  let next = options.first
  let isOver = false
  const take = (): number | null => {
    if (isOver || next >= end) return null
    next += 1
    return next - 1
  }
  const onResult = (result: Result): void => {
    results.set(result.seed, result)
    if (!result.ok && options.untilFailure) isOver = true
    options.onResult(result, results.size)
  }
  const workers = Math.max(1, Math.min(options.workers, options.seeds))
  await Promise.all(
    Array.from({ length: workers }, async () => await runWorker(take, onResult, options)),
  )
  return summarise(results, options.subject)
}

async function runWorker(
  take: () => number | null,
  onResult: (result: Result) => void,
  options: Pick<CampaignOptions, 'subject' | 'seedMsMax'>,
): Promise<void> {
  let seed = take()
  while (seed !== null) {
    const first = seed
    seed = await runUntilGone(first, take, onResult, options)
  }
}

/**
 * Runs seeds in one process after the other. If a process hangs or dies, its current seed counts as
 * failed.
 * @returns the next seed.
 */
async function runUntilGone(
  first: number,
  take: () => number | null,
  onResult: (result: Result) => void,
  { subject, seedMsMax }: Pick<CampaignOptions, 'subject' | 'seedMsMax'>,
): Promise<number | null> {
  const child: ChildProcess = fork(join(import.meta.dirname, 'worker.ts'), {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  let seed: number | null = first
  let reason = 'its process has ended'
  let timer: NodeJS.Timeout | undefined
  const order = (): void => {
    clearTimeout(timer)
    child.send({ seed, subject })
    if (seed === null) return
    timer = setTimeout(() => {
      reason = `it has not come to an end within ${seedMsMax / 1000} s`
      child.kill('SIGKILL')
    }, seedMsMax)
  }
  return await new Promise((resolve) => {
    child.on('message', (message: Result | 'ready') => {
      if (message !== 'ready') {
        seed = take()
        onResult(message)
      }
      order()
    })
    child.on('exit', () => {
      clearTimeout(timer)
      if (seed === null) {
        resolve(null)
        return
      }
      const failure = { invariant: 'liveness', message: reason, step: 0, stack: '' }
      onResult({ ok: false, seed, failure, counts: {} })
      resolve(take())
    })
  })
}

function summarise(results: ReadonlyMap<number, Result>, subject: Subject): CampaignResult {
  const tally = new Tally(subject)
  const hash = new TraceHash(() => undefined)
  const failures: (Result & { ok: false })[] = []
  const totals = { steps: 0, stepsMin: Infinity, acknowledged: 0, checkMs: 0, checkedMs: 0 }
  for (const [seed, result] of [...results].sort(([a], [b]) => a - b)) {
    tally.add(result.counts)
    if (!result.ok) {
      failures.push(result)
      continue
    }
    hash.add(seed, result.trace)
    totals.steps += result.steps
    totals.stepsMin = Math.min(totals.stepsMin, result.steps)
    totals.acknowledged += result.acknowledged
    totals.checkMs += result.checkMs
    totals.checkedMs += result.checkedMs
  }
  return { done: results.size, failures, trace: hash.hex, tally, ...totals }
}
