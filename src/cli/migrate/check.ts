import { systemClock } from '../../lib/clock.ts'
import {
  CommandFailure,
  EXIT_FAILED,
  EXIT_USAGE,
  usageFailure,
} from '../../controller/command-failure.ts'
import { MigrationFault } from '../../migrate/fault.ts'
import { type Migration, planMigration } from '../../migrate/migration.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { printJson, printLine } from '../terminal/output.ts'
import { readTextFile } from '../terminal/text-file.ts'
import { createProgressPrinter } from './progress.ts'
import { migrationJson, migrationText } from './report-text.ts'

export interface CheckMigrationOptions {
  readonly db?: readonly string[]
  readonly routerCert?: readonly string[]
  readonly json?: boolean
}

/**
 * `migrate check CONFIGURATION…` reports how each record of an OpenZiti network would be migrated.
 * @throws {CommandFailure} exit 1 if anything would be lost or is unreadable, 2 for a
 * configuration.
 */
export async function checkMigration(
  configurations: readonly string[],
  options: CheckMigrationOptions,
): Promise<void> {
  const migration = await readMigration(configurations, options)
  if (options.json === true) printJson(migrationJson(migration))
  else printLine(migrationText(migration))
  refuseLossyMigration(migration)
}

/**
 * Reads the OpenZiti network.
 * @throws {CommandFailure} with one sentence about the fault.
 */
export async function readMigration(
  configurations: readonly string[],
  options: CheckMigrationOptions,
): Promise<Migration> {
  try {
    return await planMigration({
      configurationPaths: configurations,
      databasePaths: options.db ?? [],
      routerCertificates: routerCertificates(options.routerCert ?? []),
      environment: process.env,
      nowMs: systemClock.nowMs(),
      onProgress: createProgressPrinter(options.json === true),
    })
  } catch (error) {
    if (!(error instanceof MigrationFault)) throw error
    const exitCode = error.code === 'CONFIGURATION' ? EXIT_USAGE : EXIT_FAILED
    throw new CommandFailure(exitCode, error.message, error)
  }
}

/**
 * Refuses a migration that would lose values.
 * @throws {CommandFailure} exit 1.
 */
export function refuseLossyMigration({ report }: Migration): void {
  const lost = report.count('lost')
  if (lost === 0) return
  const what = lost === 1 ? 'one value is' : `${lost} values are`
  throw new CommandFailure(EXIT_FAILED, `${what} lost in the move; see the findings "lost"`)
}

function routerCertificates(given: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    given.map((one) => {
      const at = one.indexOf('=')
      if (at < 1) throw usageFailure(`--router-cert: expected ID=FILE, found ${one}`)
      const path = one.slice(at + 1)
      try {
        return [one.slice(0, at), readTextFile(path)] as const
      } catch (error) {
        throw usageFailure(`--router-cert: ${path} cannot be read (${errorMessage(error)})`)
      }
    }),
  )
}
