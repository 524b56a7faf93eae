import type { TicketView } from '../../ports/membership.ts'
import { CommandFailure, EXIT_NOT_FOUND } from '../../controller/command-failure.ts'
import { openClusterConnection } from '../client/connection.ts'
import type { ClusterOptions } from './commands.ts'
import { formatTable, printJson, printLine } from '../terminal/output.ts'
import { isoTime } from '../../lib/text/format-time.ts'

/** Prints the tickets that have not expired, the newest first; never prints their secrets. */
export async function listTickets(options: ClusterOptions): Promise<void> {
  const tickets = (await openClusterConnection(options)(
    'list-tickets',
    {},
  )) as readonly TicketView[]
  if (options.json === true) {
    printJson(tickets)
    return
  }
  const rows = tickets.map(({ id, isVoter, createdAtMs, expiresAtMs, usedBy }) => [
    id,
    isVoter ? 'voter' : 'learner',
    isoTime(createdAtMs),
    isoTime(expiresAtMs),
    usedBy ?? '-',
  ])
  printLine(formatTable(['id', 'role', 'created', 'expires', 'used by'], rows))
}

/** Revokes an unused join ticket. */
export async function revokeTicketCommand(id: string, options: ClusterOptions): Promise<void> {
  try {
    await openClusterConnection(options)('revoke-ticket', { id })
  } catch (error) {
    throw isUnknown(error) ? new CommandFailure(EXIT_NOT_FOUND, unknownTicket(id), error) : error
  }
  if (options.json === true) printJson({ id, isRevoked: true })
  else printLine(`revoked ticket ${id}`)
}

function isUnknown(error: unknown): boolean {
  return error instanceof CommandFailure && error.message.endsWith(' not found')
}

function unknownTicket(id: string): string {
  return `no ticket ${JSON.stringify(id)}; 'flotilla cluster tickets list' shows those that have not expired`
}
