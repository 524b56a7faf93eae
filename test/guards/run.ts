import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { MarkedSource } from './markers.ts'
import { applyMutation, attackTestOf, type Mutation, readMutations } from './mutation.ts'

// Deletes one guard at a time in a copy of the project and runs the tests that should detect this,
// the most specific ones first. A deletion that no test detects is a failure, and so is a mutation
// that no longer fits. Arguments limit the run to mutations with these names. With --attacks, it
// uses the mutations of test/attacks: each must make its attack succeed, so that the attack's test
// fails.

const root = resolve(import.meta.dirname, '../..')
const source = MarkedSource.read(root)
const runTimeoutMs = 300_000
/** Time limit for all tests together, before any guard is deleted. */
const wholeRunTimeoutMs = 6 * runTimeoutMs

/**
 * Test files that run one after the other until one fails. The first one should detect the
 * deletion.
 */
const quickTests: Readonly<Record<string, readonly string[]>> = {
  raft: ['scripts', 'paper', 'durability', 'quorum', 'owed', 'log-time'].map(
    (name) => `test/raft/${name}.test.ts`,
  ),
  store: ['recovery', 'level-state-store', 'memory-state-store', 'repair-log'].map(
    (name) => `test/store/${name}.test.ts`,
  ),
  fsm: ['test/fsm/dedupe.test.ts', 'test/fsm/restore.test.ts'],
  cluster: ['snapshot-receiver', 'parts'].map((name) => `test/cluster/${name}.test.ts`),
}
const widerTests: readonly string[] = ['test/raft', 'test/store', 'test/fsm']

interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly message: string
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[]
  }[]
}

interface Outcome {
  readonly ran: number
  /** Each failed test, as file and name. */
  readonly failed: readonly string[]
  readonly seconds: number
  /** Why the result of the run is meaningless; null if it is valid. */
  readonly trouble: string | null
}

class Copy {
  readonly #dir = mkdtempSync(join(tmpdir(), 'flotilla-guards-'))
  #child: ChildProcess | null = null

  constructor() {
    const left = new Set(['node_modules', '.git', '.test', '.flotilla'])
    const filter = (from: string): boolean => !left.has(relative(root, from))
    cpSync(root, this.#dir, { recursive: true, filter })
    // Removes the tests of guards, because with a missing guard its mutation does not fit, which is
    // not the subject of this run.
    rmSync(join(this.#dir, 'test/guards'), { recursive: true })
    symlinkSync(join(root, 'node_modules'), join(this.#dir, 'node_modules'))
  }

  remove(): void {
    this.#endTests()
    rmSync(this.#dir, { recursive: true, force: true })
  }

  async without<T>(mutation: Mutation, task: () => Promise<T>): Promise<T> {
    const mutated = applyMutation(mutation, source).map(({ path, text }) => {
      const place = join(this.#dir, path)
      return { place, text, original: readFileSync(place, 'utf8') }
    })
    for (const { place, text } of mutated) writeFileSync(place, text)
    try {
      return await task()
    } finally {
      for (const { place, original } of mutated) writeFileSync(place, original)
    }
  }

  async run(tests: readonly string[], timeoutMs = runTimeoutMs): Promise<Outcome> {
    const begunMs = Date.now()
    const reportPath = join(this.#dir, 'report.json')
    rmSync(reportPath, { force: true })
    const words = ['--reporter=json', `--outputFile=${reportPath}`, ...tests]
    const hasEnded = await this.#vitest(words, timeoutMs)
    const seconds = (Date.now() - begunMs) / 1000
    if (!hasEnded) return { ran: 0, failed: [], seconds, trouble: 'it does not end' }
    return { ...this.#judge(reportPath), seconds }
  }

  /** @returns false if the run was killed at the time limit. */
  async #vitest(words: readonly string[], timeoutMs: number): Promise<boolean> {
    const vitest = join(root, 'node_modules/vitest/vitest.mjs')
    // Stops at the first failure: without a guard, all other tests might also wait until their
    // timeouts.
    const child = spawn(
      process.execPath,
      [vitest, 'run', '--bail=1', '--project', 'unit', '--project', 'mocked', ...words],
      {
        cwd: this.#dir,
        stdio: 'ignore',
        // A separate process group, so that the workers of the tests can be killed with it.
        detached: true,
      },
    )
    this.#child = child
    const { promise, resolve: settle, reject } = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => {
      this.#endTests()
      settle(false)
    }, timeoutMs)
    child.once('error', reject)
    child.once('exit', () => settle(true))
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      this.#child = null
    }
  }

  #endTests(): void {
    if (this.#child?.pid !== undefined) process.kill(-this.#child.pid, 'SIGKILL')
    this.#child = null
  }

  #judge(reportPath: string): Omit<Outcome, 'seconds'> {
    const { testResults } = JSON.parse(readFileSync(reportPath, 'utf8')) as Report
    const failed: string[] = []
    let ran = 0
    let skipped: string | null = null
    for (const { name, assertionResults, message } of testResults) {
      const file = relative(this.#dir, name)
      if (assertionResults.length === 0) {
        const trouble = `${file} did not run: ${message.split('\n')[0]}`
        // A test file that cannot be loaded fails for any change, so its failure proves nothing.
        if (message !== '') return { ran, failed: [], trouble }
        skipped = trouble
      }
      ran += assertionResults.length
      for (const { status, fullName } of assertionResults) {
        if (status === 'failed') failed.push(`${file}: ${fullName}`)
      }
    }
    // After the first failure, Vitest skips the files that it has not started.
    return { ran, failed, trouble: failed.length > 0 ? null : skipped }
  }
}

/**
 * The sets of tests to run for a guard, one set after the other, until one detects the deletion.
 */
type TestsOf = (mutation: Mutation) => readonly (readonly string[])[]

const testsOfGuard: TestsOf = (mutation) => {
  const [file] = applyMutation(mutation, source)
  const quick = quickTests[file?.path.split('/')[1] ?? '']
  return quick === undefined ? [widerTests] : [quick, widerTests]
}

const testsOfAttack: TestsOf = ({ name }) => [[attackTestOf(name)]]

/** @returns whether a test detected the deletion. */
async function tryMutation(copy: Copy, mutation: Mutation, testsOf: TestsOf): Promise<boolean> {
  const sets = testsOf(mutation)
  let seconds = 0
  for (const tests of sets) {
    const outcome = await copy.without(mutation, () => copy.run(tests))
    seconds += outcome.seconds
    const { failed, ran, trouble } = outcome
    if (trouble !== null) {
      console.log(`NOT JUDGED  ${mutation.name}: ${tests.join(' ')}: ${trouble}`)
      return false
    }
    if (failed.length === 0) continue
    const width = tests === sets[0] ? 'caught     ' : 'caught late'
    console.log(
      `${width} ${mutation.name} in ${seconds.toFixed(1)} s by ${failed.length} of ${ran}`,
    )
    for (const one of failed.slice(0, 3)) console.log(`              ${one}`)
    return true
  }
  console.log(`NOT CAUGHT  ${mutation.name} in ${seconds.toFixed(1)} s: ${mutation.reason}`)
  return false
}

async function main(words: readonly string[]): Promise<number> {
  const isAttacks = words.includes('--attacks')
  const wanted = words.filter((word) => word !== '--attacks')
  const all = readMutations(isAttacks ? join(root, 'test/attacks') : import.meta.dirname)
  const testsOf = isAttacks ? testsOfAttack : testsOfGuard
  const mutations = wanted.length === 0 ? all : all.filter(({ name }) => wanted.includes(name))
  const unknown = wanted.filter((name) => all.every((mutation) => mutation.name !== name))
  if (unknown.length > 0) throw new Error(`no such guard: ${unknown.join(', ')}`)
  const copy = new Copy()
  // The tests run in a separate process group, so signals to this process do not reach them.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      copy.remove()
      process.exit(1)
    })
  }
  try {
    const first = isAttacks ? mutations.flatMap(testsOf).flat() : Object.values(quickTests).flat()
    const whole = await copy.run([...new Set(first)], wholeRunTimeoutMs)
    if (whole.trouble !== null || whole.failed.length > 0) {
      throw new Error(`with every guard in place: ${whole.trouble ?? whole.failed.join(', ')}`)
    }
    let missed = 0
    for (const one of mutations) if (!(await tryMutation(copy, one, testsOf))) missed += 1
    console.log(
      `${mutations.length - missed} of ${mutations.length} guards cannot be deleted unseen`,
    )
    return missed
  } finally {
    copy.remove()
  }
}

process.exitCode = (await main(process.argv.slice(2))) === 0 ? 0 : 1
