import { existsSync } from 'node:fs'

import { printableValue } from '../../lib/text/terminal-text.ts'
import type { ChangePlan, NewJoinTicket, MembershipChange } from '../../ports/membership.ts'
import { writeSecretFile } from '../../pki/secret-file.ts'
import {
  type SendClusterRequest,
  type ConnectionOptions,
  openClusterConnection,
} from '../client/connection.ts'
import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { printJson, printLine, printNote, quoteShellWord } from '../terminal/output.ts'
import { unitName } from '../terminal/start-command.ts'
import { promptExactText } from '../terminal/prompt.ts'
import { isoTime } from '../../lib/text/format-time.ts'

/**
 * Timeout of a membership change: the controller responds once the change is committed; the leader
 * may first have to transfer leadership.
 */
const CHANGE_TIMEOUT_MS = 90_000

export interface MembershipChangeOptions extends ConnectionOptions {
  readonly confirm?: string
  readonly json?: boolean
}

/**
 * Prints the effect of a membership change, asks for the required confirmation, and makes the
 * change.
 * @throws {CommandFailure} exit 1 when the change is refused or not confirmed.
 */
export async function changeMembers(
  change: MembershipChange,
  options: MembershipChangeOptions,
): Promise<void> {
  const ask = openClusterConnection(options)
  const { verb, ...params } = change
  const plan = (await ask('plan', { verb, ...params }, CHANGE_TIMEOUT_MS)) as ChangePlan
  const isJson = options.json === true
  if (!isJson) for (const line of planLines(plan)) printLine(line)
  if (!plan.isNeeded) {
    if (isJson) printJson({ ...plan, isDone: true })
    else printLine('no change needed')
    return
  }
  const confirmation = await confirmationFor(plan, options)
  const done = (await ask(
    verb,
    { ...params, confirmation },
    CHANGE_TIMEOUT_MS,
  )) as ChangePlan | null
  if (isJson) printJson({ ...(done ?? plan), isDone: true })
  else printLine(doneLine(change))
}

function planLines(changePlan: ChangePlan): string[] {
  const plan = printableValue(changePlan)
  const voters = (ids: readonly string[], tolerance: number): string =>
    `${ids.length} voters (${ids.join(', ')}), failure tolerance ${tolerance}`
  return [
    `before: ${voters(plan.votersBefore, plan.toleranceBefore)}`,
    `after:  ${voters(plan.votersAfter, plan.toleranceAfter)}`,
    ...plan.warnings.map((warning) => `warning: ${warning}`),
  ]
}

function doneLine(change: MembershipChange): string {
  switch (change.verb) {
    case 'promote':
      return `promoted ${change.id} to voter`
    case 'demote':
      return `demoted ${change.id} to learner`
    case 'remove':
      return change.isCompromised
        ? `removed ${change.id}; within seconds all API sessions end, and open enrollments and join tickets are withdrawn: log in again then (the log of the leader names the enrollments)`
        : `removed ${change.id}`
    case 'replace':
      return `replaced ${change.oldId} by ${change.newId}`
  }
}

/**
 * Prompts for the confirmation on a terminal, or reads it from an option. A wrong confirmation
 * changes nothing.
 */
async function confirmationFor(
  plan: ChangePlan,
  options: MembershipChangeOptions,
): Promise<string | null> {
  const wanted = plan.confirmation
  if (wanted === null) return null
  const given = options.confirm ?? (canAsk(options) ? await promptExactText(wanted) : undefined)
  if (given === wanted) return given
  const how = `--confirm ${quoteShellWord(wanted)}`
  throw new CommandFailure(
    EXIT_FAILED,
    given === undefined
      ? `failure tolerance would drop from ${plan.toleranceBefore} to ${plan.toleranceAfter}; nothing changed. Pass ${how} to proceed`
      : `confirmation does not match ${JSON.stringify(wanted)}; nothing changed`,
  )
}

function canAsk({ json, sessionFile }: MembershipChangeOptions): boolean {
  return json !== true && sessionFile !== '-' && process.stdin.isTTY
}

export interface InviteOptions extends ConnectionOptions {
  readonly learner?: boolean
  readonly lifetime: number
  readonly out?: string
  readonly json?: boolean
}

/**
 * Creates a join ticket, and prints it on stdout or writes it to a file with mode 0600. Without
 * JSON output, stdout contains at most the ticket; messages for the user go to stderr.
 */
export async function inviteController(options: InviteOptions): Promise<void> {
  const ask = openClusterConnection(options)
  // Checked before the ticket is created, because a ticket that cannot be written would be lost.
  if (options.out !== undefined) refuseToOverwrite(options.out)
  const newTicket = await createJoinTicket(ask, options.learner !== true, options.lifetime)
  const { ticket, ...rest } = newTicket
  if (options.out !== undefined) writeSecretFile(options.out, `${ticket}\n`)
  if (options.json === true) {
    printJson(options.out === undefined ? newTicket : { ...rest, file: options.out })
    return
  }
  if (options.out === undefined) printLine(ticket)
  const role = options.learner === true ? 'learner' : 'voter'
  const file = options.out ?? 'TICKET'
  printNote(`created ticket ${rest.id} for one ${role}, valid until ${isoTime(rest.expiresAtMs)}`)
  if (options.out !== undefined)
    printNote(`ticket written to ${options.out}; anyone holding it can join`)
  const ownUnit = options.config === undefined ? null : unitName('controller', options.config)
  printNote(joinInstruction(file, ownUnit !== null))
}

/** The next step on the new host, which usually runs a systemd unit if this host runs one. */
export function joinInstruction(ticketFile: string, hasUnit: boolean): string {
  const file = quoteShellWord(ticketFile)
  if (!hasUnit) return `on the new host: flotilla cluster join CONFIG --ticket-file ${file}`
  return `on the new host, as root, with its ID and the name HOST that the other hosts resolve:
  install -d -o flotilla -g flotilla -m 0700 /etc/flotilla/ID /var/lib/flotilla/ID
  runuser -u flotilla -- flotilla cluster join /etc/flotilla/ID/config.yml --id ID --data /var/lib/flotilla/ID/data --advertise HOST --ticket-file - --no-run < ${file}
  systemctl enable --now flotilla-controller@ID`
}

function refuseToOverwrite(path: string): void {
  if (!existsSync(path)) return
  const detail = 'it may hold a valid ticket; move it away, or name another file'
  throw new CommandFailure(EXIT_FAILED, `${path} already exists: ${detail}`)
}

export async function createJoinTicket(
  ask: SendClusterRequest,
  isVoter: boolean,
  lifetimeMs: number,
): Promise<NewJoinTicket> {
  return (await ask('invite', { isVoter, lifetimeMs })) as NewJoinTicket
}
