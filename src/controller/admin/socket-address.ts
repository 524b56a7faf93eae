import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The admin socket of a controller: HTTP over a unix socket in its data folder. Who may open the
 * socket (mode 0600: the user that runs the controller, and root) may ask for everything that is
 * offered anywhere, without a session.
 */
export const ADMIN_SOCKET_NAME = 'admin.sock'

/** Longest path of a unix socket on Linux (sun_path, unix(7)), without its closing zero. */
const SOCKET_PATH_BYTES_MAX = 107

export interface SocketAddress {
  /** Path to listen on or connect to; valid until `release`. */
  readonly path: string
  release(): void
}

/**
 * The admin socket of a data folder. A folder too deep for a socket's path is gone through by an
 * open handle, so that the socket still lies, and is protected, where everything else of the
 * controller does.
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
