import { type Command, InvalidArgumentError, Option } from 'commander'

import type { MembershipChange } from '../../ports/membership.ts'
import { addConnectionOptions } from '../client/connection-options.ts'
import {
  type ClusterOptions,
  listMembers,
  requestLogTimeReset,
  showClusterStatus,
  transferLeadership,
} from './commands.ts'
import type { MembershipChangeOptions, InviteOptions } from './membership-commands.ts'
import type { InitOptions } from '../bootstrap/init.ts'
import type { JoinOptions } from '../bootstrap/join.ts'
import { CommandFailure, EXIT_USAGE } from '../../controller/command-failure.ts'
import type { RecoverOptions } from './recover.ts'
import { addSnapshotCommands } from '../snapshot/program.ts'
import type { RecoverAdminOptions } from './recover-admin.ts'
import { addUpgradeCommands } from './upgrade.ts'

const HOUR_MS = 60 * 60 * 1000

/** `flotilla cluster …`. Code with large imports is loaded only when its command runs. */
export function addClusterCommands(program: Command): void {
  const cluster = program
    .command('cluster')
    .description('create a cluster, join one, manage its members')
    .addHelpText(
      'after',
      `
A new cluster, each line on the host of its controller:
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
  addUpgradeCommands(cluster, withAsked)
  addChanges(cluster)
  addRecovery(cluster)
  addAdminRecovery(cluster)
  addLogTimeReset(cluster)
  addSnapshotCommands(cluster, withLayout)
}

function addInit(cluster: Command): void {
  withLayout(cluster.command('init'))
    .description('create a new cluster with this controller as its first member')
    .option('--admin <name>', 'name of the first administrator', 'admin')
    .option(
      '--password-file <file>',
      'password of the administrator, or - for standard input; generated if omitted',
    )
    .option('--cluster-name <name>', 'trust domain of the certificates, such as prod.example.net')
    .option('--json')
    .addHelpText(
      'after',
      `
An existing CONFIG is used as it is; a missing one is written from the options. Safe to repeat after a crash; a
controller that is already part of a cluster is never changed. The root key is written to pki/root.key in the folder of
CONFIG: move it offline.

Examples:
  flotilla cluster init /etc/flotilla/config.yml --advertise ctrl1.example.net --cluster-name prod.example.net
  flotilla cluster init config.yml --id a --bind-api 10.0.0.1:1280 --bind-cluster 10.0.0.1:1480 \\
    --bind-router 10.0.0.1:1380 --password-file - < password`,
    )
    .action(async (config: string, options: InitOptions) => {
      const { initCluster } = await import('../bootstrap/init.ts')
      await initCluster(config, options)
    })
}

function addInvite(cluster: Command): void {
  withAsked(cluster.command('invite'))
    .description('create a ticket for one controller to join with')
    .option('--learner', 'join as a non-voting member (learner)')
    .addOption(
      new Option('--lifetime <time>', 'time until the ticket expires: 30m, 1h, 2d; 1m to 7d')
        .argParser(lifetime)
        .default(HOUR_MS, '1h'),
    )
    .option('--out <file>', 'write the ticket to this file, mode 0600, instead of printing it')
    .addHelpText(
      'after',
      `
A ticket works once: the first controller that joins with it uses it up. Until then it is a secret. Only the ticket
is written to stdout; everything else goes to stderr.

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
  const tickets = cluster.command('tickets').description('list and revoke join tickets')
  withAsked(tickets.command('list'), 'tickets list')
    .description('list unexpired tickets and the controllers that used them')
    .action(async (options: ClusterOptions) => {
      const { listTickets } = await import('./ticket-commands.ts')
      await listTickets(options)
    })
  withAsked(tickets.command('revoke'), 'tickets revoke ID')
    .description('revoke an unused ticket')
    .argument('<id>', 'id of the ticket, as printed by invite and tickets list')
    .action(async (id: string, options: ClusterOptions) => {
      const { revokeTicketCommand: revokeTicket } = await import('./ticket-commands.ts')
      await revokeTicket(id, options)
    })
}

function addJoin(cluster: Command): void {
  withLayout(cluster.command('join'))
    .description('join a cluster with a ticket, then run the controller')
    .requiredOption('--ticket-file <file>', 'ticket from cluster invite, or - for standard input')
    .option(
      '--controller <url>',
      'address of a member, in addition to those in the ticket; may be repeated',
      (url: string, before: string[]) => [...before, url],
      [],
    )
    .option('--no-run', 'write all files, do not start the controller; print the command that does')
    .option('--json')
    .addHelpText(
      'after',
      `
Checks the ticket, its addresses, clocks, ports and the data folder first; a failed check changes nothing. An existing
CONFIG is used as it is; a missing one is written from the options. The private key is created on this host and never
leaves it. After an interruption, rerun the same command to resume; a refused join leaves no files behind.

Use --controller when the addresses in the ticket are for clients on other networks, for example published ports of
containers. A member at that address must have a certificate of the ticket's cluster.

Examples:
  flotilla cluster join /etc/flotilla/config.yml --ticket-file ticket --advertise ctrl2.example.net
  ssh ctrl1 flotilla cluster invite --config /etc/flotilla/config.yml |
    flotilla cluster join /etc/flotilla/config.yml --ticket-file - --no-run`,
    )
    .action(async (config: string, options: JoinOptions) => {
      const { joinCluster } = await import('../bootstrap/join.ts')
      await joinCluster(config, options)
    })
}

function addLooks(cluster: Command): void {
  withAsked(cluster.command('status'), 'status')
    .description('replication status of each member; needs no quorum')
    .option('--watch', 'refresh every second until ^C')
    .action(showClusterStatus)
  addConnectionOptions(cluster.command('health'))
    .option('--json')
    .description('one line for all members, with the exit code of a monitoring plugin')
    .addHelpText(
      'after',
      `
Exit code, as Nagios and others expect it: 0 OK; 1 WARNING: a member does not answer, or there is an alarm; 2 CRITICAL:
no leader, a critical alarm, or no controller answers; 3 UNKNOWN: the check itself is refused or misused. With a context,
the command asks each of its controllers; with --config or --url, the named controller reports which members it reaches.

Examples:
  flotilla cluster health --config /etc/flotilla/config.yml
  flotilla cluster health --context net -o json`,
    )
    .action(async (options: ClusterOptions) => {
      const { showHealth } = await import('./health.ts')
      await showHealth(options)
    })
  withAsked(cluster.command('list'), 'list')
    .description('list the members and their addresses')
    .action(listMembers)
  withAsked(cluster.command('backups'), 'backups')
    .description('list the backups that a controller has written by its schedule')
    .action(async (options: ClusterOptions) => {
      const { listScheduledBackups } = await import('../snapshot/scheduled.ts')
      await listScheduledBackups(options)
    })
  withAsked(cluster.command('transfer-leadership'), 'transfer-leadership ctrl2')
    .description('transfer leadership to another member; no write fails')
    .argument('[id]', 'new leader (default: the most up-to-date voter)')
    .action(transferLeadership)
}

function addChanges(cluster: Command): void {
  addChange(cluster, 'promote', 'ctrl4', 'promote a learner to voter')
    .argument('<id>', 'a learner that has caught up')
    .action(async (id: string, options: MembershipChangeOptions) =>
      change({ verb: 'promote', id }, options),
    )
  addChange(cluster, 'demote', 'ctrl4', 'demote a voter to non-voting member (learner)')
    .argument('<id>', 'a voter')
    .action(async (id: string, options: MembershipChangeOptions) =>
      change({ verb: 'demote', id }, options),
    )
  addChange(cluster, 'remove', 'ctrl4', 'remove a member and revoke its access')
    .argument('<id>', 'a member, running or lost')
    .option(
      '--compromised',
      'its keys may be stolen: end every session and withdraw open enrollments and join tickets as well',
    )
    .action(
      async (id: string, options: MembershipChangeOptions & { readonly compromised?: boolean }) =>
        change({ verb: 'remove', id, isCompromised: options.compromised === true }, options),
    )
  addChange(cluster, 'replace', 'ctrl2 ctrl4', 'replace a voter by a learner in one change')
    .argument('<old>', 'member to remove, running or lost')
    .argument('<new>', 'learner that has caught up (cluster invite --learner, cluster join)')
    .action(async (oldId: string, newId: string, options: MembershipChangeOptions) =>
      change({ verb: 'replace', oldId, newId }, options),
    )
}

function addChange(cluster: Command, verb: string, example: string, description: string): Command {
  const command = cluster.command(verb).addHelpText(
    'after',
    `
Prints voters and failure tolerance before and after the change. A change that lowers the failure tolerance must be
confirmed. Safe to repeat.`,
  )
  return withAsked(command, `${verb} ${example}`)
    .description(description)
    .option('--confirm <text>', 'confirmation text, for scripts')
}

async function change(wanted: MembershipChange, options: MembershipChangeOptions): Promise<void> {
  const { changeMembers } = await import('./membership-commands.ts')
  await changeMembers(wanted, options)
}

interface WithConfig {
  readonly config?: string
}

function addRecovery(cluster: Command): void {
  cluster
    .command('recover')
    .description('recover from one data folder after permanent loss of quorum')
    .argument('[config]', 'the same as --config')
    .requiredOption(
      '--config <file>',
      'configuration of the controller on this host, which must be stopped',
    )
    .option('--inspect', 'only print what the data folder holds; change nothing')
    .option('--survivor <file...>', 'output of --inspect -o json on other surviving hosts')
    .option(
      '--accept-loss',
      'proceed although another survivor has more entries, or this log is damaged',
    )
    .option('--confirm <text>', 'confirmation text, for scripts')
    .option('--json')
    .addHelpText(
      'after',
      `
Use it only when the lost controllers are gone permanently. This controller becomes the only member of a new
generation. Members of the old generation are refused and stop; each can join again with a ticket and an empty data
folder. Refused while a majority is left, while another member answers, and if another survivor has more entries.

Examples (the first on each surviving host, the others on the host with the longest log):
  flotilla cluster recover --config /etc/flotilla/config.yml --inspect -o json > ctrl2.json
  flotilla cluster recover --config /etc/flotilla/config.yml --survivor ctrl2.json
  flotilla controller run /etc/flotilla/config.yml`,
    )
    .action(async (argument: string | undefined, options: RecoverOptions & WithConfig) => {
      const config = argument ?? options.config
      if (options.config !== undefined && options.config !== config) {
        throw new CommandFailure(EXIT_USAGE, 'name one configuration: --config FILE')
      }
      if (config === undefined)
        throw new CommandFailure(EXIT_USAGE, 'name a configuration: --config FILE')
      const { recoverCluster } = await import('./recover.ts')
      await recoverCluster(config, options)
    })
}

function addLogTimeReset(cluster: Command): void {
  cluster
    .command('reset-log-time')
    .description('bring log time back after the clocks of a majority ran ahead')
    .requiredOption('--config <file>', 'configuration of a controller on this host')
    .option('--json')
    .addHelpText(
      'after',
      `
Use it for the alarm LOG_TIME_AHEAD, once the clocks are right. Log time goes back to what the clocks of a majority have
reached; sessions, pauses, locks and enrollments that were stored meanwhile move with it. For five minutes, programs
that send request ids get REQUEST_ID_EXPIRED for their writes, new ones too; flotilla, the tunnel and the console
continue after two seconds. Needs a quorum and the user that runs the controller; the audit log records it.

Examples:
  flotilla cluster reset-log-time --config /etc/flotilla/config.yml`,
    )
    .action(requestLogTimeReset)
}

function addAdminRecovery(cluster: Command): void {
  cluster
    .command('recover-admin')
    .description('reset the password of a locked-out administrator')
    .requiredOption('--config <file>', 'configuration of a controller on this host')
    .requiredOption('--password-file <file>', 'the new password, or - for standard input')
    .option('--name <name>', 'name of the administrator (default: the one created by cluster init)')
    .option('--json')
    .addHelpText(
      'after',
      `
Use it when the password is lost, or when a policy, a lockout or a disabled identity locks every administrator out. The
identity is enabled, its lockout is cleared and its sessions end. If its auth policy does not allow a login by password
alone, it is given the default policy or a policy of its own. Needs a quorum and the user that runs the controller; the
audit log records it.

Examples:
  flotilla cluster recover-admin --config /etc/flotilla/config.yml --password-file - < password`,
    )
    .action(async (options: RecoverAdminOptions) => {
      const { recoverAdminAccess } = await import('./recover-admin.ts')
      await recoverAdminAccess(options)
    })
}

function withLayout(command: Command, config = '<config>'): Command {
  return command
    .argument(config, 'configuration file, YAML')
    .option('--id <name>', 'permanent id of this controller (default: the host name)')
    .option(
      '--data <folder>',
      'folder of log, state and admin socket (default: data, in the folder of CONFIG)',
    )
    .option('--bind-api <host:port>', 'HTTPS listener (default: 0.0.0.0:1280)')
    .option('--bind-router <host:port>', 'router listener (default: 0.0.0.0:1380)')
    .option('--bind-cluster <host:port>', 'cluster listener (default: 0.0.0.0:1480)')
    .option(
      '--advertise <host>',
      'host name or IP address under which others reach this controller',
    )
}

/**
 * Adds `--json` and the options that select the controller.
 * @param example words after `flotilla cluster`; undefined when the command adds its own examples.
 */
function withAsked(command: Command, example?: string): Command {
  addConnectionOptions(command).option('--json')
  if (example === undefined) return command
  return command.addHelpText(
    'after',
    `
Examples:
  flotilla cluster ${example} --config /etc/flotilla/config.yml
  flotilla cluster ${example} --url https://ctrl1.example.net:1280
The second uses the session of: flotilla login https://ctrl1.example.net:1280. Without both, the current context is used.`,
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
