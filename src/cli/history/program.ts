import type { Command } from 'commander'

import { addContextOption } from '../client/connection-options.ts'
import { createIntegerOptionParser } from '../terminal/integer-option.ts'
import type { HistoryOptions } from './history.ts'

/** `flotilla history …`. Its code is loaded when it runs. */
export function addHistoryCommand(program: Command): void {
  addContextOption(program.command('history'))
    .argument('[kind]', 'a kind of record, such as service')
    .argument('[name]', 'name or id of a record, now or earlier, also of a deleted one')
    .option('--actor <name>', 'only writes of this actor, by name or id')
    .option('--action <name>', 'only this action: create, update, delete, or another one')
    .option('--since <time>', 'only from this time on: a date and time, or an age such as 24h')
    .option('--until <time>', 'only up to this time, or age')
    .option(
      '--limit <count>',
      'maximum number of entries (default: 50)',
      createIntegerOptionParser(1, 10_000),
    )
    .option('--all', 'also entries that change no record, such as log-ins; for administrators')
    .option('--undo <entry>', 'take back this entry', createIntegerOptionParser(1, 999_999_999))
    .option('--dry-run', 'with --undo: show what it would change, and write nothing')
    .description('show who changed which records, and undo a change')
    .addHelpText(
      'after',
      `
Entries are listed newest first. Shows only kinds of record that you may read. The audit log keeps 30 days and
100,000 entries; the values of older or very large changes may be gone, and secrets are never kept.
An undo writes the old values with your own rights. It is refused if one of these fields was changed again.

Examples:
  flotilla history service crm
  flotilla history --since 24h --action delete
  flotilla history service-policy --actor admin -o json
  flotilla history --undo 812 --dry-run
  flotilla history --undo 812`,
    )
    .action(async (kind: string | undefined, name: string | undefined, options: HistoryOptions) => {
      const { showOrUndoHistory } = await import('./history.ts')
      await showOrUndoHistory(kind, name, options)
    })
}
