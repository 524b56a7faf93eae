import { readFileSync, statSync } from 'node:fs'

import { CommandFailure, EXIT_USAGE } from '../../controller/failure.ts'
import { JWT_CHARACTERS_MAX } from '../../pki/jwt-verifier.ts'
import { readStandardInput } from '../terminal/secret-input.ts'
import { EnrollmentFault } from './enrollment-fault.ts'
import { decodeText } from '../../lib/text/decode-text.ts'

/** In UTF-16, with its byte order mark. */
const TOKEN_BYTES_MAX = 2 * JWT_CHARACTERS_MAX + 2

/**
 * Reads an enrollment token from a file, or from standard input for `-`. The file may be readable
 * by anybody: a token is often sent by mail, and is worthless after its use.
 * @throws {CommandFailure} exit 2 for a token in place of its file.
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
  const status = statSync(source)
  if (status.isFile() && status.size <= TOKEN_BYTES_MAX) return decodeText(readFileSync(source))
  throw new EnrollmentFault(`${source} is not an enrollment token file`)
}
