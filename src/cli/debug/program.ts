import type { Command } from 'commander'

import type { BundleOptions } from './bundle.ts'

/** `flotilla debug …`. */
export function addDebug(program: Command): void {
  program
    .command('debug')
    .description('gather data for troubleshooting')
    .command('bundle')
    .description('write a .tar.gz with the state of this controller, without secrets')
    .requiredOption('--config <file>', 'configuration of a controller on this host, running or not')
    .option('--out <file>', 'a new file, mode 0600 (default: flotilla-debug-ID-TIME.tar.gz here)')
    .option('--json')
    .addHelpText(
      'after',
      `
Contains status, members, alarms, versions, limits, metrics, memory and CPU usage, the effective configuration without
secrets, the end of the log file, and file names and sizes of the data folder; of a stopped controller, the findings of
a check of its disk. Contains no key, password, token or record. manifest.json lists missing parts with the reason.

Examples:
  flotilla debug bundle --config /etc/flotilla/config.yml
  flotilla debug bundle --config /etc/flotilla/config.yml --out /tmp/ctrl1.tar.gz`,
    )
    .action(async (options: BundleOptions) => {
      const { writeBundle } = await import('./bundle.ts')
      await writeBundle(options)
    })
}
