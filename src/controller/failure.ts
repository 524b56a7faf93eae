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

/** What an error says, for a line that a person reads. */
export function sentenceOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** What an operator can act on becomes one line; the rest is a mistake of ours and keeps its stack. */
export function operatorFailure(error: unknown): unknown {
  if (error instanceof StoreError) return new CommandFailure(EXIT_FAILED, error.message, error)
  const isSystemError = error instanceof Error && 'syscall' in error
  return isSystemError ? new CommandFailure(EXIT_FAILED, systemSentence(error), error) : error
}

const remedies: Readonly<Record<string, string>> = {
  EACCES: 'run this as a user who may, or name another place',
  EPERM: 'run this as a user who may, or name another place',
  EROFS: 'its file system is read-only; name another place',
  ENOSPC: 'its disk is full; free some space',
  EEXIST: 'there is a file of that name; name another place',
  ENOTDIR: 'a part of the path is no folder; name another place',
  // What Linux says where nothing can be made, as below /proc.
  ENOENT: 'it is not there and cannot be made; name another place',
}

/** `EACCES: permission denied, mkdir '/x'`, and what to do about it. */
function systemSentence(error: Error & { readonly code?: unknown }): string {
  const remedy = remedies[String(error.code)]
  return remedy === undefined ? error.message : `${error.message}; ${remedy}`
}
