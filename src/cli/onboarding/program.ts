import type { Command } from 'commander'

import { addContextOption } from '../client/connection-options.ts'
import type { ImportIdentitiesOptions } from './import-identities.ts'

/** Adds `flotilla identity import` to the command group that contains `identity enroll`. */
export function addOnboardingCommands(program: Command): void {
  const identity = program.commands.find((group) => group.name() === 'identity')
  if (identity === undefined) throw new Error('the identity verbs are added first')
  addContextOption(identity.command('import'))
    .argument('<csv>', 'CSV file, one identity a line, or - for standard input')
    .requiredOption('--tokens <folder>', 'folder for a file NAME.jwt, mode 0600, of each identity')
    .description('create many identities, with a file for each enrollment token')
    .addHelpText(
      'after',
      `
The first line names the columns: name, and any other field that 'flotilla explain identity' lists, such as type,
authPolicy, externalId, tags.site or enrollment.updb. Lists are separated by semicolons, or by commas in quotes. Without
a column enrollment.…, each identity gets a one-time token (enrollment.ott=true).

Every line is checked before anything is created; each fault is named with its line. An identity that exists stays
unchanged and is reported; its token is written if it is not used yet. So the command can be repeated after a failure.

Example of a file:
  name,roleAttributes,authPolicy,tags.site
  laptop-anna,staff;mobile,Default,berlin
  laptop-bill,staff,,

Examples:
  flotilla identity import people.csv --tokens tokens
  flotilla identity import - --tokens tokens -o json < people.csv`,
    )
    .action(async (path: string, options: ImportIdentitiesOptions) => {
      const { importIdentities } = await import('./import-identities.ts')
      await importIdentities(path, options)
    })
}
