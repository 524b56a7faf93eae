import { readSync } from 'node:fs'

import { readSecretFile, SECRET_FILE_BYTES_MAX, SecretFileError } from '../../pki/secret-file.ts'
import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { decodeText } from '../../lib/text/decode-text.ts'

/**
 * Reads a secret from a file that only its owner can read, or from standard input. Secrets are
 * never read from the command line, which every user of a host can see. Trailing white space is
 * removed.
 * @param source path, or `-` for standard input.
 * @param what name of the secret, the subject of the message "… is empty".
 * @throws {CommandFailure} exit 1.
 */
export function readSecretInput(source: string, what: string): string {
  const text = (source === '-' ? readStandardInput(what) : readFile(source, what)).trimEnd()
  if (text !== '') return text
  const remedy = source === '-' ? 'write it to standard input' : `put it into ${source}`
  throw new CommandFailure(EXIT_FAILED, `${what} is empty; ${remedy}`)
}

function readFile(path: string, what: string): string {
  try {
    return readSecretFile(path).text
  } catch (error) {
    if (!(error instanceof SecretFileError)) throw error
    throw new CommandFailure(EXIT_FAILED, `${what}: ${errorMessage(error)}`, error)
  }
}

/**
 * @param what name of the input, the subject of the message "… is longer than".
 * @throws {CommandFailure} exit 1.
 */
export function readStandardInput(what: string, bytesMax = SECRET_FILE_BYTES_MAX): string {
  const text = readFileDescriptor(0, bytesMax)
  if (text !== null) return text
  throw new CommandFailure(
    EXIT_FAILED,
    `${what} on standard input is longer than ${bytesMax} bytes; pass nothing else there`,
  )
}

/** Reads a pipe or a file to its end. @returns null if there is more than `bytesMax`. */
export function readFileDescriptor(descriptor: number, bytesMax: number): string | null {
  const bytes = Buffer.alloc(bytesMax + 1)
  let length = 0
  while (length < bytes.length) {
    const count = readSome(descriptor, bytes, length)
    if (count === 0) return decodeText(bytes.subarray(0, length))
    length += count
  }
  return null
}

/**
 * Retries on EAGAIN, which a read returns if the process at the other end of a pipe made the pipe
 * non-blocking.
 */
function readSome(descriptor: number, bytes: Buffer, from: number): number {
  for (;;) {
    try {
      return readSync(descriptor, bytes, from, bytes.length - from, null)
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : null
      if (code === 'EOF') return 0
      if (code !== 'EAGAIN') throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
    }
  }
}
