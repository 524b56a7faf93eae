import { createApi } from '../../src/api/server.ts'
import type { ApiDeps } from '../../src/api/api-deps.ts'
import { AdminSocket } from '../../src/controller/admin/socket.ts'
import { startController, type TestController } from '../api/support/controller.ts'

export interface ServedSocket {
  readonly controller: TestController
  close(): Promise<void>
}

/**
 * A controller in this process behind the admin socket of a data folder; tests can replace some of
 * its components.
 */
export async function serveSocket(
  dataFolder: string,
  parts: Partial<ApiDeps> = {},
): Promise<ServedSocket> {
  const controller = await startController()
  const socket = await AdminSocket.open(
    createApi({ ...controller.parts, ...parts }),
    dataFolder,
    'v1.2.3',
  )
  return {
    controller,
    close: async () => {
      await socket.close()
      await controller.close()
    },
  }
}
