import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Name of a controller's admin socket: HTTP over a Unix socket in the data folder. Its mode is
 * 0600, so only the controller's user and root can connect. Without a session, they have the rights
 * of an administrator there.
 */
const ADMIN_SOCKET_NAME = 'admin.sock'

/**
 * Longest path of a Unix socket on Linux (sun_path, unix(7)), without the terminating zero byte.
 */
const SOCKET_PATH_BYTES_MAX = 107

export interface SocketAddress {
  /** Path for listening or connecting; valid until `release` is called. */
  readonly path: string
  release(): void
}

/**
 * Address of the admin socket. If the path is too long for a Unix socket, the address goes through
 * an open handle of the folder; the socket is still in the data folder and protected by its mode.
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
