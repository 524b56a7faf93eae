/** The code of a system error, such as `ENOENT`; '' for an error without a code. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** The message of any thrown value. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Why a file cannot be read, as a predicate of its path. */
export function readFaultText(error: unknown): string {
  const code = errorCode(error)
  if (code === 'ENOENT') return 'does not exist'
  if (code === 'EACCES') return 'may not be read by this user'
  return `cannot be read (${errorMessage(error)})`
}
