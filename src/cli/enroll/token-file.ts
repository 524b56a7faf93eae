import { closeSync, openSync, statSync } from 'node:fs'

import { CommandFailure, EXIT_USAGE } from '../../controller/command-failure.ts'
import { JWT_CHARACTERS_MAX } from '../../pki/jwt-verifier.ts'
import { readFileDescriptor, readStandardInput } from '../terminal/secret-input.ts'
import { EnrollmentFault } from './enrollment-fault.ts'

/** Maximum bytes of the file: the longest token in UTF-16, with a byte order mark. */
const TOKEN_BYTES_MAX = 2 * JWT_CHARACTERS_MAX + 2

/**
 * Reads an enrollment token from a file, or from standard input for `-`. The file may be readable
 * by others: a token is often sent by mail, and a one-time token is worthless once it was used.
 * @throws {CommandFailure} exit 2 if the argument is a token instead of a file name.
 * @throws {EnrollmentFault}
 */
export function readTokenFile(source: string): string {
  if (source === '-') return readStandardInput('the token')
  if (source.split('.').length === 3 && source.length > 100) {
    throw new CommandFailure(
      EXIT_USAGE,
      'pass the file of the token, or - for standard input; command lines are visible to other users',
    )
  }
  // The source may also be a pipe: OpenZiti's packages pass the token as `--jwt <(echo "$TOKEN")`.
  const status = statSync(source)
  const text = status.isFile() || status.isFIFO() ? readToEnd(source) : null
  if (text !== null) return text
  throw new EnrollmentFault(`${source} is not an enrollment token file`)
}

/** @returns null if the file is longer than any token. */
function readToEnd(path: string): string | null {
  const descriptor = openSync(path, 'r')
  try {
    return readFileDescriptor(descriptor, TOKEN_BYTES_MAX)
  } finally {
    closeSync(descriptor)
  }
}
