import type { Command } from 'commander'

import { withContextOption } from '../session/program.ts'
import type { ApplyOptions } from './apply.ts'
import type { ExportOptions } from './export.ts'
import type { ImportOptions } from './import.ts'

/** The verbs that work on a whole network. What they do is loaded when needed. */
export function addNetwork(program: Command): void {
  withContextOption(program.command('export'))
    .option('-o, --output <file>', 'write it there (default: standard output)')
    .description('write the whole network as YAML, records by their names, without secrets')
    .addHelpText(
      'after',
      `
Two exports of one network are equal. Credentials, enrollments, sessions and revocations are left out: they are secrets, or pass by
themselves. Built-in config types are there when they were changed.

Example:
  flotilla export -o network.yml`,
    )
    .action(async (options: ExportOptions) => {
      const { exportNetwork } = await import('./export.ts')
      await exportNetwork(options)
    })
  withPlan(program.command('apply'))
    .requiredOption('-f, --file <file>', 'as flotilla export writes it, or - for standard input')
    .option('--prune', 'delete what the file does not name, after asking')
    .option('--yes', 'with --prune: do not ask')
    .description('bring the network to what a file says')
    .addHelpText(
      'after',
      `
The whole file is judged before anything is changed: each fault is a line, and one is enough to change nothing. Then the difference is
printed and carried out. Repeating it changes nothing; cut off, it goes on where it was.

Examples:
  flotilla apply -f network.yml --dry-run
  flotilla apply -f network.yml --prune`,
    )
    .action(async (options: ApplyOptions) => {
      const { applyFile } = await import('./apply.ts')
      await applyFile(options)
    })
  withPlan(program.command('import'))
    .argument('<file>', 'what ziti ops export wrote, JSON or YAML, or - for standard input')
    .option(
      '--accept-lost-posture-checks',
      'the export has posture checks, and its service policies were looked through',
    )
    .description("make what another controller's export says")
    .addHelpText(
      'after',
      `
Judged and carried out like a file of flotilla apply, but what the export does not tell of an object stays as it is. Left out are the
default administrator, built-in config types and what routers make for themselves; credentials are in no export, so identities and
routers enroll anew.

Examples:
  flotilla import export.yml --dry-run
  flotilla import export.yml`,
    )
    .action(async (file: string, options: ImportOptions) => {
      const { importFile } = await import('./import.ts')
      await importFile(file, options)
    })
}

function withPlan(command: Command): Command {
  return withContextOption(command).option('--dry-run', 'print the difference and change nothing')
}
