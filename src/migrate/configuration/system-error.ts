import { MigrationFault } from '../fault.ts'

const sentences: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EACCES: 'no permission to read it',
  EPERM: 'no permission to read it',
  EISDIR: 'it is a folder',
}

/** The reason why a file cannot be read, as one clause. */
export function systemErrorText(error: unknown): string {
  if (error instanceof MigrationFault) return error.message
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return sentences[code] ?? (error instanceof Error ? error.message : String(error))
}
