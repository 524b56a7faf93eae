import { connectTo } from './cluster-connection.ts'
import type { AskCluster, ConnectionOptions } from './cluster-connection.ts'
import type { ClusterStatus, ListedMember } from './cluster-status.ts'
import { formatTable, printJson, printLine } from './output.ts'

const DIGEST_SHOWN_LENGTH = 12
/** A transfer waits until its target has caught up and been elected. */
const TRANSFER_TIMEOUT_MS = 30_000

export interface ClusterOptions extends ConnectionOptions {
  readonly json?: boolean
}

/** Prints what the controller of this configuration sees of the cluster; works without a quorum. */
export async function showStatus(options: ClusterOptions): Promise<void> {
  const status = (await connectTo(options)('status', {})) as ClusterStatus
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
  const members = (await connectTo(options)('list', {})) as readonly ListedMember[]
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
  const ask = connectTo(options)
  // The socket's verb and the public operation name their parameter differently.
  const params = options.url === undefined ? { to: to ?? null } : { newLeaderId: to ?? '' }
  const answer = await ask('transfer-leadership', params, TRANSFER_TIMEOUT_MS)
  const told = (answer as { readonly leaderId?: string | null } | null)?.leaderId
  const leaderId = told ?? (await leaderOf(ask))
  if (options.json === true) printJson({ leaderId })
  else printLine(leaderId === null ? 'leadership was given up' : `${leaderId} is the leader`)
}

/** The public operation answers that it is done, not who leads now. */
async function leaderOf(ask: AskCluster): Promise<string | null> {
  const members = (await ask('list', {})) as readonly ListedMember[]
  return members.find(({ leader }) => leader)?.id ?? null
}

function contactOf(lastContactMs: number | null): string {
  if (lastContactMs === null) return 'never'
  if (lastContactMs < 10_000) return `${Math.round(lastContactMs)} ms ago`
  return `${Math.round(lastContactMs / 1000)} s ago`
}
