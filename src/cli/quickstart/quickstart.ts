import { PACKAGE_ROOT } from '../../lib/package-root.ts'
import { createHash } from 'node:crypto'
import { closeSync, fstatSync, openSync, readFileSync, readSync, realpathSync } from 'node:fs'
import { request } from 'node:https'
import { createServer, type Server } from 'node:net'
import { join, relative } from 'node:path'

import { makeFolder } from '../terminal/make-folder.ts'
import { requestOf } from '../client/connection.ts'
import { askController } from '../client/admin-socket.ts'
import type { ClusterStatus, ListedMember } from '../../ports/cluster-status.ts'
import { listenFault } from '../../controller/start/check-listeners.ts'
import { ControllerProcesses, type ProcessEvent } from './processes.ts'
import { CommandFailure, EXIT_FAILED, sentenceOf } from '../../controller/failure.ts'
import { formatTable, printLine } from '../terminal/output.ts'
import { linesOfEnd } from './end.ts'
import { beginForming, finishForming, formFirst, isPrepared, joinNext, nameSeeds } from './form.ts'
import {
  type ControllerPlan,
  inspectFolder,
  LOOPBACK,
  planQuickstart,
  type QuickstartPlan,
} from './plan.ts'
import { QuickstartRouters } from './routers.ts'

const READY_MS_MAX = 120_000
const POLL_MS = 100
const ANSWER_MS_MAX = 5_000
const LOG_TAIL_BYTES = 2000

/** The launcher, which finds a Node new enough. */
const PROGRAM = join(PACKAGE_ROOT, 'bin/flotilla')

/**
 * `quickstart`: forms a cluster in DIR or takes up the one there, runs a process a controller, and
 * stays in the foreground until a signal, upon which it stops every controller of DIR.
 * @throws {CommandFailure}
 */
export async function quickstart(options: {
  readonly dir: string
  readonly nodes: number
  readonly port: number
  readonly routers: number
}): Promise<void> {
  const plan = planQuickstart(options.dir, options.nodes, options.port)
  // Everything made here is for its owner alone, the logs of the controllers included.
  process.umask(0o077)
  const signals = new StopSignals()
  makeFolder(plan.dir, 0o700)
  const lock = await lockFolder(plan)
  try {
    const routers = new QuickstartRouters(plan, options.routers, PROGRAM)
    await runControllers(plan, inspectFolder(plan) === 'complete', signals, routers)
  } finally {
    lock.close()
    signals.release()
  }
}

async function runControllers(
  plan: QuickstartPlan,
  isWhole: boolean,
  signals: StopSignals,
  routers: QuickstartRouters,
): Promise<void> {
  const watch = new StartWatch(plan.controllers)
  const processes = new ControllerProcesses(plan.controllers, PROGRAM, (event) => {
    watch.onEvent(event)
  })
  await checkPorts(plan, (controller) => processes.pidOf(controller) !== null)
  for (const controller of plan.controllers) {
    const pid = processes.pidOf(controller)
    if (pid !== null) printLine(`${controller.id} is running already (pid ${pid})`)
  }
  if (signals.count > 0) return
  const start: Start = { plan, watch, processes, signals, deadlineMs: READY_MS_MAX + now() }
  try {
    if (isWhole) processes.start()
    if ((isWhole || (await form(start))) && (await waitFor(start, notReadyBecause))) {
      await routers.start()
      printTable(plan, processes)
      printLine('ready')
      watch.isReady = true
    }
    await signals.first
    printLine('stopping')
  } finally {
    await routers.stop(signals.second)
    await processes.stop(signals.second)
  }
  printLine('stopped')
}

interface Start {
  readonly plan: QuickstartPlan
  readonly watch: StartWatch
  readonly processes: ControllerProcesses
  readonly signals: StopSignals
  readonly deadlineMs: number
}

/**
 * As an operator would: the first controller is formed and run, each other one joins it with a
 * ticket. What an earlier attempt has done is kept.
 * @returns false when a signal came first.
 */
async function form(start: Start): Promise<boolean> {
  const { plan, processes } = start
  const [first, ...others] = plan.controllers
  if (first === undefined) return false
  printLine(`creating a cluster of ${plan.controllers.length} in ${plan.dir}`)
  const forming = beginForming(plan)
  if (!isPrepared(first)) await formFirst(first, forming)
  processes.start([first])
  if (!(await waitFor(start, () => noLeaderBecause(first)))) return false
  for (const controller of others) {
    if (!isPrepared(controller)) await joinNext(controller, first, forming)
    processes.start([controller])
  }
  if (!(await waitFor(start, () => notVotersBecause(first, plan)))) return false
  if (others.length > 0) nameSeeds(plan)
  finishForming(plan, forming)
  return true
}

async function noLeaderBecause({ dataFolder, id }: ControllerPlan): Promise<string | null> {
  const leader = await leaderSeenBy({ dataFolder })
  return leader === null ? `${id} is not the leader yet` : null
}

async function notVotersBecause(
  { dataFolder }: ControllerPlan,
  { controllers }: QuickstartPlan,
): Promise<string | null> {
  try {
    const members = await askController(dataFolder, requestOf('list', {}, ANSWER_MS_MAX))
    const voters = (members as readonly ListedMember[]).flatMap(({ id, voter }) =>
      voter ? id : [],
    )
    const missing = controllers.filter(({ id }) => !voters.includes(id)).map(({ id }) => id)
    return missing.length === 0 ? null : `${missing.join(', ')} is not a voter yet`
  } catch (error) {
    return sentenceOf(error)
  }
}

/**
 * Before `ready` the end of a controller fails the start; afterwards it is told, and nothing is
 * restarted.
 */
class StartWatch {
  isReady = false
  readonly ended: { readonly plan: ControllerPlan; readonly how: string }[] = []
  readonly #plans: readonly ControllerPlan[]

  constructor(plans: readonly ControllerPlan[]) {
    this.#plans = plans
  }

  onEvent(event: ProcessEvent): void {
    const { plan } = event
    if (!this.isReady) {
      if (event.type === 'ended') this.ended.push(event)
      return
    }
    if (event.type === 'running') {
      printLine(`${plan.id} is running again (pid ${event.pid})`)
      return
    }
    const others = this.#plans.filter(({ id }) => id !== plan.id)
    void linesOfEnd(plan, event.how, others, PROGRAM).then((lines) => lines.forEach(printLine))
  }
}

/**
 * @param missing what is missing, or null once nothing is.
 * @returns false when a signal came first.
 * @throws {CommandFailure} when a controller ends, or the time is over.
 */
async function waitFor(
  { plan, watch, signals, deadlineMs }: Start,
  missing: (plan: QuickstartPlan) => Promise<string | null>,
): Promise<boolean> {
  let last = 'not checked yet'
  while (now() < deadlineMs) {
    if (signals.count > 0) return false
    const [ended] = watch.ended
    if (ended !== undefined) {
      throw new CommandFailure(
        EXIT_FAILED,
        `${ended.plan.id} ${ended.how}; the end of ${ended.plan.logPath}:\n${tailOf(ended.plan.logPath)}`,
      )
    }
    const found = await missing(plan)
    if (found === null) return true
    last = found
    await Promise.race([signals.first, new Promise((done) => setTimeout(done, POLL_MS))])
  }
  const logs = plan.controllers.map(({ id, logPath }) => `--- ${id}\n${tailOf(logPath)}`)
  throw new CommandFailure(
    EXIT_FAILED,
    `not ready after ${READY_MS_MAX / 1000} s: ${last}\n${logs.join('\n')}`,
  )
}

/** @returns null once every controller answers and knows the leader. */
async function notReadyBecause(plan: QuickstartPlan): Promise<string | null> {
  const ca = readFileSync(join(plan.dir, 'ca.pem'), 'utf8')
  const answers = await Promise.all(plan.controllers.map((one) => controllerAnswers(one, ca)))
  const silent = plan.controllers.filter((_, at) => answers[at] !== true)
  if (silent.length > 0) return `${silent.map(({ id }) => id).join(', ')} does not respond yet`
  const leaders = await Promise.all(plan.controllers.map(leaderSeenBy))
  return leaders.includes(null) ? 'no leader yet' : null
}

function now(): number {
  return performance.now()
}

function controllerAnswers({ webPort }: ControllerPlan, ca: string): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = request(
      {
        host: LOOPBACK,
        port: webPort,
        path: '/edge/client/v1/version',
        ca,
        agent: false,
        timeout: ANSWER_MS_MAX,
      },
      (answer) => {
        answer.resume()
        resolve(answer.statusCode === 200)
      },
    )
    asked.on('timeout', () => asked.destroy())
    asked.on('error', () => resolve(false))
    asked.end()
  })
}

async function leaderSeenBy({
  dataFolder,
}: Pick<ControllerPlan, 'dataFolder'>): Promise<string | null> {
  try {
    const status = await askController(dataFolder, requestOf('status', {}, ANSWER_MS_MAX))
    return (status as ClusterStatus).leaderId
  } catch {
    return null
  }
}

function printTable(plan: QuickstartPlan, processes: ControllerProcesses): void {
  const here = (path: string): string => {
    const short = relative(process.cwd(), path)
    return short.startsWith('..') ? path : short
  }
  const rows = plan.controllers.map((one) => [
    one.id,
    one.url,
    `${LOOPBACK}:${one.meshPort}`,
    String(processes.pidOf(one) ?? '-'),
    here(one.logPath),
  ])
  printLine(formatTable(['id', 'https', 'mesh', 'pid', 'log'], rows))
  printLine(`credentials: ${here(join(plan.dir, 'admin.json'))}; ^C stops all`)
}

/** Names every port that is taken, before anything is started. @throws {CommandFailure} */
async function checkPorts(
  plan: QuickstartPlan,
  isRunning: (controller: ControllerPlan) => boolean,
): Promise<void> {
  const faults: string[] = []
  for (const controller of plan.controllers) {
    if (isRunning(controller)) continue
    const uses = [
      ['HTTPS', controller.webPort],
      ['routers', controller.routerPort],
      ['mesh', controller.meshPort],
    ] as const
    for (const [use, port] of uses) {
      const fault = await listenFault(`${LOOPBACK}:${port}`)
      if (fault !== null) faults.push(`${LOOPBACK}:${port} (${use} of ${controller.id}) ${fault}`)
    }
  }
  if (faults.length === 0) return
  throw new CommandFailure(EXIT_FAILED, `${faults.join('\n')}\n(--port chooses other ports)`)
}

/**
 * An abstract unix socket named after DIR: the kernel gives it to one process, and takes it back
 * however that ends, so no stale lock is ever left.
 * @throws {CommandFailure} when another quickstart has it.
 */
async function lockFolder(plan: QuickstartPlan): Promise<Server> {
  const name = createHash('sha256').update(realpathSync(plan.dir)).digest('hex').slice(0, 32)
  const server = createServer((socket) => socket.destroy())
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(`\0flotilla-quickstart-${process.getuid?.() ?? 0}-${name}`, resolve)
    })
  } catch (error) {
    throw new CommandFailure(
      EXIT_FAILED,
      `another quickstart is running on ${plan.dir}; stop it with ^C where it runs, or choose another --dir`,
      error,
    )
  }
  server.unref()
  return server
}

/** ^C, SIGTERM and SIGHUP: the first stops in order, the second at once. */
class StopSignals {
  count = 0
  readonly first: Promise<void>
  readonly second: Promise<void>
  readonly release: () => void

  constructor() {
    const { promise: first, resolve: onFirst } = Promise.withResolvers<void>()
    const { promise: second, resolve: onSecond } = Promise.withResolvers<void>()
    this.first = first
    this.second = second
    const onSignal = (): void => {
      this.count += 1
      if (this.count === 1) onFirst()
      else onSecond()
    }
    const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
    for (const name of names) process.on(name, onSignal)
    // A terminal that is gone must not keep the controllers from being stopped.
    const ignore = (): void => undefined
    process.stdout.on('error', ignore)
    process.stderr.on('error', ignore)
    this.release = () => {
      for (const name of names) process.off(name, onSignal)
    }
  }
}

function tailOf(path: string): string {
  try {
    const file = openSync(path, 'r')
    try {
      const { size } = fstatSync(file)
      const bytes = Buffer.alloc(Math.min(size, LOG_TAIL_BYTES))
      const length = readSync(file, bytes, 0, bytes.length, size - bytes.length)
      return bytes.toString('utf8', 0, length).trimEnd()
    } finally {
      closeSync(file)
    }
  } catch {
    return '(no log)'
  }
}
