import { resolve } from 'node:path'

import { readTextFile } from '../terminal/text-file.ts'
import { readFileChunks, writeNewBackup } from '../../backup/backup-files.ts'
import { checkBackup } from '../../backup/read-backup.ts'
import type { WrittenBackup } from '../../backup/write-backup.ts'
import {
  CommandFailure,
  EXIT_FAILED,
  EXIT_USAGE,
  usageFailure,
} from '../../controller/command-failure.ts'
import { AdminSocketError, streamFromAdminSocket } from '../client/admin-socket.ts'
import { loadConfigOrFail } from '../client/connection.ts'
import { delayInterrupts } from '../terminal/interrupts.ts'
import { refuseExistingFile } from '../terminal/make-folder.ts'
import { printJson, printLine } from '../terminal/output.ts'
import { toBackupFailure } from './backup-file.ts'
import { recordCountsText, manifestJson, addStaleBackupHint } from './backup-text.ts'
import { errorMessage } from '../../lib/error-code.ts'

/** API path for a backup of the state. */
export const BACKUP_API_PATH = '/fabric/v1/cluster/backup'

export interface SaveOptions {
  readonly config?: string
  readonly data?: string
  readonly recipient?: string
  readonly plaintext?: boolean
  /** Set to true by `--without-secrets`. */
  readonly withoutSecrets?: boolean
  readonly stale?: boolean
  readonly json?: boolean
}

/**
 * `cluster snapshot save FILE` writes a backup of the whole state. The controller that runs with
 * the data folder sends it.
 */
export async function saveSnapshot(path: string, options: SaveOptions): Promise<void> {
  const data = chooseDataFolder(options)
  const request = { path: BACKUP_API_PATH, body: wishOf(options) }
  const file = resolve(path)
  try {
    await refuseExistingFile(file)
    await writeNewBackup(file, untilInterrupted(streamFromAdminSocket(data, request)))
    // Reads the written backup again and verifies it, because only the bytes on disk count.
    const { manifest, summary, sha256 } = await checkBackup(readFileChunks(file))
    if (options.json === true)
      printJson({ file, sha256, manifest: manifestJson(manifest), summary })
    else printLine(textOf(file, { manifest, summary, sha256 }))
  } catch (error) {
    if (!(error instanceof AdminSocketError)) throw toBackupFailure(file, error)
    throw new CommandFailure(EXIT_FAILED, addStaleBackupHint(error), error)
  }
}

/**
 * Yields the parts of the backup, and throws at ^C, so that the consumer removes its partly written
 * file.
 */
async function* untilInterrupted<T>(
  parts: AsyncGenerator<Uint8Array, T>,
): AsyncGenerator<Uint8Array, T> {
  const interrupts = delayInterrupts('nothing was kept')
  try {
    for (;;) {
      const { done, value } = await parts.next()
      interrupts.check()
      if (done === true) return value
      yield value
    }
  } finally {
    interrupts.end()
    // Ends the generator and closes its connection, so that the controller stops sending.
    await parts.return(undefined as T)
  }
}

/**
 * Data folder of the controller.
 * @throws {CommandFailure} exit 2 unless the options determine exactly one.
 */
export function chooseDataFolder({ config, data }: Pick<SaveOptions, 'config' | 'data'>): string {
  if (config !== undefined && data === undefined) return loadConfigOrFail(config).data
  if (data !== undefined && config === undefined) return resolve(data)
  throw usageFailure(
    'name a controller of this host: --config FILE, or --data FOLDER with its data',
  )
}

function wishOf(options: SaveOptions): Readonly<Record<string, unknown>> {
  const { recipient, plaintext = false, withoutSecrets = false, stale = false } = options
  if (recipient !== undefined && plaintext) {
    throw usageFailure('--recipient and --plaintext exclude each other')
  }
  if (recipient === undefined && !plaintext && !withoutSecrets) {
    throw usageFailure(
      'a backup contains the secrets of the cluster; pass --recipient PUBLIC.pem to encrypt it, --plaintext to write them unencrypted, or --without-secrets to omit them',
    )
  }
  return {
    ...(recipient === undefined ? {} : { recipientPem: readRecipient(recipient) }),
    hasSecrets: !withoutSecrets,
    isPlaintext: plaintext,
    isStale: stale,
  }
}

function readRecipient(path: string): string {
  try {
    return readTextFile(path)
  } catch (error) {
    throw new CommandFailure(
      EXIT_USAGE,
      `--recipient: ${path} cannot be read (${errorMessage(error)})`,
      error,
    )
  }
}

function textOf(file: string, { manifest, summary, sha256 }: Omit<WrittenBackup, 'bytes'>): string {
  const { clusterId, index, encryption, hasSecrets } = manifest
  const manner = encryption === null ? 'unencrypted' : 'encrypted'
  return [
    `saved cluster ${clusterId} at index ${index} to ${file}`,
    `${recordCountsText(summary)}; ${hasSecrets ? 'with' : 'without'} secrets, ${manner}`,
    `SHA-256 ${sha256}`,
  ].join('\n')
}
