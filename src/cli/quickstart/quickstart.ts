import { readFileSync, realpathSync } from 'node:fs'
import type { Server } from 'node:net'
import { join, relative } from 'node:path'

import { PACKAGE_ROOT } from '../../lib/runtime/package-root.ts'
import { makeFolder } from '../terminal/make-folder.ts'
import { clusterOperationRequest } from '../client/connection.ts'
import { sendToAdminSocket } from '../client/admin-socket.ts'
import type { ClusterStatus, OpenZitiMember } from '../../api/cluster/cluster-status.ts'
import { findListenFault } from '../../controller/start/check-listeners.ts'
import { QuickstartProcesses, type ProcessEvent } from './processes.ts'
import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { formatTable, printLine, quoteShellWord } from '../terminal/output.ts'
import { ADMIN_FILE_NAME } from '../bootstrap/admin-file.ts'
import { sendHttpsRequest } from '../client/https-request.ts'
import { readFileTail } from '../terminal/tail.ts'
import {
  finishClusterCreation,
  createFirstController,
  joinNextController,
  addSeedsToFirstController,
  removeFirstAdminFile,
} from './create-quickstart-cluster.ts'
import {
  type ControllerPlan,
  inspectFolder,
  isControllerPrepared,
  LOOPBACK,
  planQuickstart,
  type ProcessPlan,
  type QuickstartPlan,
  readAdminFile,
  type RouterPlan,
} from './plan.ts'
import { prepareRouter } from './routers.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { acquirePathLock } from '../terminal/process-lock.ts'

const READY_MS_MAX = 240_000
const POLL_MS = 100
const ANSWER_MS_MAX = 5_000
const LOG_TAIL_BYTES = 2000

/** The launcher script, which finds a suitable version of Node.js. */
const PROGRAM = join(PACKAGE_ROOT, 'bin/flotilla')

/**
 * `quickstart` creates a cluster in DIR or resumes the existing one, runs one process for each
 * controller and router, and runs in the foreground. When it receives a signal, it stops every
 * controller and router in DIR.
 * @throws {CommandFailure}
 */
export async function runQuickstart(options: {
  readonly dir: string
  readonly nodes: number
  readonly port: number
  readonly routers: number
}): Promise<void> {
  const plan = planQuickstart(options.dir, options.nodes, options.port, options.routers)
  // Files created here, such as the logs of the controllers, are readable only by their owner,
  // unless they are meant to be public.
  process.umask(0o077)
  const signals = new StopSignals()
  makeFolder(plan.dir, 0o700)
  const lock = await lockFolder(plan)
  try {
    await runAll(plan, inspectFolder(plan) === 'complete', signals)
  } finally {
    lock.close()
    signals.release()
  }
}

async function runAll(plan: QuickstartPlan, isWhole: boolean, signals: StopSignals): Promise<void> {
  const { controllers, routers } = plan
  const watch = new StartWatch(controllers)
  const all = [...controllers, ...routers]
  const processes = new QuickstartProcesses(all, PROGRAM, (event) => watch.onEvent(event))
  await checkPorts(plan, (controller) => processes.pidOf(controller) !== null)
  for (const one of all) {
    const pid = processes.pidOf(one)
    if (pid !== null) printLine(`${one.id} is running already (pid ${pid})`)
  }
  if (signals.count > 0) return
  const start: Start = { plan, watch, processes, signals, deadlineMs: READY_MS_MAX + now() }
  try {
    if (isWhole) {
      removeFirstAdminFile(plan)
      processes.start(controllers)
    }
    if ((isWhole || (await form(start))) && (await waitFor(start, notReadyBecause))) {
      watch.isReady = true
      for (const router of routers) await startRouter(router, start)
      printTable(plan, processes)
      printLine('ready')
    }
    await signals.first
    printLine('stopping')
  } finally {
    await processes.stop(signals.second)
  }
  printLine('stopped')
}

/** Starts a router. If that fails, prints a message and keeps the cluster running. */
async function startRouter(router: RouterPlan, { plan, processes }: Start): Promise<void> {
  if (processes.pidOf(router) !== null) return
  try {
    await prepareRouter(router, plan, PROGRAM)
    processes.start([router])
    const pid = processes.pidOf(router)
    if (pid === null) return
    const { id, edgePort, logPath } = router
    printLine(`${id} runs (pid ${pid}), clients at ${LOOPBACK}:${edgePort}; its log is ${logPath}`)
  } catch (error) {
    printLine(`${router.id} was not started: ${errorMessage(error)}`)
  }
}

interface Start {
  readonly plan: QuickstartPlan
  readonly watch: StartWatch
  readonly processes: QuickstartProcesses
  readonly signals: StopSignals
  readonly deadlineMs: number
}

/**
 * Creates the cluster as an operator would: creates and runs the first controller, then joins the
 * others with tickets. Continues with the results of an interrupted attempt.
 * @returns false when a stop signal arrived.
 */
async function form(start: Start): Promise<boolean> {
  const { plan, processes } = start
  const [first, ...others] = plan.controllers
  if (first === undefined) return false
  printLine(`creating a cluster of ${plan.controllers.length} in ${plan.dir}`)
  if (!isControllerPrepared(first)) await createFirstController(first)
  processes.start([first])
  if (!(await waitFor(start, () => noLeaderBecause(first)))) return false
  for (const controller of others) {
    if (!isControllerPrepared(controller)) await joinNextController(controller, first)
    processes.start([controller])
  }
  if (!(await waitFor(start, () => notVotersBecause(first, plan)))) return false
  addSeedsToFirstController(plan)
  finishClusterCreation(plan, readAdminFile(join(first.folder, ADMIN_FILE_NAME)).password)
  return true
}

async function noLeaderBecause(controller: ControllerPlan): Promise<string | null> {
  const leader = await leaderSeenBy(controller)
  return leader === null ? `${controller.id} is not the leader yet` : null
}

async function notVotersBecause(
  { dataFolder }: ControllerPlan,
  { controllers }: QuickstartPlan,
): Promise<string | null> {
  try {
    const members = await sendToAdminSocket(
      dataFolder,
      clusterOperationRequest('list', {}, ANSWER_MS_MAX),
    )
    const voters = (members as readonly OpenZitiMember[]).flatMap(({ id, voter }) =>
      voter ? id : [],
    )
    const missing = controllers.filter(({ id }) => !voters.includes(id)).map(({ id }) => id)
    return missing.length === 0 ? null : `${missing.join(', ')} is not a voter yet`
  } catch (error) {
    return errorMessage(error)
  }
}

/**
 * Fails the start if a controller exits before quickstart prints `ready`. After that, an exit is
 * only printed, and no process is restarted.
 */
class StartWatch {
  isReady = false
  readonly ended: { readonly plan: ProcessPlan; readonly how: string }[] = []
  readonly #plans: readonly ControllerPlan[]

  constructor(plans: readonly ControllerPlan[]) {
    this.#plans = plans
  }

  onEvent(event: ProcessEvent): void {
    const { plan } = event
    if (!this.isReady) {
      if (event.type === 'ended' && plan.program === 'controller') this.ended.push(event)
      return
    }
    if (event.type === 'running') {
      printLine(`${plan.id} is running again (pid ${event.pid})`)
      return
    }
    const others = this.#plans.filter(({ id }) => id !== plan.id)
    void processExitMessage(plan, event.how, others, PROGRAM).then((lines) =>
      lines.forEach(printLine),
    )
  }
}

/**
 * Waits until `missing` returns null.
 * @param missing describes the missing part, or returns null when nothing is missing.
 * @returns false when a stop signal arrived.
 * @throws {CommandFailure} when a controller exits, or at the deadline.
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
        `${ended.plan.id} ${ended.how}; the end of ${ended.plan.logPath}:\n${logTailOf(ended.plan.logPath)}`,
      )
    }
    const found = await missing(plan)
    if (found === null) return true
    last = found
    await Promise.race([signals.first, new Promise((done) => setTimeout(done, POLL_MS))])
  }
  const logs = plan.controllers.map(({ id, logPath }) => `--- ${id}\n${logTailOf(logPath)}`)
  throw new CommandFailure(
    EXIT_FAILED,
    `not ready after ${READY_MS_MAX / 1000} s: ${last}\n${logs.join('\n')}`,
  )
}

/**
 * The reason why the cluster is not ready.
 * @returns null once every controller responds and knows the leader.
 */
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

async function controllerAnswers({ url }: ControllerPlan, caPem: string): Promise<boolean> {
  const path = '/edge/client/v1/version'
  const asked = sendHttpsRequest({
    url: url + path,
    method: 'GET',
    caPem,
    timeoutMs: ANSWER_MS_MAX,
  })
  return await asked.then(
    ({ status }) => status === 200,
    () => false,
  )
}

async function leaderSeenBy({ dataFolder }: ControllerPlan): Promise<string | null> {
  try {
    const status = await sendToAdminSocket(
      dataFolder,
      clusterOperationRequest('status', {}, ANSWER_MS_MAX),
    )
    return (status as ClusterStatus).leaderId
  } catch {
    return null
  }
}

function printTable(plan: QuickstartPlan, processes: QuickstartProcesses): void {
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

interface PortUse {
  readonly of: ProcessPlan
  readonly use: string
  readonly port: number
}

function usesOfController(of: ControllerPlan): PortUse[] {
  return [
    { of, use: 'HTTPS', port: of.webPort },
    { of, use: 'routers', port: of.routerPort },
    { of, use: 'mesh', port: of.meshPort },
  ]
}

function usesOfRouter(of: RouterPlan): PortUse[] {
  return [
    { of, use: 'links', port: of.linkPort },
    { of, use: 'demo', port: of.entryPort },
    { of, use: 'clients', port: of.edgePort },
  ]
}

/**
 * Refuses to start if ports are in use, and names all of them.
 * @throws {CommandFailure}
 */
async function checkPorts(
  plan: QuickstartPlan,
  isRunning: (one: ProcessPlan) => boolean,
): Promise<void> {
  const faults: string[] = []
  const uses = [
    ...plan.controllers.flatMap(usesOfController),
    ...plan.routers.flatMap(usesOfRouter),
  ]
  for (const { of, use, port } of uses) {
    if (isRunning(of)) continue
    const fault = await findListenFault(`${LOOPBACK}:${port}`)
    if (fault !== null) faults.push(`${LOOPBACK}:${port} (${use} of ${of.id}) ${fault}`)
  }
  if (faults.length === 0) return
  throw new CommandFailure(EXIT_FAILED, `${faults.join('\n')}\n(--port chooses other ports)`)
}

/**
 * Locks DIR for this process.
 * @throws {CommandFailure} when another quickstart runs in DIR.
 */
async function lockFolder(plan: QuickstartPlan): Promise<Server> {
  const realPath = realpathSync(plan.dir)
  try {
    return await acquirePathLock('quickstart', realPath)
  } catch (error) {
    throw new CommandFailure(
      EXIT_FAILED,
      `another quickstart is running on ${plan.dir}; stop it with ^C where it runs, or choose another --dir`,
      error,
    )
  }
}

/**
 * Handles SIGINT (^C), SIGTERM and SIGHUP: the first signal stops all processes gracefully, the
 * second one immediately.
 */
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
    // Ignores output errors: the controllers must be stopped even if the terminal was closed.
    const ignore = (): void => undefined
    process.stdout.on('error', ignore)
    process.stderr.on('error', ignore)
    this.release = () => {
      for (const name of names) process.off(name, onSignal)
    }
  }
}

function logTailOf(path: string): string {
  try {
    return readFileTail(path, LOG_TAIL_BYTES).toString('utf8').trimEnd()
  } catch {
    return '(no log)'
  }
}

/**
 * Message about a controller or router that has exited. It suggests starting the process again,
 * unless the process is a controller that was removed from the cluster and would exit again.
 */
export async function processExitMessage(
  { id, program: kind, dataFolder, logPath, configPath }: ProcessPlan,
  how: string,
  others: readonly ControllerPlan[],
  program: string,
): Promise<readonly string[]> {
  if (kind === 'controller' && (await wasRemoved(id, others))) {
    return [
      `${id} was removed from the cluster and exited; its log is ${logPath}, and ${dataFolder} can be deleted`,
    ]
  }
  const command = `${quoteShellWord(program)} ${kind} run ${quoteShellWord(configPath)}`
  return [`${id} ${how}; its log is ${logPath}. To start it again:`, `  ${command}`]
}

/**
 * Whether the controller was removed from the cluster: true if a running member no longer lists it.
 * A member that lags behind may still list it, so this function queries all members.
 */
async function wasRemoved(id: string, others: readonly ControllerPlan[]): Promise<boolean> {
  const listing = clusterOperationRequest('list', {}, ANSWER_MS_MAX)
  for (const { dataFolder } of others) {
    try {
      const members = await sendToAdminSocket(dataFolder, listing)
      if (!(members as readonly OpenZitiMember[]).some((member) => member.id === id)) return true
    } catch {
      // This member does not run, or is about to exit as well; continues with the next member.
    }
  }
  return false
}
