import { type Command, InvalidArgumentError } from 'commander'

import { printableValue } from '../../lib/text/terminal-text.ts'
import type { UpgradeStatus } from '../../api/cluster/upgrade-status.ts'
import { formatTable, printJson, printLine } from '../terminal/output.ts'
import type { ClusterOptions } from './commands.ts'
import {
  loadConfigOrFail,
  type SendClusterRequest,
  openClusterConnection,
} from '../client/connection.ts'
import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { programVersion } from '../../controller/version.ts'
import { isInVersionRange } from '../../lib/text/version-match.ts'
import { restartAdvice } from '../terminal/start-command.ts'

const POLL_MS = 500

type WithConnection = (command: Command, example: string) => Command

/** `flotilla cluster upgrade …`. */
export function addUpgradeCommands(cluster: Command, withConnection: WithConnection): void {
  const upgrade = cluster.command('upgrade').description('show the progress of a rolling upgrade')
  withConnection(upgrade.command('status'), 'upgrade status')
    .description('show versions and feature levels of the members, and what blocks the next level')
    .option(
      '--wait <time>',
      'wait up to this long (90s, 5m) until the next controller can be stopped',
      timeToWait,
    )
    .action(showUpgrade)
}

interface UpgradeOptions extends ClusterOptions {
  /** How long to wait until the next controller can be stopped, ms. */
  readonly wait?: number
}

/** Prints the remaining steps of an upgrade; works without a quorum. */
async function showUpgrade(options: UpgradeOptions): Promise<void> {
  const status = await statusWithin(openClusterConnection(options), options.wait ?? 0)
  const pending = options.config === undefined ? null : findPendingRestart(options.config, status)
  if (options.json === true) printJson({ ...status, pendingRestart: pending })
  else printLine(upgradeText(status, pending))
  if (options.wait === undefined || status.notNow === '') return
  throw new CommandFailure(EXIT_FAILED, `do not stop another controller yet: ${status.notNow}`)
}

/** A controller of this host that still runs an older version than the installed one. */
interface PendingRestart {
  readonly id: string
  readonly runningVersion: string
  readonly installedVersion: string
  readonly advice: string
}

/**
 * Compares this program, which is the installed one, with the running controller of the
 * configuration.
 * @returns null unless the installed program is newer.
 */
function findPendingRestart(path: string, { members }: UpgradeStatus): PendingRestart | null {
  const { id } = loadConfigOrFail(path)
  const runningVersion = members.find((member) => member.id === id)?.version ?? ''
  const installed = programVersion()
  if (!isInVersionRange(installed, `>${runningVersion.replace(/^v/, '')}`)) return null
  const advice = restartAdvice('controller', path)
  return { id, runningVersion, installedVersion: `v${installed}`, advice }
}

/**
 * Requests the status until the next controller can be stopped, or until the deadline. Before the
 * deadline, an error causes another request, because a controller that restarts does not respond.
 */
async function statusWithin(ask: SendClusterRequest, waitMs: number): Promise<UpgradeStatus> {
  const deadline = performance.now() + waitMs
  for (;;) {
    const isOver = performance.now() >= deadline
    const status = await ask('upgrade-status', {}).catch((error: unknown) => {
      if (isOver || !(error instanceof CommandFailure)) throw error
      return null
    })
    const upgradeStatus = status as UpgradeStatus | null
    if (upgradeStatus !== null && (isOver || upgradeStatus.notNow === '')) return upgradeStatus
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000 }

function timeToWait(text: string): number {
  const match = /^([1-9][0-9]{0,3})([sm])$/.exec(text)
  const ms = Number(match?.[1]) * (UNITS_MS[match?.[2] ?? ''] ?? NaN)
  if (ms <= 60 * 60_000) return ms
  throw new InvalidArgumentError('Expected a time such as 90s or 5m, up to 60m.')
}

/** Text of `cluster upgrade status` for the terminal. */
export function upgradeText(status: UpgradeStatus, pending: PendingRestart | null = null): string {
  const { featureLevel, state, advice, notNow, members } = printableValue(status)
  const rows = members.map(({ id, isVoter, isConnected, version, featureLevel: known, action }) => [
    id,
    isVoter ? 'voter' : 'learner',
    isConnected ? 'yes' : 'no',
    version === '' ? '-' : version,
    known === 0 ? '-' : String(known),
    action === '' ? '-' : action,
  ])
  const table = formatTable(['id', 'role', 'connected', 'version', 'max level', 'action'], rows)
  const stop =
    notNow === '' ? 'the next controller can be stopped' : `do not stop one now: ${notNow}`
  const lines = pending === null ? [] : [pendingText(printableValue(pending))]
  // Without the restart, the upgrade is not complete, although all members run the same version.
  if (pending === null || state !== 'complete') lines.push(advice)
  return [`feature level: ${featureLevel}`, ...lines, stop, '', table].join('\n')
}

function pendingText({ id, runningVersion, installedVersion, advice }: PendingRestart): string {
  return `${id} runs ${runningVersion}, but ${installedVersion} is installed on this host; ${advice}`
}
