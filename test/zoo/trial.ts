import { rmSync } from 'node:fs'
import { type Ended, type Failure, failureIn, run } from './child.ts'
import { type Bug, fileStem } from './index.ts'
import { readMutation } from '../guards/mutation.ts'
import { copyTree, plant } from './tree.ts'

export interface TrialOptions {
  /** Arguments of the campaign, which runs in the copy. */
  readonly simulator: readonly string[]
  readonly seeds: number
  readonly msMax: number
  readonly isFresh: boolean
}

export type Verdict = { readonly ms: number } & (
  | { readonly isCaught: true; readonly failure: Failure }
  | { readonly isCaught: false; readonly reason: string }
)

/** Tests bugs one by one; several may run at the same time. */
export class Trial {
  readonly #folder: string
  readonly #options: TrialOptions
  readonly #clean: string
  /** Result of the unchanged source, by seed or scenario; each is computed once. */
  readonly #unplanted = new Map<string, Promise<Ended>>()

  /** @param folder contains the trees; the caller must remove it. */
  constructor(folder: string, options: TrialOptions) {
    this.#folder = folder
    this.#options = options
    this.#clean = copyTree(folder, 'clean')
  }

  async judge(bug: Bug): Promise<Verdict> {
    const beganMs = performance.now()
    const tree = copyTree(this.#folder, fileStem(bug))
    try {
      const misfit = plant(tree, readMutation(import.meta.dirname, fileStem(bug)))
      const outcome = misfit ?? (await this.#run(bug, tree))
      const ms = performance.now() - beganMs
      return typeof outcome === 'string'
        ? { isCaught: false, reason: outcome, ms }
        : { isCaught: true, failure: outcome, ms }
    } finally {
      rmSync(tree, { recursive: true, force: true })
    }
  }

  /** @returns the failure that detected the bug, or the reason why nothing did. */
  async #run(bug: Bug, tree: string): Promise<Failure | string> {
    const failure =
      bug.caughtBy === 'scenario' ? await this.#play(bug, tree) : await this.#search(bug, tree)
    if (typeof failure === 'string') return failure
    const words = failure.seed === null ? scenarioOf(bug) : this.#campaign(bug, failure.seed, 1)
    const { code, output } = await this.#runClean(words)
    if (code === 0) return failure
    const found = failureIn(output)
    return `the source as it stands fails, too: ${found?.message ?? lastLine(output)}`
  }

  async #play(bug: Bug, tree: string): Promise<Failure | string> {
    return outcomeOf(await run(scenarioOf(bug), { cwd: tree, msMax: this.#options.msMax }))
  }

  /**
   * Runs the seed that is known to detect the bug; if it does not, because the code has changed
   * since, runs all other seeds.
   */
  async #search(bug: Bug, tree: string): Promise<Failure | string> {
    const { seeds, msMax, isFresh } = this.#options
    if (bug.seed !== undefined && !isFresh) {
      const known = await run(this.#campaign(bug, bug.seed, 1), { cwd: tree, msMax })
      const outcome = outcomeOf(known)
      if (typeof outcome !== 'string') return outcome
    }
    return outcomeOf(await run(this.#campaign(bug, 1, seeds), { cwd: tree, msMax }))
  }

  #campaign({ caughtBy }: Bug, first: number, seeds: number): readonly string[] {
    const subject = caughtBy === 'circuits' ? ['--circuits'] : []
    const range = ['--first', `${first}`, '--seeds', `${seeds}`, '--until-failure']
    return [...this.#options.simulator, ...subject, ...range]
  }

  async #runClean(words: readonly string[]): Promise<Ended> {
    const key = words.join(' ')
    const known = this.#unplanted.get(key)
    if (known !== undefined) return await known
    const running = run(words, { cwd: this.#clean, msMax: this.#options.msMax })
    this.#unplanted.set(key, running)
    return await running
  }
}

function scenarioOf(bug: Bug): readonly string[] {
  return ['node', 'test/zoo/play.ts', `test/zoo/scenarios/${fileStem(bug)}.ts`]
}

function outcomeOf({ code, output, ms }: Ended): Failure | string {
  if (code === null) return `nothing was found in ${Math.round(ms / 1000)} s`
  if (code === 0) return 'everything held'
  return failureIn(output) ?? `it does not run: ${lastLine(output)}`
}

function lastLine(output: string): string {
  return output.trim().split('\n').at(-1) ?? ''
}

const NAME_COLUMNS = 52
const MESSAGE_CHARACTERS = 120

export function describeVerdict(bug: Bug, verdict: Verdict): string {
  const seconds = `${(verdict.ms / 1000).toFixed(1)} s`
  const start = `${String(bug.number).padStart(2)} ${bug.name.padEnd(NAME_COLUMNS)}`
  if (!verdict.isCaught)
    return `${start} NOT CAUGHT by ${bug.caughtBy} (${seconds}): ${verdict.reason}`
  const { invariant, seed, step } = verdict.failure
  const message = verdict.failure.message.replace(`${invariant}: `, '').slice(0, MESSAGE_CHARACTERS)
  const place = seed === null ? 'scenario' : `campaign seed=${seed} step=${step}`
  return `${start} ${invariant.padEnd(8)} ${place} (${seconds}): ${message}`
}
