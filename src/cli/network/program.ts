import { type Command, Option } from 'commander'

import { addContextOption } from '../client/connection-options.ts'
import type { ApplyOptions } from './apply.ts'
import type { ExportOptions } from './export.ts'
import type { ImportOptions } from './import.ts'

/** The commands that work on a whole network. Their code is loaded when one of them runs. */
export function addNetworkCommands(program: Command): void {
  addContextOption(program.command('export'))
    .option('--out <file>', 'write to this file (default: standard output)')
    .addOption(
      new Option('-o, --output <format>', 'format of the network')
        .choices(['yaml', 'json'])
        .default('yaml'),
    )
    .description('export the whole network, without secrets')
    .addHelpText(
      'after',
      `
Two exports of an unchanged network are equal. Credentials, enrollments, sessions and revocations are left out: they are
secret or short-lived. Built-in config types are included only if they were changed.

Examples:
  flotilla export --out network.yml
  flotilla export -o json | jq .services`,
    )
    .action(async (options: ExportOptions) => {
      const { exportNetwork } = await import('./export.ts')
      await exportNetwork(options)
    })
  withPlan(program.command('apply'))
    .requiredOption('-f, --file <file>', 'file written by flotilla export, or - for standard input')
    .option('--prune', 'delete objects that are not in the file, after confirmation')
    .option('--access', 'with --dry-run: print what access the changes would give and take')
    .option('--yes', 'with --prune: skip the confirmation')
    .description('apply the network described in a file')
    .addHelpText(
      'after',
      `
The whole file is validated first: every fault is printed with its line, and a single fault changes nothing. Then the
difference is printed and applied. Safe to repeat; after an interruption, rerun it to finish.

Examples:
  flotilla apply -f network.yml --dry-run
  flotilla apply -f network.yml --dry-run --access
  flotilla apply -f network.yml --prune`,
    )
    .action(async (options: ApplyOptions) => {
      const { applyNetworkFile } = await import('./apply.ts')
      await applyNetworkFile(options)
    })
  withPlan(program.command('import'))
    .argument('<file>', 'file written by ziti ops export, JSON or YAML, or - for standard input')
    .option(
      '--accept-lost-posture-checks',
      'the service policies of an export with posture checks were reviewed',
    )
    .description('import the export of another controller (ziti ops export)')
    .addHelpText(
      'after',
      `
Validated and applied like a file of flotilla apply, except that fields missing in the export stay unchanged. The default
administrator, built-in config types and objects that routers create themselves are skipped. An export holds no
credentials, so identities and routers must enroll again.

Examples:
  flotilla import export.yml --dry-run
  flotilla import export.yml`,
    )
    .action(async (file: string, options: ImportOptions) => {
      const { importOpenZitiExport } = await import('./import.ts')
      await importOpenZitiExport(file, options)
    })
}

function withPlan(command: Command): Command {
  return addContextOption(command).option(
    '--dry-run',
    'print the difference, change nothing; exit 6 if there is one',
  )
}
