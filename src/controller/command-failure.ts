import { StoreError } from '../store/errors.ts'

/** Exit codes for scripts. `exitCodes` in src/cli/terminal explains when a command uses each. */
export const EXIT_SUCCESS = 0
export const EXIT_FAILED = 1
export const EXIT_USAGE = 2
export const EXIT_DENIED = 3
export const EXIT_NOT_FOUND = 4
export const EXIT_UNREACHABLE = 5
export const EXIT_DIFFERENCES_FOUND = 6

type FailureExitCode =
  | typeof EXIT_FAILED
  | typeof EXIT_USAGE
  | typeof EXIT_DENIED
  | typeof EXIT_NOT_FOUND
  | typeof EXIT_UNREACHABLE

/**
 * Failure that makes the program print the message without a stack trace and exit with this code.
 * For EXIT_FAILED, the error code of the cause may select a more specific exit code.
 */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure'
  readonly exitCode: FailureExitCode

  constructor(exitCode: FailureExitCode, message: string, cause?: unknown) {
    super(message, { cause })
    this.exitCode = exitCode
  }
}

/** Failure for wrong usage or an invalid configuration. */
export function usageFailure(message: string): CommandFailure {
  return new CommandFailure(EXIT_USAGE, message)
}

/**
 * Turns an error that an operator can fix, from the store or a system call, into a one-line
 * failure. Returns all other errors unchanged.
 */
export function toOperatorFailure(error: unknown): unknown {
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
  // Linux also returns ENOENT for folders in which no file can be created, such as those below
  // /proc.
  ENOENT: 'it does not exist and cannot be created; choose another location',
}

/** Whether the call failed because a path that it only reads does not exist. */
function isReading(error: Error & { readonly code?: unknown }): boolean {
  const { syscall } = error as { readonly syscall?: unknown }
  return error.code === 'ENOENT' && ['stat', 'lstat', 'scandir'].includes(String(syscall))
}

/**
 * Turns an error like `EACCES: permission denied, mkdir '/x'` into one sentence, followed by a
 * remedy.
 */
function systemSentence(error: Error & { readonly code?: unknown }): string {
  const remedy = isReading(error) ? 'check the path' : remedies[String(error.code)]
  return remedy === undefined ? error.message : `${error.message}; ${remedy}`
}
