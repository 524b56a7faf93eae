import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

import { damagedBackupFault } from '../../backup/backup-fault.ts'
import { type BackupRecipient, parseRecipient } from '../../backup/encryption.ts'
import { readFileChunks, writeNewBackup } from '../../backup/backup-files.ts'
import { checkBackup } from '../../backup/read-backup.ts'
import type { WrittenBackup } from '../../backup/write-backup.ts'
import { CommandFailure, EXIT_FAILED, usageFailure } from '../../controller/command-failure.ts'
import { programVersion } from '../../controller/version.ts'
import { errorCode, errorMessage } from '../../lib/error-code.ts'
import { systemClock } from '../../lib/clock.ts'
import { beginMigrationBackup } from '../../migrate/migration-backup.ts'
import type { Migration } from '../../migrate/migration.ts'
import { syncFolder, writePublicFile, writeSecretFile } from '../../pki/secret-file.ts'
import { toBackupFailure } from '../snapshot/backup-file.ts'
import { refuseExistingFile } from '../terminal/make-folder.ts'
import { delayInterrupts } from '../terminal/interrupts.ts'
import { printJson, printLine, quoteShellWord } from '../terminal/output.ts'
import { readTextFile } from '../terminal/text-file.ts'
import { type CheckMigrationOptions, readMigration, refuseLossyMigration } from './check.ts'
import { migrationJson, migrationText } from './report-text.ts'

export interface MigrateOptions extends CheckMigrationOptions {
  readonly out?: string
  readonly configs?: string
  readonly recipient?: string
  readonly plaintext?: boolean
  readonly acceptLosses?: boolean
}

/**
 * `migrate CONFIGURATION… --out FILE --configs FOLDER` converts an OpenZiti network to a backup,
 * and to a configuration for each controller.
 * @throws {CommandFailure} and writes nothing, or removes the files that it has written.
 */
export async function migrate(
  configurations: readonly string[],
  options: MigrateOptions,
): Promise<void> {
  const { out, configs } = options
  if (out === undefined || configs === undefined) {
    throw usageFailure('name the files to write: --out FILE for the backup, --configs FOLDER')
  }
  const recipient = recipientOf(options)
  const [file, folder] = [resolve(out), resolve(configs)]
  await refuseExistingFile(file)
  refuseFilled(folder)
  // Files created here are readable only by their owner, unless they are meant to be public.
  process.umask(0o077)
  removeAbandoned(file)
  removeAbandoned(folder)
  const migration = await readMigration(configurations, options)
  if (options.acceptLosses !== true) requireNoLosses(migration)
  const sha256 = await write(migration, { file, folder, recipient })
  if (options.json === true)
    printJson({ file, sha256, configs: folder, ...migrationJson(migration) })
  else {
    const written = { file, folder, sha256, isEncrypted: recipient !== null }
    printLine(`${migrationText(migration)}\n\n${nextSteps(migration, written)}`)
  }
}

/** If the migration would lose values, prints its report and refuses to migrate. */
function requireNoLosses(migration: Migration): void {
  if (migration.report.count('lost') > 0) printLine(migrationText(migration))
  refuseLossyMigration(migration)
}

interface Target {
  readonly file: string
  readonly folder: string
  readonly recipient: BackupRecipient | null
}

async function write(migration: Migration, { file, folder, recipient }: Target): Promise<string> {
  const partial = join(dirname(folder), `.${basename(folder)}.${process.pid}.partial`)
  const interrupts = delayInterrupts('nothing was kept')
  let hasFolder = false
  let hasFile = false
  try {
    writeFolders(partial, migration.files)
    const writer = await beginMigrationBackup(migration, {
      recipient,
      nowMs: migration.state.logTimeMs || systemClock.nowMs(),
      version: programVersion(),
    })
    interrupts.check()
    renameSync(partial, folder)
    hasFolder = true
    await writeNewBackup(file, writer.chunks(), () => {
      interrupts.check()
      return Promise.resolve()
    })
    hasFile = true
    return await readBack(file, writer.written)
  } catch (error) {
    rmSync(partial, { recursive: true, force: true })
    if (hasFile) rmSync(file, { force: true })
    if (hasFolder) rmSync(folder, { recursive: true, force: true })
    throw toBackupFailure(file, error)
  } finally {
    interrupts.end()
  }
}

/**
 * Reads the written backup again and verifies its container, because only the bytes on disk count.
 * A restore verifies the content.
 * @throws {BackupFault} DAMAGED.
 */
async function readBack(file: string, written: WrittenBackup | null): Promise<string> {
  const { sha256 } = await checkBackup(readFileChunks(file))
  if (sha256 === written?.sha256) return sha256
  throw damagedBackupFault('the bytes on the disk are not those that were written')
}

/**
 * Removes the incomplete files that a killed run left next to a target, because they contain the
 * keys of the network. Files of a process that is still running stay.
 */
function removeAbandoned(target: string): void {
  const prefix = `.${basename(target)}.`
  if (!existsSync(dirname(target))) return
  for (const name of readdirSync(dirname(target))) {
    if (!name.startsWith(prefix)) continue
    const pid = /^([1-9][0-9]*)\.partial$/.exec(name.slice(prefix.length))?.[1]
    if (pid === undefined || isRunning(Number(pid))) continue
    rmSync(join(dirname(target), name), { recursive: true, force: true })
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errorCode(error) !== 'ESRCH'
  }
}

function writeFolders(partial: string, folders: Migration['files']): void {
  mkdirSync(partial, { recursive: true })
  for (const [id, files] of folders) {
    const own = join(partial, id)
    mkdirSync(own)
    for (const { name, text, isSecret } of files) {
      if (isSecret) writeSecretFile(join(own, name), text)
      else writePublicFile(join(own, name), text)
    }
    syncFolder(own)
  }
  syncFolder(partial)
}

function refuseFilled(folder: string): void {
  if (!existsSync(folder) || readdirSync(folder).length === 0) return
  throw new CommandFailure(
    EXIT_FAILED,
    `${folder} is not empty; remove it if an interrupted run wrote it, or name another folder with --configs`,
  )
}

function recipientOf({ recipient, plaintext = false }: MigrateOptions): BackupRecipient | null {
  if (recipient !== undefined && plaintext) {
    throw usageFailure('--recipient and --plaintext exclude each other')
  }
  if (plaintext) return null
  if (recipient === undefined) {
    throw usageFailure(
      'the backup contains the keys of the network; pass --recipient PUBLIC.pem to encrypt it, or --plaintext to write them unencrypted',
    )
  }
  try {
    return parseRecipient(readTextFile(recipient))
  } catch (error) {
    throw usageFailure(`--recipient: ${recipient} cannot be used (${errorMessage(error)})`)
  }
}

function nextSteps(
  { authorities }: Migration,
  {
    file,
    folder,
    sha256,
    isEncrypted,
  }: {
    readonly file: string
    readonly folder: string
    readonly sha256: string
    readonly isEncrypted: boolean
  },
): string {
  const [first, ...others] = authorities.controllers.map(({ id }) => id)
  const config = quoteShellWord(join(folder, first ?? '', 'config.yml'))
  return [
    `wrote ${file} (SHA-256 ${sha256}) and the configurations in ${folder}`,
    'when the OpenZiti controllers are stopped:',
    `  flotilla cluster snapshot restore ${quoteShellWord(file)} ${config}${isEncrypted ? ' --key PRIVATE.pem' : ''}`,
    `  flotilla controller run ${config}`,
    ...others.flatMap((id) => joinCommands(id, config, folder)),
  ].join('\n')
}

/**
 * The commands that invite a controller and join it. Between the two, the operator copies the
 * ticket and the controller's folder to its host.
 */
function joinCommands(id: string, inviting: string, folder: string): readonly string[] {
  const [own, ticket] = [join(folder, id, 'config.yml'), join(folder, id, 'ticket')]
  return [
    `  flotilla cluster invite --config ${inviting} --out ${quoteShellWord(ticket)}`,
    `  flotilla cluster join ${quoteShellWord(own)} --ticket-file ${quoteShellWord(ticket)}`,
  ]
}
