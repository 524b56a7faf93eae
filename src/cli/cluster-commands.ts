import { formatFault, loadControllerConfig } from '../config/load.ts'
import type { ControllerConfig } from '../config/options.ts'
import { AdminError, askController } from './admin-client.ts'
import type { ClusterStatus, ListedMember } from './cluster-status.ts'
import { CommandFailure, EXIT_DONE, EXIT_FAILED, EXIT_USAGE } from './failure.ts'
import { formatTable, printJson, printLine, shellWord } from './output.ts'
import { statusText } from './status-screen.ts'
import { watchStatus } from './status-watch.ts'

/** A transfer waits until its target has caught up and been elected. */
const TRANSFER_TIMEOUT_MS = 30_000
const WATCH_TIMEOUT_MS = 3000

export interface ClusterOptions {
  readonly config: string
  readonly json?: boolean
}

/** @throws {CommandFailure} exit 2, every fault on a line. */
export function loadConfigOrFail(path: string): ControllerConfig {
  const loaded = loadControllerConfig(path, process.env)
  if (loaded.ok) return loaded.config
  throw new CommandFailure(EXIT_USAGE, loaded.faults.map(formatFault).join('\n'))
}

/** Prints what the controller of this configuration sees of the cluster; works without a quorum. */
export async function showStatus(
  options: ClusterOptions & { readonly watch?: boolean },
): Promise<void> {
  if (options.watch === true) {
    await watch(options)
    return
  }
  const status = (await ask(options, 'status', {})) as ClusterStatus
  if (options.json === true) {
    printJson(status)
    return
  }
  printLine(statusText(status))
}

async function watch(options: ClusterOptions): Promise<void> {
  const onTerminal = process.stdout.isTTY ? 'screen' : 'lines'
  // Read once, so that a mistake in it ends the command instead of being waited for.
  loadConfigOrFail(options.config)
  // Whoever read the lines has gone: nothing is left to do.
  process.stdout.once('error', () => process.exit(EXIT_DONE))
  await watchStatus({
    ask: async () => (await ask(options, 'status', {}, WATCH_TIMEOUT_MS)) as ClusterStatus,
    write: (text) => process.stdout.write(text),
    form: options.json === true ? 'json' : onTerminal,
    now: () => new Date(),
    wait: async (ms) => await new Promise((resolve) => setTimeout(() => resolve(true), ms)),
  })
}

/** Prints the members: who they are and where they are reached. */
export async function listMembers(options: ClusterOptions): Promise<void> {
  const members = (await ask(options, 'list', {})) as readonly ListedMember[]
  if (options.json === true) {
    printJson(members)
    return
  }
  const yesNo = (is: boolean): string => (is ? 'yes' : 'no')
  const rows = members.map(({ id, address, voter, leader, connected, version }) => [
    id,
    address,
    yesNo(voter),
    yesNo(leader),
    yesNo(connected),
    version === '' ? '-' : version,
  ])
  printLine(formatTable(['id', 'address', 'voter', 'leader', 'connected', 'version'], rows))
}

/** Hands leadership to that member, or to the most caught-up one, without a failed write. */
export async function transferLeadership(
  to: string | undefined,
  options: ClusterOptions,
): Promise<void> {
  const params = { to: to ?? null }
  const answer = await ask(options, 'transfer-leadership', params, TRANSFER_TIMEOUT_MS)
  const { leaderId } = answer as { readonly leaderId: string | null }
  if (options.json === true) printJson({ leaderId })
  else printLine(leaderId === null ? 'leadership was given up' : `${leaderId} is the leader`)
}

async function ask(
  { config: path }: ClusterOptions,
  verb: string,
  params: Readonly<Record<string, unknown>>,
  timeoutMs?: number,
): Promise<unknown> {
  const config = loadConfigOrFail(path)
  try {
    return await askController(config.data, verb, params, timeoutMs)
  } catch (error) {
    if (!(error instanceof AdminError)) throw error
    const hint =
      error.code === 'NOT_RUNNING'
        ? `; start it with: flotilla controller run ${shellWord(path)}`
        : ''
    throw new CommandFailure(EXIT_FAILED, `${config.id}: ${error.message}${hint}`, error)
  }
}
