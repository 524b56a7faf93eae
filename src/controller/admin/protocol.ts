import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The admin socket of a controller: line-delimited JSON over a unix socket in its data folder. Who may open the socket
 * (mode 0600: the user that runs the controller) may do everything it offers; there is no further log-in.
 * A request is `{"verb": string, "params": object, "caller"?: {"uid": number, "name": string}}`; its answer, in order, `{"ok": true, "data": …}` or
 * `{"ok": false, "code": string, "message": string}`.
 */
export const ADMIN_SOCKET_NAME = 'admin.sock'
export const ADMIN_REQUEST_BYTES_MAX = 64 * 1024
export const ADMIN_ANSWER_BYTES_MAX = 16 * 1024 * 1024

/** Longest path of a unix socket on Linux (sun_path, unix(7)), without its closing zero. */
const SOCKET_PATH_BYTES_MAX = 107

export type AdminAnswer =
  | { readonly ok: true; readonly data: unknown }
  | { readonly ok: false; readonly code: string; readonly message: string }

export interface SocketAddress {
  /** What to listen on or connect to; valid until `release`. */
  readonly path: string
  release(): void
}

/**
 * The admin socket of a data folder. A folder too deep for a socket's path is gone through by an open handle, so that
 * the socket still lies, and is protected, where everything else of the controller does.
 */
export function adminSocketAddress(dataFolder: string): SocketAddress {
  const path = join(dataFolder, ADMIN_SOCKET_NAME)
  if (Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX) return { path, release: () => undefined }
  const folder = openSync(dataFolder, 'r')
  return {
    path: `/proc/self/fd/${folder}/${ADMIN_SOCKET_NAME}`,
    release: () => closeSync(folder),
  }
}

/**
 * Cuts a byte stream into lines. @throws {RangeError} when a line grows past the limit.
 * A line is handed over without its newline.
 */
export class LineSplitter {
  readonly #bytesMax: number
  #chunks: Buffer[] = []
  #bytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  push(chunk: Buffer): string[] {
    const lines: string[] = []
    let from = 0
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      this.#keep(chunk.subarray(from, at))
      lines.push(Buffer.concat(this.#chunks).toString('utf8'))
      this.#chunks = []
      this.#bytes = 0
      from = at + 1
    }
    this.#keep(chunk.subarray(from))
    return lines
  }

  #keep(bytes: Buffer): void {
    this.#bytes += bytes.length
    if (this.#bytes > this.#bytesMax) throw new RangeError('the line is too long')
    if (bytes.length > 0) this.#chunks.push(bytes)
  }
}
