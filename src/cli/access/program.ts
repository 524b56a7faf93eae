import { type Command } from 'commander'

import { addContextOption } from '../client/connection-options.ts'
import type { ExplainOptions } from './explain.ts'
import type { PreviewOptions } from './preview.ts'
import { createIntegerOptionParser } from '../terminal/integer-option.ts'

/** `flotilla access …`. The code of each command is loaded when it runs. */
export function addAccessCommands(program: Command): void {
  const access = program
    .command('access')
    .description('explain who can reach what, and preview changes')
    .addHelpText(
      'after',
      `
Examples:
  flotilla access explain laptop crm
  flotilla access explain laptop --granted
  flotilla access preview -f changes.yml`,
    )
  addPreview(access)
  addContextOption(access.command('explain'))
    .argument('[identity]', 'name or id of an identity')
    .argument('[service]', 'name or id of a service')
    .option('--service <name>', 'the service, where no identity is given')
    .option('--granted', 'with one side alone: only pairs that a policy grants')
    .option('--filter <text>', 'with one side alone: only matching records of the other side')
    .option(
      '--limit <count>',
      'maximum number of pairs (default: 100)',
      createIntegerOptionParser(1, 100_000),
    )
    .description('explain what an identity can dial and bind, or what is missing')
    .addHelpText(
      'after',
      `
With one side alone, a line for each pair and the first piece that is missing. Needs identity.read and service.read.

Examples:
  flotilla access explain laptop crm
  flotilla access explain laptop --filter 'name contains "crm"'
  flotilla access explain --service crm --granted -o json`,
    )
    .action(
      async (
        identity: string | undefined,
        service: string | undefined,
        options: ExplainOptions,
      ) => {
        const { explainPairs } = await import('./explain.ts')
        await explainPairs(identity, service ?? options.service, options)
      },
    )
}

function addPreview(access: Command): void {
  addContextOption(access.command('preview'))
    .requiredOption('-f, --file <file>', 'changes in YAML or JSON, or - for standard input')
    .option(
      '--limit <count>',
      'maximum number of pairs to list (default: 100)',
      createIntegerOptionParser(1, 100_000),
    )
    .description('preview the access that changes would give and take')
    .addHelpText(
      'after',
      `
The file is a list of up to 64 changes of identities, services, their policies, posture checks and edge routers.
Records are given by name or id, and a record that one change creates can be named by those that follow:
  - create: service-policy
    name: sales-crm
    type: Dial
    semantic: AnyOf
    identityRoles: ['#sales']
    serviceRoles: ['@crm']
  - update: identity
    record: laptop
    roleAttributes: [sales]
  - delete: service-policy
    record: everybody

Examples:
  flotilla access preview -f changes.yml
  flotilla access preview -f - --limit 500 -o json < changes.yml`,
    )
    .action(async (options: PreviewOptions) => {
      const { previewNetworkFile } = await import('./preview.ts')
      await previewNetworkFile(options)
    })
}
