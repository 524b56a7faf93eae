import type { Command } from 'commander'

import { addContextOption } from '../client/connection-options.ts'
import type { ContextOptions } from '../client/context-client.ts'
import type { ImportIdentitiesOptions } from './import-identities.ts'

/**
 * Adds `import`, `disable` and `enable` to the command group that contains `flotilla identity
 * enroll`.
 */
export function addOnboardingCommands(program: Command): void {
  const identity = program.commands.find((group) => group.name() === 'identity')
  if (identity === undefined) throw new Error('the command identity is added first')
  addImport(identity)
  addDisable(identity)
  addEnable(identity)
}

function addDisable(identity: Command): void {
  addContextOption(identity.command('disable'))
    .argument('<name>', 'name or id')
    .description('end all sessions of an identity, and refuse its log-ins')
    .addHelpText(
      'after',
      `
Use this for a lost or stolen device, or when a person leaves. Sessions, circuits and hosted services end immediately.
The identity keeps its id, credentials and policies until 'flotilla identity enable' or 'flotilla delete identity'.

Examples:
  flotilla identity disable laptop`,
    )
    .action(async (name: string, options: ContextOptions) => {
      const { disableIdentityByName } = await import('../records/disable-identity.ts')
      await disableIdentityByName(name, options)
    })
}

function addEnable(identity: Command): void {
  addContextOption(identity.command('enable'))
    .argument('<name>', 'name or id')
    .description('allow a disabled or locked identity to log in again')
    .addHelpText(
      'after',
      `
Also ends a lockout after wrong passwords, and the pause after wrong codes of a second factor.

Examples:
  flotilla identity enable laptop`,
    )
    .action(async (name: string, options: ContextOptions) => {
      const { enableIdentityByName } = await import('../records/disable-identity.ts')
      await enableIdentityByName(name, options)
    })
}

function addImport(identity: Command): void {
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
