import {
  closeSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { errorMessage } from '../lib/error-code.ts'
import { decodeText } from '../lib/text/decode-text.ts'
import { encodedPemBlocks } from '../lib/text/pem-text.ts'

export const SECRET_FILE_BYTES_MAX = 64 * 1024

/** The message is one sentence with a remedy; it never contains the file's content. */
export class SecretFileError extends Error {
  override readonly name = 'SecretFileError'
}

/**
 * Writes a secret atomically: writes a file of mode 0600 in the same folder, syncs it, and renames
 * it. Other users can never read it.
 * @throws the file system's error.
 */
export function writeSecretFile(path: string, text: string): void {
  writeWhole(path, text, 0o600)
}

/**
 * Writes a public file (certificates) atomically.
 * @throws the file system's error.
 */
export function writePublicFile(path: string, text: string): void {
  writeWhole(path, text, 0o644)
}

/**
 * Writes a new secret or public file, and never replaces an existing file, even if another process
 * creates the file concurrently.
 * @throws the file system's error, such as EEXIST.
 */
export function writeNewFile(
  path: string,
  content: string | Uint8Array,
  mode: 0o600 | 0o644,
): void {
  writeWhole(path, content, mode, (partial) => {
    try {
      linkSync(partial, path)
    } finally {
      rmSync(partial, { force: true })
    }
  })
}

function writeWhole(
  path: string,
  content: string | Uint8Array,
  mode: number,
  put = (partial: string): void => renameSync(partial, path),
): void {
  const partial = `${path}.${process.pid}.partial`
  rmSync(partial, { force: true })
  const file = openSync(partial, 'wx', mode)
  try {
    // Sets the exact mode, because the umask can remove mode bits at creation.
    fchmodSync(file, mode)
    keepOwner(file, path)
    const bytes = Buffer.from(content)
    for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at)
    fsyncSync(file)
  } catch (error) {
    rmSync(partial, { force: true })
    throw error
  } finally {
    closeSync(file)
  }
  put(partial)
  syncFolder(dirname(path))
}

/**
 * Keeps the owner of a file that root replaces; otherwise the owner could no longer open the file.
 */
function keepOwner(file: number, path: string): void {
  if (process.geteuid?.() !== 0) return
  const former = lstatSync(path, { throwIfNoEntry: false })
  if (former?.isFile() === true) fchownSync(file, former.uid, former.gid)
}

interface SecretText {
  readonly text: string
  /** A warning when the file's group may read the file; null when only its owner may. */
  readonly warning: string | null
}

/**
 * @throws {SecretFileError} when the file is missing, unreadable, too large, not a regular file,
 * contains only public PEM blocks, or gives other users of this host more access than reading by
 * its group.
 */
export function readSecretFile(path: string, bytesMax = SECRET_FILE_BYTES_MAX): SecretText {
  let file: number
  try {
    file = openSync(path, 'r')
  } catch (error) {
    const isOfToken = /(?:^|\/)pkcs11:/.test(path)
    const fault = isOfToken ? keyOfToken : `${path} cannot be read: ${openFaultOf(error)}`
    throw new SecretFileError(fault, { cause: error })
  }
  try {
    // Checks the open file, so that the file cannot be replaced between check and read.
    const status = fstatSync(file)
    if (!status.isFile()) throw new SecretFileError(`${path} is not a regular file`)
    if (status.size > bytesMax) {
      throw new SecretFileError(`${path} is larger than ${bytesMax} bytes`)
    }
    const text = readAll(file, status.size)
    // Checks the content before the mode: a public file may be readable by everyone, so its mode
    // must not be reported as the error.
    const found = publicPemContent(text)
    if (found !== null) {
      const remedy = 'name the file with the private key'
      throw new SecretFileError(`${path} holds ${found} and no private key; ${remedy}`)
    }
    const mode = (status.mode & 0o777).toString(8).padStart(4, '0')
    if ((status.mode & 0o027) !== 0) {
      throw new SecretFileError(
        `${path} has mode ${mode}: others on this host can read or change it; run 'chmod 600 ${path}', and replace the secret if anyone may have read it`,
      )
    }
    const warning =
      (status.mode & 0o040) === 0
        ? null
        : `${path} has mode ${mode}: its group can read it; 'chmod 600 ${path}' closes that`
    return { text, warning }
  } finally {
    closeSync(file)
  }
}

const publicLabels: ReadonlyMap<string, string> = new Map([
  ['PUBLIC KEY', 'a public key'],
  ['RSA PUBLIC KEY', 'a public key'],
  ['CERTIFICATE', 'a certificate'],
  ['TRUSTED CERTIFICATE', 'a certificate'],
  ['CERTIFICATE REQUEST', 'a certificate request'],
  ['NEW CERTIFICATE REQUEST', 'a certificate request'],
])

/** Name of the content if all blocks of a PEM text are public; null for any other text. */
function publicPemContent(text: string): string | null {
  const found = Array.from(encodedPemBlocks(text), ({ label }) => publicLabels.get(label) ?? null)
  return found.includes(null) ? null : (found[0] ?? null)
}

function readAll(file: number, size: number): string {
  const bytes = Buffer.alloc(size)
  let at = 0
  while (at < size) {
    const count = readSync(file, bytes, at, size - at, at)
    if (count === 0) break
    at += count
  }
  return decodeText(bytes.subarray(0, at))
}

/**
 * Error for a key in a PKCS #11 token. The message does not quote the key's URI, because the URI
 * may contain a PIN.
 */
const keyOfToken =
  'a key in a PKCS #11 token (pkcs11:) is not supported; name the file of a key in PEM'

function openFaultOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : null
  if (code === 'ENOENT') return 'file not found'
  if (code === 'EACCES') return 'the user running this program has no permission to'
  return errorMessage(error)
}

/**
 * Syncs a folder, so that renames and removals in it survive a power failure.
 * @throws the file system's error.
 */
export function syncFolder(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
