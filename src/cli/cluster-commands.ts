import { formatFault, loadControllerConfig } from '../config/load.ts'
import type { ControllerConfig } from '../config/options.ts'
import { AdminError, askController } from './admin-client.ts'
import type { ClusterStatus, ListedMember } from './cluster-status.ts'
import { CommandFailure, EXIT_FAILED, EXIT_USAGE } from './failure.ts'
import { formatTable, printJson, printLine, shellWord } from './output.ts'

const DIGEST_SHOWN_LENGTH = 12
/** A transfer waits until its target has caught up and been elected. */
const TRANSFER_TIMEOUT_MS = 30_000

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
export async function showStatus(options: ClusterOptions): Promise<void> {
  const status = (await ask(options, 'status', {})) as ClusterStatus
  if (options.json === true) {
    printJson(status)
    return
  }
  const { clusterId, generation, leaderId, selfId } = status
  printLine(`cluster ${clusterId}, generation ${generation}, as ${selfId} sees it`)
  printLine(
    leaderId === null ? 'there is no leader: writes wait for one' : `${leaderId} is the leader`,
  )
  printLine('')
  const rows = status.members.map((member) => [
    member.id,
    member.role,
    String(member.term),
    String(member.commit),
    String(member.applied),
    String(member.persisted),
    `${member.digestIndex}:${member.digest.slice(0, DIGEST_SHOWN_LENGTH)}`,
    contactOf(member.lastContactMs),
  ])
  printLine(
    formatTable(
      ['id', 'role', 'term', 'commit', 'applied', 'persisted', 'digest', 'last contact'],
      rows,
    ),
  )
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

function contactOf(lastContactMs: number | null): string {
  if (lastContactMs === null) return 'never'
  if (lastContactMs < 10_000) return `${Math.round(lastContactMs)} ms ago`
  return `${Math.round(lastContactMs / 1000)} s ago`
}
