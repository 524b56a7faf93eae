import { createReadStream } from 'node:fs'
import { open, lstat, link, rm } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'

import { BackupFault } from '../../backup/fault.ts'
import {
  HEAD_BYTES_MAX,
  ContainerReader,
  SUMMARY_TAIL_BYTES_MAX,
  summaryAtEnd,
} from '../../backup/container.ts'
import type { BackupManifest, BackupSummary } from '../../backup/manifest.ts'
import { CommandFailure, EXIT_FAILED, operatorFailure } from '../../controller/failure.ts'
import { syncFolder } from '../../pki/key-file.ts'

const READ_BYTES = 1024 * 1024
/** Written between two syncs: a large one at the end would hold up those of a log on the same disk. */
const UNSYNCED_BYTES_MAX = 8 * 1024 * 1024

/** Reads a file in pieces. */
export function bytesOfFile(path: string): AsyncIterable<Uint8Array> {
  return createReadStream(path, { highWaterMark: READ_BYTES })
}

/** What a fault of a backup, or of its file, is to a person. */
export function faultAt(path: string, error: unknown): unknown {
  if (!(error instanceof BackupFault)) return operatorFailure(error)
  return new CommandFailure(EXIT_FAILED, `${path}: ${error.message}`, error)
}

/** Runs a step; its faults name the file. @throws {CommandFailure} exit 1. */
export async function atFile<T>(path: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    throw faultAt(path, error)
  }
}

/** The head of a backup alone. @throws {BackupFault} */
export async function readHead(path: string): Promise<BackupManifest> {
  const reader = new ContainerReader()
  let bytes = 0
  for await (const chunk of createReadStream(path, { end: HEAD_BYTES_MAX })) {
    bytes += (chunk as Buffer).length
    reader.push(chunk as Buffer)
    if (reader.manifest !== null) return reader.manifest
    if (bytes > HEAD_BYTES_MAX) break
  }
  reader.finish()
  throw new BackupFault('DAMAGED', 'the head of the backup is missing; use another copy')
}

/** The end of a backup alone. @throws {BackupFault} where it is cut off. */
export async function readEnd(path: string): Promise<BackupSummary> {
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    const length = Math.min(size, SUMMARY_TAIL_BYTES_MAX)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length)
    return summaryAtEnd(buffer.subarray(0, bytesRead))
  } finally {
    await file.close()
  }
}

/**
 * Writes a new file of mode 0600 that has its name once it is whole and durable. No file is written over.
 * @throws {CommandFailure} where there is one of that name; what the bytes throw, and nothing is left then.
 */
export async function writeNewBackup(
  path: string,
  bytes: AsyncIterable<Uint8Array>,
): Promise<void> {
  const target = resolve(path)
  await refuseExisting(target)
  const partial = join(dirname(target), `.${basename(target)}.${process.pid}.partial`)
  try {
    const file = await open(partial, 'wx', 0o600)
    try {
      await fill(file, bytes)
    } finally {
      await file.close()
    }
    // A rename would write over a file that came in between.
    await link(partial, target)
  } finally {
    await rm(partial, { force: true })
  }
  syncFolder(dirname(target))
}

async function refuseExisting(path: string): Promise<void> {
  const found = await lstat(path).catch(() => null)
  if (found === null) return
  throw new CommandFailure(
    EXIT_FAILED,
    `${path} is there already and is left as it is; name another file`,
  )
}

async function fill(file: FileHandle, bytes: AsyncIterable<Uint8Array>): Promise<void> {
  let unsynced = 0
  for await (const chunk of bytes) {
    await file.appendFile(chunk)
    unsynced += chunk.length
    if (unsynced < UNSYNCED_BYTES_MAX) continue
    await file.datasync()
    unsynced = 0
  }
  await file.sync()
}
