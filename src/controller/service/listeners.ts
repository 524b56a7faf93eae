import { lookup } from 'node:dns/promises'
import type { Server as HttpsServer } from 'node:https'
import type { SecureContext, TlsOptions } from 'node:tls'

import type { Api } from '../../api/server.ts'
import { listenerTls } from '../../api/http/transport/tls.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { assert } from '../../lib/assert.ts'
import { parseHostPort } from '../../lib/text/names.ts'
import type { Credentials } from '../start/check-certificates.ts'
import { apisOf } from '../settings.ts'
import { mountsOf } from './mounts.ts'

type CertificateAndKey = 'certificatePem' | 'privateKeyPem'

/** Certificate for a server name (SNI); null: the certificate of the controller. */
export type CertificatesByName = (name: string) => SecureContext | null

function chooseBy(byName: CertificatesByName): NonNullable<TlsOptions['SNICallback']> {
  return (name, done) => done(null, byName(name) ?? undefined)
}

/** The HTTPS listeners of the configuration's `web` list. */
export class Listeners {
  readonly #apps: ReturnType<Api['listener']>[] = []
  readonly #servers: HttpsServer[] = []

  /** @throws the error of the first listener that fails, after closing the others. */
  static async open(
    api: Api,
    config: ControllerConfig,
    credentials: Credentials,
    byName: CertificatesByName | null = null,
  ): Promise<Listeners> {
    const listeners = new Listeners()
    const https = {
      ...listenerTls,
      cert: credentials.certificatePem,
      key: credentials.privateKeyPem,
      ...(byName === null ? {} : { SNICallback: chooseBy(byName) }),
    }
    try {
      for (const listener of config.web) {
        const { bind, apis } = listener
        const mounts = mountsOf(listener)
        const address = parseHostPort(bind)
        assert(address !== null, 'the configuration has checked the address')
        // A name with several addresses, such as localhost, is served at each of them.
        for (const { address: host } of await lookup(address.host, { all: true })) {
          const app = api.listener({
            apis: apisOf(config, apis),
            hasOpenMetrics: apis.includes('metrics'),
            mounts,
            https,
            onHttpsServer: (server) => listeners.#servers.push(server),
          })
          listeners.#apps.push(app)
          await app.listen({ host, port: address.port })
        }
      }
    } catch (error) {
      await listeners.close()
      throw error
    }
    return listeners
  }

  /** New connections get this certificate. Open connections and their requests continue. */
  renew({ certificatePem, privateKeyPem }: Pick<Credentials, CertificateAndKey>): void {
    for (const server of this.#servers) {
      // Replaces all options of the context; omitted ones would fall back to defaults.
      server.setSecureContext({ ...listenerTls, cert: certificatePem, key: privateKeyPem })
    }
  }

  /** Stops accepting connections and resolves after the requests in progress are answered. */
  async close(): Promise<void> {
    await Promise.all(this.#apps.map((app) => app.close()))
  }
}
