import { BackupFault } from '../../backup/backup-fault.ts'
import { CommandFailure, EXIT_FAILED, toOperatorFailure } from '../../controller/command-failure.ts'

/** Converts a fault in a backup or its file to a message for the user. */
export function toBackupFailure(path: string, error: unknown): unknown {
  if (!(error instanceof BackupFault)) return toOperatorFailure(error)
  return new CommandFailure(EXIT_FAILED, `${path}: ${error.message}`, error)
}

/**
 * Runs a step. If the backup or its file has a fault, names the file in the message.
 * @throws {CommandFailure} exit 1 for such a fault, and for other errors of the file system.
 */
export async function prefixErrorsWithFile<T>(path: string, step: () => Promise<T>): Promise<T> {
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
