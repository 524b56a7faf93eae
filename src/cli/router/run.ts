import { realpathSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import type { Server } from 'node:net'
import { join, parse } from 'node:path'

import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { programVersion, programVersionLine } from '../../controller/version.ts'
import { systemClock } from '../../lib/clock.ts'
import type { RouterIdentity } from '../../router/identity/reloadable-identity.ts'
import type { CertificateRequests } from '../../router/identity/certificate-requests.ts'
import { routerProgramLimits } from '../../router/limits.ts'
import { certificateLimits } from '../../router/identity/limits.ts'
import { ProgramFailure } from '../../overlay/failure.ts'
import { RouterProgram } from '../../router/router.ts'
import { TUNNEL_BINDING } from '../../router/tunnel/tunnel.ts'
import { limitHeapGrowth } from '../../threads/collect-buffers.ts'
import { sendHttpsRequest } from '../client/https-request.ts'
import {
  createProgramLog,
  exitUnlessStopped,
  waitForStopSignal,
  toggleDebugLogOnSignal,
  systemRandom,
} from '../terminal/foreground-program.ts'
import { configuredProxy } from '../../config/router/router-relations.ts'
import { CachedResolver } from '../../lib/runtime/cached-resolver.ts'
import type { HttpProxy } from '../../lib/runtime/http-proxy.ts'
import { loadCheckedRouterConfig } from './check.ts'
import { resetCommand } from './reset-command.ts'
import { refuseForeignFolders } from '../terminal/folder-owner.ts'
import { acquirePathLock } from '../terminal/process-lock.ts'
import { ServiceManager } from '../terminal/service-manager.ts'
import { unitStartCommand } from '../terminal/start-command.ts'

export interface RunRouterOptions {
  readonly extend?: boolean
  readonly logLevel: string
}

/**
 * Runs a router until SIGTERM or SIGINT.
 * @throws {CommandFailure} exit 2 for an invalid configuration, 1 when the router cannot start or
 * reaches no controller in time.
 */
export async function runRouter(path: string, options: RunRouterOptions): Promise<void> {
  const { config, effective } = loadCheckedRouterConfig(path)
  // With a tunnel listener, root may run the router with folders of another user, because mode
  // tproxy may need root.
  if (!config.listeners.some(({ binding }) => binding === TUNNEL_BINDING))
    refuseForeignFolders(
      [config.identity.key.path ?? path, config.ctrl.endpointsFile],
      unitStartCommand('router', path),
    )
  const lock = await lockConfiguration(path)
  const log = createProgramLog(options.logLevel)
  toggleDebugLogOnSignal(log, options.logLevel)
  const { env, pid } = process
  const serviceManager = new ServiceManager({ env, pid, log })
  const stopped = waitForStopSignal(log, 'router')
  const names = new CachedResolver({
    path: lastAddressesPath(config.ctrl.endpointsFile),
    clock: systemClock,
  })
  try {
    const router = new RouterProgram({
      config,
      effective,
      resetCommand: resetCommand(path),
      log,
      random: systemRandom,
      clock: systemClock,
      version: programVersionLine(),
      names,
      askExtension: (api, requests, identity) =>
        askExtension({ api, proxy: configuredProxy(config), names }, requests, identity),
    })
    try {
      await router.start({ extends: options.extend === true })
      log.info({ version: programVersion(), pid }, 'router running')
      serviceManager.ready('runs')
      // Writes the compile cache here, because the V8 flags that change next are part of the key of
      // the cache.
      flushCompileCache()
      limitHeapGrowth()
      await Promise.race([stopped, router.failed])
    } finally {
      serviceManager.stopping()
      // Stops the router also after a failed start, which may have opened ports and connections.
      await exitUnlessStopped(routerProgramLimits.stopMsMax, router.stop())
    }
    log.info({}, 'router stopped')
  } catch (error) {
    if (!(error instanceof ProgramFailure)) throw error
    throw new CommandFailure(EXIT_FAILED, error.message, error)
  } finally {
    lock.close()
  }
}

/**
 * Locks the configuration: if two processes ran the same router, each would make every controller
 * disconnect the other.
 * @throws {CommandFailure} when another router with the same configuration runs on this host.
 */
async function lockConfiguration(path: string): Promise<Server> {
  const realPath = realpathSync(path)
  try {
    return await acquirePathLock('router', realPath)
  } catch (error) {
    const message = `a router with the configuration ${path} is already running; stop it first, or give this one its own configuration and identity`
    throw new CommandFailure(EXIT_FAILED, message, error)
  }
}

/**
 * Path of the file that stores the last resolved addresses; for `endpoints.yml`, it is
 * `endpoints.addresses.json` in the same folder.
 */
function lastAddressesPath(endpointsFile: string): string {
  const { dir, name } = parse(endpointsFile)
  return join(dir, `${name}.addresses.json`)
}

/**
 * Requests new certificates from the client API of a controller, authenticated with the current
 * certificate.
 */
async function askExtension(
  { api, proxy, names }: Readonly<{ api: string; proxy: HttpProxy | null; names: CachedResolver }>,
  requests: CertificateRequests,
  { caPem, certificatePem, privateKeyPem }: RouterIdentity,
): Promise<{ readonly cert: string; readonly serverCert: string }> {
  const { status, body } = await sendHttpsRequest({
    url: `${api}/edge/client/v1/enroll/extend/router`,
    method: 'POST',
    body: requests,
    caPem,
    proxy,
    names,
    client: { certificatePem, privateKeyPem },
    timeoutMs: certificateLimits.extendTimeoutMs,
  })
  const data = status === 200 ? (body as { data?: Record<string, unknown> } | null)?.data : null
  const { cert, serverCert } = data ?? {}
  if (typeof cert === 'string' && typeof serverCert === 'string') return { cert, serverCert }
  throw new Error(`response status ${status} instead of certificates`)
}
