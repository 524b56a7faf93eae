import { Argument, type Command } from 'commander'

import { type SwitchableLogLevel, switchableLogLevels } from '../../api/host/log-level-control.ts'
import { addConnectionOptions } from '../client/connection-options.ts'
import type { LogLevelOptions } from './log-level.ts'

/** `flotilla log …`. */
export function addLogCommands(program: Command): void {
  const log = program.command('log').description('show or set the log level of a controller')
  addConnectionOptions(log.command('level'))
    .option('--json')
    .description('show the log level, or set it until the controller restarts')
    .addArgument(new Argument('[level]', 'new log level').choices(switchableLogLevels))
    .addHelpText(
      'after',
      `
Each controller has its own level. A change takes effect at once, also without a quorum, and is recorded in the audit
log. A restart resets it to the level of the configuration. A router switches between its level and debug at SIGUSR2.

Examples:
  flotilla log level --config /etc/flotilla/config.yml
  flotilla log level debug --config /etc/flotilla/config.yml
  flotilla log level info --url https://ctrl1.example.net:1280`,
    )
    .action(async (level: SwitchableLogLevel | undefined, options: LogLevelOptions) => {
      const { showOrSetLogLevel } = await import('./log-level.ts')
      await showOrSetLogLevel(level, options)
    })
}
