import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { findLevelDbAssertion } from '../../src/controller/start/find-state-abort.ts'
import { openState } from '../../src/controller/start/open-state.ts'
import type { StateMachine } from '../../src/fsm/state-machine.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { damageData, makeLevelAbort } from '../chaos/file-damage.ts'
import { LogWriter } from '../fsm/support/log.ts'
import { writeRandomLog } from '../fsm/support/random-log.ts'

// Goal: for any damage to the files of a state, the state that is opened is an earlier one with its
// own digest, or an empty one. Method: a real state machine writes a state in several batches; then
// random places of its files are damaged.

const made: string[] = []
afterEach(() => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'flotilla-state-'))
  made.push(dir)
  return dir
}

function digestOf(machine: StateMachine): string {
  const { index, state, entities } = machine.digests()
  return `${index} ${state} ${entities}`
}

/** The folder of a state that was persisted several times, with the digest of each time. */
async function written(): Promise<{ dir: string; digests: ReadonlySet<string> }> {
  const dir = folder()
  const digests = new Set<string>()
  let { machine } = await openState(dir, 0, false)
  const log = new LogWriter((entry) => {
    const applied = machine.apply(entry)
    digests.add(digestOf(machine))
    return applied
  })
  log.form()
  for (let batch = 1; batch <= 4; batch += 1) {
    writeRandomLog(log, batch, 120)
    await machine.close()
    machine = (await openState(dir, 0, false)).machine
  }
  await machine.close()
  return { dir, digests }
}

test('a damaged state store is opened with an earlier state, or is renamed and replaced by an empty store', async () => {
  const { dir, digests } = await written()
  const random = seededRandom(3)
  let given = 0
  const rounds = 60
  for (let round = 1; round <= rounds; round += 1) {
    const copy = folder()
    cpSync(dir, copy, { recursive: true })
    const what = damageData(copy, 'state', random)
    const { machine, dropped } = await openState(copy, 0, true)
    if (dropped === null) {
      const isKnown = machine.appliedIndex === 0 || digests.has(digestOf(machine))
      expect(isKnown, `${what}: a state that never was`).toBe(true)
    } else {
      given += 1
      expect(machine.appliedIndex, what).toBe(0)
      expect(existsSync(join(copy, 'state.damaged')), what).toBe(true)
    }
    await machine.close()
  }
  expect(given).toBeGreaterThan(rounds / 4)
})

test('a damaged state store is refused and left unchanged if no other controller could replace the state', async () => {
  const { dir } = await written()
  writeFileSync(join(dir, 'state/CURRENT'), 'X\n')
  await expect(openState(dir, 0, false)).rejects.toThrow(/names neither A nor B/)
  expect(readFileSync(join(dir, 'state/CURRENT'), 'utf8')).toBe('X\n')
  expect(readdirSync(dir)).toEqual(['state'])
})

test('of several damaged states only the latest is kept, and none if the disk lacks the space', async () => {
  const { dir } = await written()
  for (const content of ['X\n', 'Y\n']) {
    writeFileSync(join(dir, 'state/CURRENT'), content)
    const { machine, dropped } = await openState(dir, 0, true)
    expect(dropped?.aside).toBe(`${dir}/state.damaged`)
    await machine.close()
  }
  expect(readFileSync(join(dir, 'state.damaged/CURRENT'), 'utf8')).toBe('Y\n')
  writeFileSync(join(dir, 'state/CURRENT'), 'Z\n')
  const { machine, dropped } = await openState(dir, Number.MAX_SAFE_INTEGER, true)
  expect(dropped).toMatchObject({ aside: null })
  await machine.close()
  expect(readdirSync(dir)).toEqual(['state'])
})

async function writtenAborting(): Promise<string> {
  const { dir } = await written()
  makeLevelAbort(dir)
  return dir
}

/** Runs a start that only opens the state, as systemd does again after an abort. */
async function startElsewhere(dir: string): Promise<NodeJS.Signals | null> {
  const file = JSON.stringify(join(import.meta.dirname, '../../src/controller/start/open-state.ts'))
  const script = `const { openState } = await import(${file}); await openState(process.argv[1], 0, true); process.exit(0)`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script, dir], {
    stdio: 'ignore',
  })
  const [, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
  return signal
}

test('a state on whose opening LevelDB aborts the process is renamed and replaced at the next start', async () => {
  const dir = await writtenAborting()
  expect(await startElsewhere(dir)).toBe('SIGABRT')
  const { machine, dropped } = await openState(dir, 0, true)
  expect(machine.appliedIndex).toBe(0)
  expect(dropped?.finding).toMatch(/\/state: LevelDB aborts the process: Assertion `.+' failed$/)
  expect(dropped?.aside).toBe(`${dir}/state.damaged`)
  await machine.close()
  expect(readdirSync(dir).toSorted()).toEqual(['state', 'state.damaged'])
})

test('a state on whose opening LevelDB aborts the process is refused at each start if no other controller could replace it', async () => {
  const dir = await writtenAborting()
  expect(await startElsewhere(dir)).toBe('SIGABRT')
  for (let start = 0; start < 2; start += 1) {
    await expect(openState(dir, 0, false)).rejects.toThrow(/LevelDB aborts the process/)
  }
  expect(readdirSync(dir).filter((name) => name.startsWith('state'))).toEqual(['state'])
})

test('a process that was killed while it opened an intact state does not lose the state', async () => {
  const { dir, digests } = await written()
  for (let start = 0; start < 4; start += 1) {
    writeFileSync(join(dir, 'OPENING'), '')
    const { machine, dropped } = await openState(dir, 0, true)
    expect(dropped).toBeNull()
    expect(digests.has(digestOf(machine))).toBe(true)
    await machine.close()
  }
  expect(readdirSync(dir)).toEqual(['state'])
})

test.each([
  [
    "flotilla: ../deps/leveldb/leveldb-1.20/db/version_set.cc:765: void leveldb::A(B*): Assertion `a > 0' failed.",
    "Assertion `a > 0' failed",
  ],
  ["node: ../deps/uv/src/unix/core.c:601: uv__close: Assertion `fd > STDERR_FILENO' failed.", null],
  ["node: ../deps/other/db/io.cc:7: void f(): Assertion `a' failed.", null],
  [
    "x ../deps/leveldb/leveldb-1.20/db/a.cc:7: it works\nnode: ../deps/uv/src/u.c:1: f: Assertion `a' failed.",
    null,
  ],
  ['Assertion failed: a > 0 (../deps/leveldb/leveldb-1.20/db/version_set.cc: f: 765)', null],
])(
  'findLevelDbAssertion finds in the output %j the failed assertion of a source file of LevelDB: %j',
  (output, found) => {
    expect(findLevelDbAssertion(`${output}\n`)).toBe(found)
  },
)
