import { type Command, InvalidArgumentError, Option } from 'commander'

import { EVENT_NAMESPACES } from '../../lib/event-namespaces.ts'
import type { EventsCommandOptions } from './follow.ts'

/** The command `events`. Its code is loaded when it runs. */
export function addEventsCommand(program: Command): void {
  program
    .command('events')
    .description('follow the events of the network')
    .option('--context <name>', 'context to use (default: the current one)')
    .addOption(
      new Option(
        '--namespace <name...>',
        'only these namespaces (default: all permitted ones except metrics)',
      ).choices(EVENT_NAMESPACES),
    )
    .option('--entity-type <name...>', 'entityChange: only these kinds, such as services')
    .option('--metric-filter <pattern>', 'metrics: only these names, such as raft.*')
    .option('--source-filter <pattern>', 'metrics: only from these controllers and routers')
    .option('--after <id>', 'resume after the event with this id')
    .option('--count <number>', 'exit after this many events', toCount)
    .addOption(
      new Option('-o, --output <format>', 'text or json, one line per event')
        .choices(['text', 'json'])
        .default('text'),
    )
    .addHelpText(
      'after',
      `
If the controller becomes unreachable, the next one continues where it stopped: changes of records are neither lost nor
duplicated. If events are lost nevertheless, a line on stderr says so. docs/integrate/events.md lists all fields.

Examples:
  flotilla events
  flotilla events --namespace entityChange --entity-type services identities
  flotilla events --namespace cluster alert -o json
  flotilla events --namespace metrics --metric-filter 'raft.*'`,
    )
    .action(async (options: EventsCommandOptions) => {
      const { followEvents } = await import('./follow.ts')
      await followEvents(options)
    })
}

function toCount(text: string): number {
  const count = Number(text)
  if (/^[0-9]{1,9}$/.test(text) && count > 0) return count
  throw new InvalidArgumentError('Expected an integer from 1.')
}
