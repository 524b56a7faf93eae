import type { Command } from 'commander'

import type { CheckMigrationOptions } from './check.ts'
import type { MigrateOptions } from './migrate.ts'

/** `flotilla migrate …`. Its code is loaded when it runs. */
export function addMigrateCommands(program: Command): void {
  const migrate = program
    .command('migrate')
    .description('move a network of OpenZiti controllers to this program')
    .addHelpText(
      'after',
      `
Without the name of a command, 'run' runs. docs/integrate/coming-from-openziti.md has the plan of a move, its rehearsal
and the way back.`,
    )
  addRun(migrate)
  addCheck(migrate)
}

function addRun(migrate: Command): void {
  withDatabases(migrate.command('run', { isDefault: true }))
    .description('write a backup of the network and the configurations of its controllers')
    .argument('<configuration...>', CONFIGURATIONS)
    .option('--out <file>', 'backup to write, mode 0600; an existing file is not overwritten')
    .option(
      '--configs <folder>',
      'folder for the configuration, certificate and key of each controller',
    )
    .option('--recipient <file>', 'encrypt for this public key or certificate (PEM; EC or RSA)')
    .option('--plaintext', 'do not encrypt; anyone with the file controls the network')
    .option('--accept-losses', 'write although something is lost')
    .option('--json')
    .addHelpText(
      'after',
      `
Reads the same files as 'migrate check'. The OpenZiti controllers must be stopped. Then restore the backup with the
configuration of the first controller, start it, and let the others join. Ids, addresses, keys and certificates stay,
so that clients and routers notice an interruption only.

Examples:
  flotilla migrate run /etc/ziti/ctrl.yml --out net.backup --configs ./configs --recipient backup.pem`,
    )
    .action(async (configurations: string[], options: MigrateOptions) => {
      const { migrate: run } = await import('./migrate.ts')
      await run(configurations, options)
    })
}

const CONFIGURATIONS = 'configuration files of the OpenZiti controllers, YAML'

function withDatabases(command: Command): Command {
  return command
    .option(
      '--db <file...>',
      'database or snapshot, one of each controller (default: those that the configurations name)',
    )
    .option(
      '--router-cert <id=file...>',
      'certificate of a router of which the database has only the SHA-1',
    )
}

function addCheck(migrate: Command): void {
  withDatabases(migrate.command('check'))
    .description('report what a move would carry, change and lose; writes nothing')
    .argument('<configuration...>', CONFIGURATIONS)
    .option('--json')
    .addHelpText(
      'after',
      `
Reads a snapshot, or the database of a stopped controller. For a cluster, name the configuration and the database of
every member: each has its own tokens for open enrollments of routers. Every finding names store, id and field:
changed (carried in another form, or left out without loss), decide (carried, and does not work until someone acts) or
lost. Exit code 1 if anything is lost.

Examples:
  ziti agent controller snapshot-db /tmp/ctrl.db
  flotilla migrate check /etc/ziti/ctrl.yml --db /tmp/ctrl.db
  flotilla migrate check ctrl1.yml ctrl2.yml ctrl3.yml --db 1.db 2.db 3.db -o json`,
    )
    .action(async (configurations: string[], options: CheckMigrationOptions) => {
      const { checkMigration } = await import('./check.ts')
      await checkMigration(configurations, options)
    })
}
