import type { Command } from 'commander'

import type { BundleOptions } from './bundle.ts'

/** `flotilla debug …`. */
export function addDebugCommands(program: Command): void {
  program
    .command('debug')
    .description('gather data for troubleshooting')
    .command('bundle')
    .description(
      'write a .tar.gz with the state of a controller, router or tunnel, without secrets',
    )
    .requiredOption('--config <file>', 'configuration of a controller on this host, running or not')
    .option('--router <file>', 'instead of --config: configuration of a router on this host')
    .option('--tunnel <file>', 'instead of --config: identity file of a tunnel on this host')
    .option('--out <file>', 'a new file, mode 0600 (default: flotilla-debug-ID-TIME.tar.gz here)')
    .option('--json')
    .addHelpText(
      'after',
      `
Contains status, members, alarms, versions, limits, metrics, memory and CPU usage, the effective configuration without
secrets, the end of the log file, and file names and sizes of the data folder; of a stopped controller, the findings of
a check of its disk. Contains no key, password, token or record. manifest.json lists missing parts with the reason.

Of a router: configuration, findings of 'router check', certificates and the controllers that it knows; the command
inspect shows the state of a running one. Of a tunnel: its certificate, and which controllers this host reaches.

Examples:
  flotilla debug bundle --config /etc/flotilla/config.yml
  flotilla debug bundle --config /etc/flotilla/config.yml --out /tmp/ctrl1.tar.gz
  flotilla debug bundle --router /etc/flotilla/router1/router.yml`,
    )
    .action(async (options: BundleOptions) => {
      const { writeBundle } = await import('./bundle.ts')
      await writeBundle(options)
    })
}
