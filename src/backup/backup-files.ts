import { createReadStream } from 'node:fs'
import { type FileHandle, link, open, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

import { syncFolder } from '../pki/secret-file.ts'
import {
  BackupContainerReader,
  BACKUP_HEAD_BYTES_MAX,
  BACKUP_SUMMARY_BYTES_MAX,
  decodeTrailingSummary,
} from './container.ts'
import { damagedBackupFault } from './backup-fault.ts'
import { backupLimits } from './limits.ts'
import type { BackupManifest, BackupSummary } from './manifest.ts'

const READ_BYTES = 1024 * 1024

/** Reads a file in chunks of `READ_BYTES`. */
export function readFileChunks(path: string): AsyncIterable<Uint8Array> {
  return createReadStream(path, { highWaterMark: READ_BYTES })
}

/**
 * Reads only the head of a backup.
 * @throws {BackupFault}
 */
export async function readBackupHead(path: string): Promise<BackupManifest> {
  const reader = new BackupContainerReader()
  for await (const chunk of createReadStream(path, { end: BACKUP_HEAD_BYTES_MAX })) {
    reader.push(chunk as Buffer)
    if (reader.manifest !== null) return reader.manifest
  }
  reader.finish()
  throw damagedBackupFault('the head of the backup is missing')
}

/**
 * Reads only the end of a backup.
 * @throws {BackupFault} when the file lacks its end.
 */
export async function readBackupSummary(path: string): Promise<BackupSummary> {
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    const length = Math.min(size, BACKUP_SUMMARY_BYTES_MAX)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length)
    return decodeTrailingSummary(buffer.subarray(0, bytesRead))
  } finally {
    await file.close()
  }
}

/** Name of a file while it is being written, by which controllers recognize unfinished backups. */
function partialBackupName(name: string): string {
  return `.${name}.${process.pid}.partial`
}

/**
 * Writes a new file of mode 0600. The file gets its name only when it is complete and durable, and
 * it never overwrites another file.
 * @param path absolute.
 * @param onSynced called after each sync except the last; an error from it aborts the write.
 * @throws the error of `bytes` or of the file system (EEXIST); the incomplete file is removed.
 */
export async function writeNewBackup(
  path: string,
  bytes: AsyncIterable<Uint8Array>,
  onSynced: () => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const partial = join(dirname(path), partialBackupName(basename(path)))
  try {
    const file = await open(partial, 'wx', 0o600)
    try {
      await fill(file, bytes, onSynced)
    } finally {
      await file.close()
    }
    // `link` instead of `rename`, because it fails if another process has created the file
    // meanwhile.
    await link(partial, path)
  } finally {
    await rm(partial, { force: true })
  }
  syncFolder(dirname(path))
}

async function fill(
  file: FileHandle,
  bytes: AsyncIterable<Uint8Array>,
  onSynced: () => Promise<void>,
): Promise<void> {
  let unsynced = 0
  for await (const chunk of bytes) {
    await file.appendFile(chunk)
    unsynced += chunk.length
    if (unsynced < backupLimits.unsyncedBytesMax) continue
    await file.datasync()
    unsynced = 0
    await onSynced()
  }
  await file.sync()
}
