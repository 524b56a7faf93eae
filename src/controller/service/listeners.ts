import type { Server as HttpsServer } from 'node:https'
import type { SecureContext, TlsOptions } from 'node:tls'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

import type { Api } from '../../api/server.ts'
import { listenerTlsOptions } from '../../api/http/transport/tls.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { assert } from '../../lib/assert.ts'
import type { HostPort } from '../../lib/text/names.ts'
import type { ListeningTlsServer } from '../../overlay/sockets/shared-tls-port.ts'
import type { TlsPortOpener } from '../../overlay/sockets/tls-port-opener.ts'
import type { Credentials } from '../start/check-certificates.ts'
import { configuredApis } from '../settings.ts'
import type { FileMount } from '../../api/files/file-mount.ts'
import { FileSet } from '../../api/files/file-set.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { closeServer } from '../../lib/runtime/listening.ts'
import { PACKAGE_ROOT } from '../../lib/runtime/package-root.ts'
import { CommandFailure, EXIT_FAILED } from '../command-failure.ts'
import { resolveBindAddresses, isPortSharedWithRouters } from './ports.ts'

type CertificateAndKey = 'certificatePem' | 'privateKeyPem'

/**
 * Returns the TLS context for a server name (SNI); null: the controller's own certificate applies.
 */
export type SniContextLookup = (name: string) => SecureContext | null

function chooseBy(byName: SniContextLookup): NonNullable<TlsOptions['SNICallback']> {
  return (name, done) => done(null, byName(name) ?? undefined)
}

interface ListenersDeps {
  readonly api: Api
  readonly config: ControllerConfig
  readonly credentials: Credentials
  /** Opens the ports that routers share, and the ports behind load balancers. */
  readonly ports: TlsPortOpener
  readonly byName?: SniContextLookup | null
}

/**
 * Application protocols (ALPN) that identify HTTP clients at a port that is shared with routers.
 */
const HTTP_CLIENTS = { protocols: ['http/1.1'], clientsWithout: 'all' } as const

/** The HTTPS listeners of the configuration's `web` list. */
export class HttpsListeners {
  readonly #deps: ListenersDeps
  readonly #closes: (() => Promise<void>)[] = []
  readonly #servers: HttpsServer[] = []

  private constructor(deps: ListenersDeps) {
    this.#deps = deps
  }

  /**
   * Opens all listeners.
   * @throws the error of the first listener that fails, after the others are closed.
   */
  static async open(deps: ListenersDeps): Promise<HttpsListeners> {
    const listeners = new HttpsListeners(deps)
    try {
      for (const [at, listener] of deps.config.web.entries()) {
        // A name such as localhost may have several addresses; the listener opens each of them.
        for (const address of await resolveBindAddresses(listener.bind)) {
          await listeners.#listen(listener, address, `web[${at}].bind`)
        }
      }
    } catch (error) {
      await listeners.close()
      throw error
    }
    return listeners
  }

  async #listen(listener: WebListener, address: HostPort, key: string): Promise<void> {
    const { api, config, credentials, ports, byName = null } = this.#deps
    const hasFront =
      isPortSharedWithRouters(config, listener.bind) || listener.proxyProtocol.from.length > 0
    let server: HttpsServer | null = null
    let port: ListeningTlsServer | null = null
    const app = api.listener({
      apis: configuredApis(config, listener.apis),
      hasOpenMetrics: listener.apis.includes('metrics'),
      mounts: mountsOf(listener),
      https: {
        ...listenerTlsOptions,
        cert: credentials.certificatePem,
        key: credentials.privateKeyPem,
        ...(byName === null ? {} : { SNICallback: chooseBy(byName) }),
      },
      onHttpsServer: (made) => {
        server = made
        this.#servers.push(made)
      },
      ...(hasFront ? { stopAccepting: async () => await port?.close() } : {}),
    })
    this.#closes.push(() => app.close())
    if (!hasFront) {
      await app.listen(address)
      return
    }
    assert(server !== null, 'the listener has an HTTPS server')
    port = await ports.open(server, address, key, HTTP_CLIENTS)
    // The server is closed here, because the app closes its server only if the app itself opened
    // that server.
    this.#closes.push(() => closeServer(app.server))
  }

  /** Sets the certificate for new connections. Open connections keep the previous certificate. */
  renew({ certificatePem, privateKeyPem }: Pick<Credentials, CertificateAndKey>): void {
    for (const server of this.#servers) {
      // All TLS options are passed, because this call replaces the whole context and omitted
      // options would fall back to their defaults.
      server.setSecureContext({ ...listenerTlsOptions, cert: certificatePem, key: privateKeyPem })
    }
  }

  /** Stops accepting connections, and resolves when the requests in progress have finished. */
  async close(): Promise<void> {
    await Promise.all(this.#closes.map((close) => close()))
  }
}

const CONSOLE_PATH = '/console'
/** Folder into which tools/build-console.ts writes the console, in a clone and in a package. */
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

/**
 * Files of the console. If the console is not built, as in a clone, the listener still serves
 * everything else.
 */
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
