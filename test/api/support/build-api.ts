import type { ServerOptions } from 'node:https'

import type { FastifyInstance } from 'fastify'

import type { ApiDeps } from '../../../src/api/api-deps.ts'
import { createApi } from '../../../src/api/server.ts'

/**
 * One listener that serves the APIs of a controller. Their periodic tasks start when the app is
 * ready, and stop when the app closes.
 */
export function buildApi(parts: ApiDeps, https: ServerOptions | null = null): FastifyInstance {
  const api = createApi(parts)
  const app = api.listener({ apis: ['client', 'management', 'fabric', 'host', 'oidc'], https })
  app.addHook('onReady', (done) => {
    api.start()
    done()
  })
  app.addHook('onClose', () => api.stop())
  return app
}
