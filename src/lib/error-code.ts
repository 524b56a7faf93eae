/** The code of a system error, as `ENOENT`; '' for an error without one. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
