import {
  type SendClusterRequest,
  type ConnectionOptions,
  openClusterConnection,
} from '../client/connection.ts'
import type { ClusterStatus, OpenZitiMember } from '../../api/cluster/cluster-status.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'
import { EXIT_SUCCESS } from '../../controller/command-failure.ts'
import { formatTable, printJson, printLine, printNote } from '../terminal/output.ts'
import { clusterStatusText } from './status-screen.ts'
import { watchStatus } from './status-watch.ts'

/**
 * Timeout of a leadership transfer, which waits until its target has caught up and has been
 * elected.
 */
const TRANSFER_TIMEOUT_MS = 30_000
const WATCH_TIMEOUT_MS = 3000

export interface ClusterOptions extends ConnectionOptions {
  readonly json?: boolean
}

/** Prints the status of the cluster as one controller sees it; works without a quorum. */
export async function showClusterStatus(
  options: ClusterOptions & { readonly watch?: boolean },
): Promise<void> {
  if (options.watch === true) {
    await watch(options)
    return
  }
  const status = (await openClusterConnection(options)('status', {})) as ClusterStatus
  if (options.json === true) {
    printJson(status)
    return
  }
  printLine(clusterStatusText(status))
}

async function watch(options: ClusterOptions): Promise<void> {
  const onTerminal = process.stdout.isTTY ? 'screen' : 'lines'
  // An invalid option ends the command here, before it contacts a controller.
  const ask = openClusterConnection(options)
  // Exit if the process that reads the output closes the pipe.
  process.stdout.once('error', () => process.exit(EXIT_SUCCESS))
  await watchStatus({
    ask: async () => (await ask('status', {}, WATCH_TIMEOUT_MS)) as ClusterStatus,
    write: (text) => process.stdout.write(text),
    form: options.json === true ? 'json' : onTerminal,
    now: () => new Date(),
    wait: async (ms) => await new Promise((resolve) => setTimeout(() => resolve(true), ms)),
  })
}

/** Prints the members with their ids and addresses. */
export async function listMembers(options: ClusterOptions): Promise<void> {
  const listed = (await openClusterConnection(options)('list', {})) as readonly OpenZitiMember[]
  const members = listed.map(({ ctrlAddress, ...member }) => ({
    ...member,
    address: ctrlAddress ?? member.address,
  }))
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

/** Transfers leadership to the given voter, or to the most up-to-date one; no write fails. */
export async function transferLeadership(
  to: string | undefined,
  options: ClusterOptions,
): Promise<void> {
  const ask = openClusterConnection(options)
  await ask('transfer-leadership', { newLeaderId: to ?? '' }, TRANSFER_TIMEOUT_MS)
  const leaderId = to ?? (await leaderOf(ask))
  if (options.json === true) printJson({ leaderId })
  else if (leaderId === null) printLine('stepped down; no new leader yet')
  else printLine(`leader: ${printableLine(leaderId)}`)
}

/**
 * The leader in the list of members; null if there is none. The response to a leadership transfer
 * does not name the new leader.
 */
async function leaderOf(ask: SendClusterRequest): Promise<string | null> {
  const members = (await ask('list', {})) as readonly OpenZitiMember[]
  return members.find(({ leader }) => leader)?.id ?? null
}

const RESET_COST =
  'if log time moves, programs that send request ids get REQUEST_ID_EXPIRED for their writes in the next five minutes; flotilla, the tunnel and the console continue after two seconds'

/** Resets log time to the clocks of a majority; works only on the host of a controller. */
export async function requestLogTimeReset(options: ClusterOptions): Promise<void> {
  if (options.json !== true) printNote(RESET_COST)
  const reset = (await openClusterConnection(options)('reset-log-time', {})) as {
    readonly aheadMs: number
    readonly logTime: string
  }
  if (options.json === true) printJson(reset)
  else if (reset.aheadMs === 0) {
    printLine('no change needed: log time is not ahead of the clocks of a majority')
  } else {
    const seconds = (reset.aheadMs / 1000).toFixed(1)
    printLine(`brought log time back by ${seconds} s, to ${printableLine(reset.logTime)}`)
  }
}
