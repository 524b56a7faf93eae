import { StoreError } from '../store/errors.ts'

/** Done, failed, wrong usage or configuration: what scripts rely on. */
export const EXIT_DONE = 0
export const EXIT_FAILED = 1
export const EXIT_USAGE = 2

/** Ends the program with this exit code after printing the message; no stack is shown. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure'
  readonly exitCode: typeof EXIT_FAILED | typeof EXIT_USAGE

  constructor(exitCode: typeof EXIT_FAILED | typeof EXIT_USAGE, message: string, cause?: unknown) {
    super(message, { cause })
    this.exitCode = exitCode
  }
}

/** Wrong usage, or a configuration that is wrong. */
export function usageFailure(message: string): CommandFailure {
  return new CommandFailure(EXIT_USAGE, message)
}

/**
 * Makes one line of what an operator can act on; the rest is a mistake of ours and keeps its stack.
 */
export function operatorFailure(error: unknown): unknown {
  if (error instanceof StoreError) return new CommandFailure(EXIT_FAILED, error.message, error)
  const isSystemError = error instanceof Error && 'syscall' in error
  return isSystemError ? new CommandFailure(EXIT_FAILED, systemSentence(error), error) : error
}

const remedies: Readonly<Record<string, string>> = {
  EACCES: 'run it as a user with permission, or choose another location',
  EPERM: 'run it as a user with permission, or choose another location',
  EROFS: 'its file system is read-only; choose another location',
  ENOSPC: 'the disk is full; free disk space',
  EEXIST: 'a file of that name exists; choose another location',
  ENOTDIR: 'a part of the path is not a folder; choose another location',
  // Linux says this where nothing can be made, as below /proc.
  ENOENT: 'it does not exist and cannot be created; choose another location',
}

/** Whether the path was only looked at: nothing was to be created there. */
function isReading(error: Error & { readonly code?: unknown }): boolean {
  const { syscall } = error as { readonly syscall?: unknown }
  return error.code === 'ENOENT' && ['stat', 'lstat', 'scandir'].includes(String(syscall))
}

/** `EACCES: permission denied, mkdir '/x'`, and what to do about it. */
function systemSentence(error: Error & { readonly code?: unknown }): string {
  const remedy = isReading(error) ? 'check the path' : remedies[String(error.code)]
  return remedy === undefined ? error.message : `${error.message}; ${remedy}`
}
