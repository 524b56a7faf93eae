import { InvalidArgumentError } from 'commander'
import type { Command } from 'commander'

import type { MembershipChange } from '../../ports/membership.ts'
import { withConnection } from './connection-options.ts'
import { listMembers, showStatus, transferLeadership } from './commands.ts'
import type { ClusterOptions } from './commands.ts'
import type { ChangeOptions, InviteOptions } from './membership-commands.ts'
import type { InitOptions } from '../init/init.ts'
import type { JoinOptions } from '../join/join.ts'
import type { RecoverOptions } from './recover.ts'
import { addSnapshots } from '../snapshot/program.ts'
import type { RecoverAdminOptions } from './recover-admin.ts'
import { addUpgrade } from './upgrade.ts'

const HOUR_MS = 60 * 60 * 1000

/** `flotilla cluster …`. What is heavy is loaded when its verb is used. */
export function addCluster(program: Command): void {
  const cluster = program
    .command('cluster')
    .description('form a cluster, join one, look after its members')
    .addHelpText(
      'after',
      `
A cluster from nothing, each line on the host of its controller:
  flotilla cluster init /etc/flotilla/config.yml
  flotilla controller run /etc/flotilla/config.yml
  flotilla cluster invite --config /etc/flotilla/config.yml --out ticket
  flotilla cluster join /etc/flotilla/config.yml --ticket-file ticket`,
    )
  addInit(cluster)
  addInvite(cluster)
  addTickets(cluster)
  addJoin(cluster)
  addLooks(cluster)
  addUpgrade(cluster, withAsked)
  addChanges(cluster)
  addRecovery(cluster)
  addAdminRecovery(cluster)
  addSnapshots(cluster, withLayout)
}

function addInit(cluster: Command): void {
  withLayout(cluster.command('init'))
    .description('form a new cluster with this controller as its first member')
    .option('--admin <name>', 'name of the first administrator', 'admin')
    .option('--password-file <file>', 'their password, or - for standard input; drawn if left out')
    .option('--cluster-name <name>', 'trust domain of its certificates, such as prod.example.net')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
An existing CONFIG is followed; one that is not there is written from the options. Repeating it after a crash is
safe; a controller that has been formed is never touched. The root key is written to pki/root.key beside CONFIG:
move it to a place that is offline.

Examples:
  flotilla cluster init /etc/flotilla/config.yml --advertise ctrl1.example.net --cluster-name prod.example.net
  flotilla cluster init config.yml --id a --bind-api 10.0.0.1:1280 --bind-cluster 10.0.0.1:1480 \\
    --bind-router 10.0.0.1:1380 --password-file - < password`,
    )
    .action(async (config: string, options: InitOptions) => {
      const { initCluster } = await import('../init/init.ts')
      await initCluster(config, options)
    })
}

function addInvite(cluster: Command): void {
  withAsked(cluster.command('invite'))
    .description('make a ticket that lets one new controller join')
    .option('--learner', 'it will not vote: it serves, and counts for no quorum')
    .option(
      '--lifetime <time>',
      'how long it can be used: 30m, 1h, 2d; 1m to 7d',
      lifetime,
      HOUR_MS,
    )
    .option('--out <file>', 'write it to this file, mode 0600, instead of printing it')
    .addHelpText(
      'after',
      `
The ticket is a secret until it is used, and is used up by the first controller that joins with it. It alone goes to
stdout; what is said about it goes to stderr.

Examples:
  flotilla cluster invite --config /etc/flotilla/config.yml --out ticket
  flotilla cluster invite --config /etc/flotilla/config.yml | ssh ctrl2 'umask 077; cat > ticket'`,
    )
    .action(async (options: InviteOptions) => {
      const { inviteController } = await import('./membership-commands.ts')
      await inviteController(options)
    })
}

function addTickets(cluster: Command): void {
  const tickets = cluster.command('tickets').description('list and revoke the tickets of invite')
  withAsked(tickets.command('list'), 'tickets list')
    .description('the tickets that have not expired, and who joined by them; no secrets')
    .action(async (options: ClusterOptions) => {
      const { listTickets } = await import('./ticket-commands.ts')
      await listTickets(options)
    })
  withAsked(tickets.command('revoke'), 'tickets revoke ID')
    .description('take back a ticket that no controller has joined by')
    .argument('<id>', 'the id that invite and tickets list tell')
    .action(async (id: string, options: ClusterOptions) => {
      const { revokeTicket } = await import('./ticket-commands.ts')
      await revokeTicket(id, options)
    })
}

function addJoin(cluster: Command): void {
  withLayout(cluster.command('join'))
    .description('join a cluster with a ticket, then run the controller in the foreground')
    .requiredOption('--ticket-file <file>', 'the ticket of cluster invite, or - for standard input')
    .option('--no-run', 'end once everything is laid down, and print the command that starts it')
    .option('--json', 'print JSON, one document at the end')
    .addHelpText(
      'after',
      `
Each check is a line: the ticket, the addresses in it, clocks, ports, the data folder. Nothing is changed when one
fails. An existing CONFIG is followed; one that is not there is written from the options. The private key is made
here and stays here. Interrupted at any point, the same command goes on where it was; a refused join leaves nothing.

Examples:
  flotilla cluster join /etc/flotilla/config.yml --ticket-file ticket --advertise ctrl2.example.net
  ssh ctrl1 flotilla cluster invite --config /etc/flotilla/config.yml |
    flotilla cluster join /etc/flotilla/config.yml --ticket-file - --no-run`,
    )
    .action(async (config: string, options: JoinOptions) => {
      const { joinCluster } = await import('../join/join.ts')
      await joinCluster(config, options)
    })
}

function addLooks(cluster: Command): void {
  withAsked(cluster.command('status'), 'status')
    .description('how far each member has got, as this controller sees it; needs no quorum')
    .option('--watch', 'look again each second until ^C')
    .action(showStatus)
  withAsked(cluster.command('list'), 'list')
    .description('the members and their addresses')
    .action(listMembers)
  withAsked(cluster.command('transfer-leadership'), 'transfer-leadership ctrl2')
    .description('hand leadership to another member, without a failed write')
    .argument('[id]', 'the member to lead; the most caught-up one when left out')
    .action(transferLeadership)
}

function addChanges(cluster: Command): void {
  addChange(cluster, 'promote', 'ctrl4', 'make a learner a voter')
    .argument('<id>', 'a learner that has caught up')
    .action(async (id: string, options: ChangeOptions) => change({ verb: 'promote', id }, options))
  addChange(
    cluster,
    'demote',
    'ctrl4',
    'make a voter a learner: it serves, and counts for no quorum',
  )
    .argument('<id>', 'a voter')
    .action(async (id: string, options: ChangeOptions) => change({ verb: 'demote', id }, options))
  addChange(
    cluster,
    'remove',
    'ctrl4',
    'take a member out; its certificate opens nothing from then on',
  )
    .argument('<id>', 'a member, running or lost')
    .option('--compromised', 'somebody else may have its keys: every session ends as well')
    .action(async (id: string, options: ChangeOptions & { readonly compromised?: boolean }) =>
      change({ verb: 'remove', id, isCompromised: options.compromised === true }, options),
    )
  addChange(
    cluster,
    'replace',
    'ctrl2 ctrl4',
    'let a learner vote in place of a member, in one step',
  )
    .argument('<old>', 'the member that goes, running or lost')
    .argument('<new>', 'a learner that has caught up: cluster invite --learner, cluster join')
    .action(async (oldId: string, newId: string, options: ChangeOptions) =>
      change({ verb: 'replace', oldId, newId }, options),
    )
}

function addChange(cluster: Command, verb: string, example: string, description: string): Command {
  return withAsked(cluster.command(verb), `${verb} ${example}`)
    .description(description)
    .option('--confirm <text>', 'the text that would have to be typed, for scripts')
    .addHelpText(
      'after',
      `
Prints the voters and how many of them may be lost, before and after. What lowers that number must be confirmed.
Safe to repeat.`,
    )
}

async function change(wanted: MembershipChange, options: ChangeOptions): Promise<void> {
  const { changeMembers } = await import('./membership-commands.ts')
  await changeMembers(wanted, options)
}

function addRecovery(cluster: Command): void {
  cluster
    .command('recover')
    .description('go on from one data folder after the majority of the voters is lost for good')
    .argument('<config>', 'configuration of the controller on this host, which must be stopped')
    .option('--inspect', 'only tell what is in the data folder; changes nothing')
    .option('--survivor <file...>', 'what --inspect --json has told of other survivors')
    .option('--accept-loss', 'go on although another survivor holds more, or this one is damaged')
    .option('--confirm <text>', 'the text that would have to be typed, for scripts')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Only when the lost controllers will not come back: as long as they may, wait for them. This controller becomes the only
member, of a new generation. Members of the old one are refused and stop; each may join anew with a ticket and an empty data
folder. Refused while a majority is left, while another member answers, and where another survivor holds more.

Examples, the first on each host that is left, the others on the one whose log goes furthest:
  flotilla cluster recover /etc/flotilla/config.yml --inspect --json > ctrl2.json
  flotilla cluster recover /etc/flotilla/config.yml --survivor ctrl2.json
  flotilla controller run /etc/flotilla/config.yml`,
    )
    .action(async (config: string, options: RecoverOptions) => {
      const { recoverCluster } = await import('./recover.ts')
      await recoverCluster(config, options)
    })
}

function addAdminRecovery(cluster: Command): void {
  cluster
    .command('recover-admin')
    .description('set the password of an administrator who is locked out')
    .requiredOption('--config <file>', 'configuration of a controller on this host')
    .requiredOption('--password-file <file>', 'the new password, or - for standard input')
    .option('--name <name>', 'name of the administrator (default: the one made by cluster init)')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Use it when the password is lost, or when a policy, a lockout or a disabled identity keeps every administrator out. The
identity is enabled, its lockout is cleared, its sessions end; one whose auth policy would not let it in by password alone
gets the default policy, or a policy of its own. Needs a quorum and the user that runs the controller; the audit records it.

Example:
  flotilla cluster recover-admin --config /etc/flotilla/config.yml --password-file - < password`,
    )
    .action(async (options: RecoverAdminOptions) => {
      const { recoverAdminAccess } = await import('./recover-admin.ts')
      await recoverAdminAccess(options)
    })
}

function withLayout(command: Command, config = '<config>'): Command {
  return command
    .argument(config, 'its configuration, a YAML file')
    .option('--id <name>', 'name of this controller for good (default: the name of this host)')
    .option('--data <folder>', 'log, state and admin socket (default: data, beside CONFIG)')
    .option('--bind-api <host:port>', 'where HTTPS listens (default: 0.0.0.0:1280)')
    .option('--bind-router <host:port>', 'where routers will connect (default: 0.0.0.0:1380)')
    .option('--bind-cluster <host:port>', 'where other controllers connect (default: 0.0.0.0:1480)')
    .option('--advertise <host>', 'host name or IP address that others reach this controller by')
}

/** @param example words after `flotilla cluster`; none: the verb has examples of its own. */
function withAsked(command: Command, example?: string): Command {
  withConnection(command).option('--json', 'print JSON')
  if (example === undefined) return command
  return command.addHelpText(
    'after',
    `
Examples:
  flotilla cluster ${example} --config /etc/flotilla/config.yml
  flotilla cluster ${example} --url https://ctrl1.example.net:1280
The second asks in the session of: flotilla login https://ctrl1.example.net:1280`,
  )
}

const UNITS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60 * 1000,
  h: HOUR_MS,
  d: 24 * HOUR_MS,
}

function lifetime(text: string): number {
  const match = /^([1-9][0-9]{0,5})([smhd])$/.exec(text)
  const ms = Number(match?.[1]) * (UNITS[match?.[2] ?? ''] ?? NaN)
  if (ms >= 60 * 1000 && ms <= 7 * 24 * HOUR_MS) return ms
  throw new InvalidArgumentError('Expected a time such as 30m, 1h or 2d, from 1m to 7d.')
}
