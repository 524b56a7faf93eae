import { spawn } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

import {
  LOG_BYTES_MAX,
  QuickstartProcesses,
  type ProcessEvent,
} from '../../src/cli/quickstart/processes.ts'
import { findRunningPid, writePidFile } from '../../src/controller/admin/pid-file.ts'
import { type ControllerPlan, planQuickstart } from '../../src/cli/quickstart/plan.ts'
import { eventually } from '../support/eventually.ts'

// Goal: quickstart finds all running controllers, including those that it did not start, and leaves
// none running. Method: a script instead of the program, which writes its pid file as a controller
// does.

const WELL_BEHAVED = `#!/bin/sh
trap 'rm "$(dirname "$3")/pid"; exit 0' TERM
echo $$ > "$3.pid" && mv "$3.pid" "$(dirname "$3")/pid"
echo "started $3"
while :; do sleep 0.02; done
`
const TALKATIVE = WELL_BEHAVED.replace('sleep 0.02', 'echo still here; sleep 0.02')
/** Exits if another process holds the data folder, as a controller does. */
const HOLDER = `#!/bin/sh
holder="$(dirname "$3")/data/lock/holder"
until [ -f "$holder" ]; do sleep 0.02; done
[ "$(cat "$holder")" = $$ ] || exit 1
while :; do sleep 0.02; done
`
const STUBBORN = `#!/bin/sh
trap '' TERM
echo $$ > "$3.pid" && mv "$3.pid" "$(dirname "$3")/pid"
while :; do sleep 0.02; done
`

let folder = ''
let program = ''
let plans: readonly ControllerPlan[] = []
let events: ProcessEvent[] = []
let made: QuickstartProcesses[] = []
const never = new Promise<void>(() => undefined)

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-processes-'))
  program = join(folder, 'program')
  install(WELL_BEHAVED)
  plans = planQuickstart(join(folder, 'net'), 2, 1280).controllers
  for (const plan of plans) {
    mkdirSync(plan.folder, { recursive: true })
    writeFileSync(plan.configPath, '')
  }
  events = []
  made = []
})
afterEach(async () => {
  for (const processes of made) await processes.stop(Promise.resolve())
  rmSync(folder, { recursive: true, force: true })
})

function install(script: string): void {
  writeFileSync(program, script)
  chmodSync(program, 0o755)
}

function processesOf(): QuickstartProcesses {
  const processes = new QuickstartProcesses(plans, program, (event) => events.push(event))
  made.push(processes)
  return processes
}

const first = (): ControllerPlan => plans[0] ?? expect.unreachable('a plan')
const firstPid = (): number | null => findRunningPid(first().configPath, first().dataFolder)
const allRun = (): void => {
  for (const { configPath, dataFolder } of plans)
    expect(findRunningPid(configPath, dataFolder)).not.toBeNull()
}
const until = (check: () => void): Promise<void> => eventually(check)

test('QuickstartProcesses starts all programs, writes their output to their log files, and stops them all', async () => {
  const processes = processesOf()
  processes.start()
  await until(allRun)
  const pids = plans.map((plan) => processes.pidOf(plan))
  expect(pids).toEqual(
    plans.map(({ configPath, dataFolder }) => findRunningPid(configPath, dataFolder)),
  )
  await until(() => expect(readFileSync(first().logPath, 'utf8')).toContain('started '))
  await processes.stop(never)
  for (const { configPath, dataFolder, folder: own } of plans) {
    expect(findRunningPid(configPath, dataFolder)).toBeNull()
    expect(existsSync(join(own, 'pid'))).toBe(false)
  }
  expect(events).toEqual([])
})

test('QuickstartProcesses reports a program that was killed, and a program that another process has started again', async () => {
  const processes = processesOf()
  processes.start()
  await until(allRun)
  process.kill(firstPid() ?? 0, 'SIGKILL')
  await until(() => expect(events).toHaveLength(1))
  expect(events[0]).toMatchObject({ type: 'ended', how: 'was killed by SIGKILL' })
  expect(processes.pidOf(first())).toBeNull()
  const byHand = spawn(program, ['controller', 'run', first().configPath], { stdio: 'ignore' })
  await until(() => expect(events).toHaveLength(2))
  expect(events[1]).toMatchObject({ type: 'running', pid: byHand.pid })
  await processes.stop(never)
  await until(() => expect(byHand.exitCode).toBe(0))
})

test('QuickstartProcesses takes over a program that already runs, does not start it twice, and stops it with the others', async () => {
  const earlier = spawn(program, ['controller', 'run', 'config.yml'], {
    cwd: first().folder,
    stdio: 'ignore',
  })
  await until(() => expect(firstPid()).toBe(earlier.pid))
  const processes = processesOf()
  expect(processes.pidOf(first())).toBe(earlier.pid)
  processes.start()
  await until(allRun)
  expect(firstPid()).toBe(earlier.pid)
  await processes.stop(never)
  await until(() => expect(earlier.exitCode).toBe(0))
})

test('QuickstartProcesses takes over a running program that it finds by the lock of the data folder, even after it has started a second process', async () => {
  install(HOLDER)
  const earlier = spawn(program, ['controller', 'run', first().configPath], { stdio: 'ignore' })
  const processes = processesOf()
  // The script of the first process has not begun, so quickstart cannot see it and starts a second
  // process, which finds the data folder in use.
  mkdirSync(join(first().dataFolder, 'lock'), { recursive: true })
  processes.start()
  writeFileSync(join(first().dataFolder, 'lock/holder'), `${earlier.pid}\n`)
  await until(() => expect(processes.pidOf(first())).toBe(earlier.pid))
  expect(events.filter(({ plan }) => plan === first())).toEqual([
    { type: 'running', plan: first(), pid: earlier.pid },
  ])
  expect(processesOf().pidOf(first())).toBe(earlier.pid)
  await processes.stop(never)
  await until(() => expect(earlier.signalCode).toBe('SIGTERM'))
})

test('QuickstartProcesses kills a program that ignores SIGTERM', async () => {
  install(STUBBORN)
  const processes = processesOf()
  processes.start()
  await until(allRun)
  await processes.stop(Promise.resolve())
  for (const { configPath, dataFolder } of plans)
    expect(findRunningPid(configPath, dataFolder)).toBeNull()
})

test('findRunningPid ignores a stale or malformed pid file, even if another process has the number in it', () => {
  writePidFile(first().configPath)
  expect(readFileSync(join(first().folder, 'pid'), 'utf8')).toBe(`${process.pid}\n`)
  // The ID of this process, which is alive and not a controller.
  expect(firstPid()).toBeNull()
  for (const text of ['', '0', '-1', '1x', '99999999999', 'no']) {
    writeFileSync(join(first().folder, 'pid'), text)
    expect(firstPid()).toBeNull()
  }
})

test('QuickstartProcesses reports a program that cannot start', async () => {
  program = join(folder, 'none')
  processesOf().start()
  await until(() => expect(events.length).toBeGreaterThanOrEqual(2))
  expect(events[0]).toMatchObject({ type: 'ended', how: expect.stringContaining('ENOENT') })
})

test('QuickstartProcesses rotates a large log file before a start', async () => {
  writeFileSync(first().logPath, Buffer.alloc(LOG_BYTES_MAX + 1))
  const processes = processesOf()
  processes.start()
  await until(allRun)
  expect(statSync(`${first().logPath}.1`).size).toBe(LOG_BYTES_MAX + 1)
  expect(statSync(first().logPath).size).toBeLessThan(1000)
})

test('QuickstartProcesses rotates the log file of a running program, which keeps writing', async () => {
  install(TALKATIVE)
  const processes = processesOf()
  processes.start()
  await until(allRun)
  const { logPath } = first()
  appendFileSync(logPath, Buffer.alloc(LOG_BYTES_MAX + 1))
  await until(() => expect(statSync(`${logPath}.1`).size).toBeGreaterThan(LOG_BYTES_MAX))
  await until(() => {
    expect(statSync(logPath).size).toBeLessThan(10_000)
    // The file starts at its beginning: no hole remains where the old lines were.
    expect(readFileSync(logPath, 'utf8')).toMatch(/^still here/)
  })
})
