import { type Command, Option } from 'commander'

import { addContextOption } from '../client/connection-options.ts'
import { createIntegerOptionParser } from '../terminal/integer-option.ts'
import type { TrafficOptions } from './traffic.ts'

/** `flotilla traffic …`. Its code is loaded when it runs. */
export function addTrafficCommand(program: Command): void {
  addContextOption(program.command('traffic'))
    .argument('[kind]', 'service (default) or router')
    .argument('[name]', 'name or id; without it, those with the most traffic')
    .option('--day', 'the last day by quarter hour, instead of the last hour by minute')
    .addOption(
      new Option('--by <figure>', 'figure by which those with the most traffic are chosen')
        .choices(['bytes', 'circuits', 'dialFailures'])
        .default('bytes'),
    )
    .option('--limit <count>', 'how many, 1 to 20', createIntegerOptionParser(1, 20), 10)
    .description('show the traffic of services and routers')
    .addHelpText(
      'after',
      `
The controller adds up what all controllers have counted since their start; one that does not respond is named on
stderr. Routers report bytes each minute. Periods without traffic are not printed; -o json has all.
Bytes of a service are read from and written to its clients; latency is the time to create a circuit. Of a router,
failed dials are attempts to reach its terminators, and latency is the round trip over its links.
Needs service.read or router.read.

Examples:
  flotilla traffic
  flotilla traffic service wiki
  flotilla traffic router edge1 --day
  flotilla traffic service --by dialFailures --limit 5 -o json`,
    )
    .action(async (kind: string | undefined, name: string | undefined, options: TrafficOptions) => {
      const { showTraffic } = await import('./traffic.ts')
      await showTraffic(kind, name, options)
    })
}
