import type { Command } from 'commander'

import type { CheckMigrationOptions } from './check.ts'

/** `flotilla migrate …`. Its code is loaded when it runs. */
export function addMigrate(program: Command): void {
  const migrate = program
    .command('migrate')
    .description('move a network of OpenZiti controllers to this program')
    .addHelpText(
      'after',
      `
docs/integrate/coming-from-openziti.md has the plan of a move, its rehearsal and the way back.`,
    )
  addCheck(migrate)
}

function addCheck(migrate: Command): void {
  migrate
    .command('check')
    .description('report what a move would carry, change and lose; writes nothing')
    .argument('<stock...>', 'configuration files of the OpenZiti controllers, YAML')
    .option(
      '--db <file...>',
      'database or snapshot, one of each controller (default: those that the configurations name)',
    )
    .option(
      '--router-cert <id=file...>',
      'certificate of a router of which the database has only the SHA-1',
    )
    .option('--json')
    .addHelpText(
      'after',
      `
Reads a snapshot, or the database of a stopped controller. For a cluster, name the configuration and the database of
every member: each has tokens of its own for open enrollments of routers. Every finding names store, id and field:
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
