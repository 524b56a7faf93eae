import { lstat } from 'node:fs/promises'

import { BackupFault } from '../../backup/fault.ts'
import { CommandFailure, EXIT_FAILED, operatorFailure } from '../../controller/failure.ts'

/** Converts a fault of a backup or its file into a message for a person. */
export function toBackupFailure(path: string, error: unknown): unknown {
  if (!(error instanceof BackupFault)) return operatorFailure(error)
  return new CommandFailure(EXIT_FAILED, `${path}: ${error.message}`, error)
}

/**
 * Runs a step and adds the name of the file to its faults.
 * @throws {CommandFailure} exit 1.
 */
export async function withFileInFaults<T>(path: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    if (isMissing(path, error)) {
      const message = `${path} does not exist; name a file written by cluster snapshot save`
      throw new CommandFailure(EXIT_FAILED, message, error)
    }
    throw toBackupFailure(path, error)
  }
}

function isMissing(path: string, error: unknown): boolean {
  const { code, path: found } = error as NodeJS.ErrnoException
  return code === 'ENOENT' && found === path
}

/** @throws {CommandFailure} exit 1. */
export async function refuseExisting(path: string): Promise<void> {
  const found = await lstat(path).catch(() => null)
  if (found === null) return
  throw new CommandFailure(EXIT_FAILED, `${path} already exists; choose another file`)
}
