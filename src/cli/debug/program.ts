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
In it: status, members, alarms, versions, limits, metrics, memory and processor time, the configuration in force with its
secrets struck out, the end of the log file, names and sizes in the data folder; of a controller that is down, what its
disk tells. No key, password, token or record is in it. What could not be had is named in manifest.json.

Examples:
  flotilla debug bundle --config /etc/flotilla/config.yml
  flotilla debug bundle --config /etc/flotilla/config.yml --out /tmp/ctrl1.tar.gz`,
    )
    .action(async (options: BundleOptions) => {
      const { writeBundle } = await import('./bundle.ts')
      await writeBundle(options)
    })
}
