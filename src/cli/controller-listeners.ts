import type { Api } from '../api/server.ts'
import type { ControllerConfig } from '../config/options.ts'
import { assert } from '../lib/assert.ts'
import { parseHostPort } from '../lib/names.ts'
import type { Credentials } from './controller-check.ts'
import { apisOf } from './controller-settings.ts'

/** The HTTPS listeners of the configuration's `web` list. */
export class Listeners {
  readonly #apps: ReturnType<Api['listener']>[] = []

  /** @throws the error of the first one that cannot listen; those before it are closed again. */
  static async open(
    api: Api,
    { web }: ControllerConfig,
    credentials: Credentials,
  ): Promise<Listeners> {
    const listeners = new Listeners()
    const https = { cert: credentials.certificatePem, key: credentials.privateKeyPem }
    try {
      for (const { bind, apis } of web) {
        const address = parseHostPort(bind)
        assert(address !== null, 'the configuration has checked the address')
        const app = api.listener({ apis: apisOf(apis), https })
        listeners.#apps.push(app)
        await app.listen(address)
      }
    } catch (error) {
      await listeners.close()
      throw error
    }
    return listeners
  }

  /** Stops accepting and resolves when the requests under way are answered. */
  async close(): Promise<void> {
    await Promise.all(this.#apps.map((app) => app.close()))
  }
}
