import { lookup } from 'node:dns/promises'
import type { Server as HttpsServer } from 'node:https'
import type { SecureContext, TlsOptions } from 'node:tls'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

import type { Api } from '../../api/server.ts'
import { listenerTls } from '../../api/http/transport/tls.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { assert } from '../../lib/assert.ts'
import { parseHostPort } from '../../lib/text/names.ts'
import type { Credentials } from '../start/check-certificates.ts'
import { configuredApis } from '../settings.ts'
import type { FileMount } from '../../api/files/file-mount.ts'
import { FileSet } from '../../api/files/file-set.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { PACKAGE_ROOT } from '../../lib/runtime/package-root.ts'
import { CommandFailure, EXIT_FAILED } from '../failure.ts'

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
    byName: CertificatesByName = () => null,
  ): Promise<Listeners> {
    const listeners = new Listeners()
    const https = {
      ...listenerTls,
      cert: credentials.certificatePem,
      key: credentials.privateKeyPem,
      SNICallback: chooseBy(byName),
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
            apis: configuredApis(config, apis),
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

  /** Open connections beyond a lower limit stay open. */
  configure({ limits }: Pick<ControllerConfig, 'limits'>): void {
    for (const { server } of this.#apps) server.maxConnections = limits.connectionsMax
  }

  /** Stops accepting connections and resolves after the requests in progress are answered. */
  async close(): Promise<void> {
    await Promise.all(this.#apps.map((app) => app.close()))
  }
}

const CONSOLE_PATH = '/console'
/** Output folder of tools/build-console.ts, in a clone and in a package. */
const consoleFolder = join(PACKAGE_ROOT, 'dist', 'console')

type WebListener = ControllerConfig['web'][number]

/**
 * The static files that a listener serves, read from disk.
 * @throws {CommandFailure} when the folder of `spa` cannot be served.
 */
function mountsOf({ apis, spa }: Pick<WebListener, 'apis' | 'spa'>): FileMount[] {
  return [
    ...(apis.includes('console') ? [consoleMount()] : []),
    ...(apis.includes('spa') && spa !== null ? [spaMount(spa)] : []),
  ]
}

/** A clone without a built console still serves everything else. */
function consoleMount(): FileMount {
  const files = existsSync(join(consoleFolder, 'index.html')) ? FileSet.load(consoleFolder) : null
  const missing = "the console is not built; run 'make console' and start the controller again"
  return { path: CONSOLE_PATH, policy: 'console', files, missing }
}

function spaMount({ path, folder }: NonNullable<WebListener['spa']>): FileMount {
  try {
    const files = FileSet.load(folder)
    if (files.get('index.html') === null) throw new Error('it has no index.html')
    return { path, policy: 'spa', files, missing: '' }
  } catch (error) {
    const reason = `web spa.folder: cannot serve ${folder}: ${errorMessage(error)}`
    throw new CommandFailure(EXIT_FAILED, reason, error)
  }
}
