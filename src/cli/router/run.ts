import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { createServer, type Server } from 'node:net'

import type { Logger } from 'pino'

import { CommandFailure, EXIT_FAILED } from '../../controller/failure.ts'
import {
  API_FAMILY_VERSION,
  programDate,
  programRevision,
  programVersion,
} from '../../controller/version.ts'
import { systemClock } from '../../lib/clock.ts'
import type { RouterIdentity } from '../../router/identity/identity.ts'
import type { CertificateRequests } from '../../router/identity/requests.ts'
import { routerProgramLimits } from '../../router/limits.ts'
import { RouterFailure } from '../../router/logger.ts'
import { RouterProgram } from '../../router/router.ts'
import { boundHeapGrowth } from '../../threads/collect-buffers.ts'
import { ask } from '../client/https.ts'
import { LineWriter, openOutput } from '../terminal/line-writer.ts'
import { forStdout, jsonLogger } from '../terminal/log-lines.ts'
import { checkedRouterConfig } from './check.ts'

export interface RunRouterOptions {
  readonly extend?: boolean
  readonly logLevel: string
}

/**
 * Runs a router until SIGTERM or SIGINT.
 * @throws {CommandFailure} exit 2 for a configuration that is wrong, 1 when it cannot start or
 * reaches no controller in time.
 */
export async function runRouter(path: string, options: RunRouterOptions): Promise<void> {
  const { config, effective } = checkedRouterConfig(path)
  const lock = await lockConfiguration(path)
  const log = createLog(options.logLevel)
  switchLevelOnSignal(log, options.logLevel)
  const stopped = stopSignal(log)
  const random = { next: () => Math.random(), integer: integerBetween }
  try {
    const router = new RouterProgram({
      config,
      effective,
      log,
      random,
      clock: systemClock,
      version: {
        version: API_FAMILY_VERSION,
        revision: programRevision(),
        buildDate: programDate(),
        os: process.platform,
        arch: process.arch,
      },
      askExtension,
    })
    await router.start({ extends: options.extend === true })
    log.info({ version: programVersion(), pid: process.pid }, 'router running')
    // Before the flags of V8 change, by which it knows what it compiled.
    flushCompileCache()
    boundHeapGrowth()
    try {
      await Promise.race([stopped, router.failed])
    } finally {
      await endOf(router)
    }
    log.info({}, 'router stopped')
  } catch (error) {
    if (!(error instanceof RouterFailure)) throw error
    throw new CommandFailure(EXIT_FAILED, error.message, error)
  } finally {
    lock.close()
  }
}

/**
 * Two processes of one router would send each other away from every controller for ever. An
 * abstract unix socket named after the configuration: the kernel gives it to one process, and takes
 * it back however that ends.
 * @throws {CommandFailure} when another router runs by the same configuration on this host.
 */
async function lockConfiguration(path: string): Promise<Server> {
  const name = createHash('sha256').update(realpathSync(path)).digest('hex').slice(0, 32)
  const server = createServer((socket) => socket.destroy())
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  server.listen(`\0flotilla-router-${process.getuid?.() ?? 0}-${name}`, resolve)
  try {
    await promise
  } catch (error) {
    const message = `a router with the configuration ${path} is already running; stop it first, or give this one its own configuration and identity`
    throw new CommandFailure(EXIT_FAILED, message, error)
  }
  server.unref()
  return server
}

async function endOf(router: RouterProgram): Promise<void> {
  const { stopMsMax } = routerProgramLimits
  const timer = setTimeout(() => process.exit(EXIT_FAILED), stopMsMax)
  await router.stop()
  clearTimeout(timer)
}

function integerBetween(min: number, max: number): number {
  return min + Math.floor(Math.random() * (max - min + 1))
}

function createLog(level: string): Logger {
  const writer = new LineWriter(openOutput())
  process.on('exit', () => writer.flushSync())
  return jsonLogger(forStdout(writer), { base: {}, level })
}

/** SIGUSR2 switches to `debug` and back; a restart resets it. */
function switchLevelOnSignal(log: Logger, configured: string): void {
  process.on('SIGUSR2', () => {
    const [from, level] = [log.level, log.level === configured ? 'debug' : configured]
    log.warn({ from, level }, `log level changed from ${from} to ${level} by SIGUSR2`)
    log.level = level
  })
}

/** The second signal ends the process at once, for who does not want to wait. */
function stopSignal(log: Logger): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      log.info({ signal }, 'router stopping')
      process.once(signal, () => process.exit(EXIT_FAILED))
      resolve()
    })
  }
  return promise
}

/** Over the client API of a controller, by the certificate in force. */
async function askExtension(
  api: string,
  requests: CertificateRequests,
  { caPem, certificatePem, privateKeyPem }: RouterIdentity,
): Promise<{ readonly cert: string; readonly serverCert: string }> {
  const { status, body } = await ask({
    url: `${api}/edge/client/v1/enroll/extend/router`,
    method: 'POST',
    body: requests,
    caPem,
    client: { certificatePem, privateKeyPem },
    timeoutMs: routerProgramLimits.extendTimeoutMs,
  })
  const data = status === 200 ? (body as { data?: Record<string, unknown> } | null)?.data : null
  const { cert, serverCert } = data ?? {}
  if (typeof cert === 'string' && typeof serverCert === 'string') return { cert, serverCert }
  throw new Error(`response status ${status} instead of certificates`)
}
