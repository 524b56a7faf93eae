import type { Command } from 'commander'

import type { UpgradeStatus } from '../../ports/upgrade-status.ts'
import { formatTable, printJson, printLine } from '../terminal/output.ts'
import type { ClusterOptions } from './commands.ts'
import { connectTo } from './connection.ts'

type WithConnection = (command: Command, example: string) => Command

/** `flotilla cluster upgrade …`. */
export function addUpgrade(cluster: Command, withConnection: WithConnection): void {
  const upgrade = cluster.command('upgrade').description('how far a rolling upgrade is')
  withConnection(upgrade.command('status'), 'upgrade status')
    .description('versions and feature levels of the members, and what holds the next level back')
    .action(showUpgrade)
}

/** Prints what is left to do of an upgrade; works without a quorum. */
async function showUpgrade(options: ClusterOptions): Promise<void> {
  const status = (await connectTo(options)('upgrade-status', {})) as UpgradeStatus
  if (options.json === true) printJson(status)
  else printLine(upgradeText(status))
}

/** What `cluster upgrade status` shows to people. */
export function upgradeText({ featureLevel, advice, members }: UpgradeStatus): string {
  const rows = members.map(({ id, isVoter, isConnected, version, featureLevel: known, action }) => [
    id,
    isVoter ? 'voter' : 'learner',
    isConnected ? 'yes' : 'no',
    version === '' ? '-' : version,
    known === 0 ? '-' : String(known),
    action === '' ? '-' : action,
  ])
  const table = formatTable(['id', 'role', 'connected', 'version', 'knows level', 'to do'], rows)
  return [`feature level ${featureLevel} is in force`, advice, '', table].join('\n')
}
