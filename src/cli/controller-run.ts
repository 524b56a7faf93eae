import { clusterFingerprint } from '../config/load.ts'
import { systemClock } from '../lib/clock.ts'
import { StoreError } from '../store/errors.ts'
import { loadConfigOrFail } from './cluster-commands.ts'
import { Controller } from './controller.ts'
import { preflight } from './controller-check.ts'
import { createLog } from './controller-log.ts'
import { CommandFailure, EXIT_DONE, EXIT_FAILED, sentenceOf } from './failure.ts'
import { removePidFile, writePidFile } from './pid-file.ts'
import { programVersion } from './version.ts'

/** A stop that takes longer is cut short: whoever sent SIGTERM will not wait for ever. */
const STOP_MS_MAX = 9_500

/**
 * `controller run CONFIG`: a controller in the foreground, until SIGTERM or ^C.
 * @throws {CommandFailure} exit 2 for the configuration, 1 for what else keeps it from starting.
 */
export async function runController(path: string): Promise<void> {
  const config = loadConfigOrFail(path)
  const stop = new StopRequest()
  const { faults, warnings, credentials } = await preflight(config, systemClock.nowMs())
  if (credentials === null || faults.length > 0) {
    throw new CommandFailure(EXIT_FAILED, faults.join('\n'))
  }
  const log = createLog(config)
  for (const warning of warnings) log.warn(warning)
  const end = (error: unknown): never => {
    log.fatal({ err: error }, 'this controller can not go on')
    process.stderr.write(`flotilla: ${config.id} stops: ${sentenceOf(error)}\n`)
    removePidFile(path)
    process.exit(EXIT_FAILED)
  }
  // A mistake anywhere must end the process with a word, not leave half of it running.
  process.on('uncaughtException', end)
  process.on('unhandledRejection', end)
  // Counts from the signal on, also when that comes during the start.
  void stop.requested.then((signal) => {
    log.info({ signal }, 'controller stops')
    setTimeout(() => end(new Error('the stop took too long')), STOP_MS_MAX).unref()
  })
  let controller: Controller
  try {
    controller = await Controller.start({ config, credentials, log, onFatal: end })
  } catch (error) {
    throw startFailure(error)
  }
  writePidFile(path)
  log.info(
    {
      version: programVersion(),
      web: config.web.map(({ advertise }) => advertise),
      mesh: config.cluster.advertise,
      sharedOptions: clusterFingerprint(config).slice(0, 12),
    },
    'controller is up',
  )
  stop.onHangUp = () => void controller.reloadCertificates()
  await stop.requested
  await controller.stop()
  removePidFile(path)
  log.info('controller has stopped')
  // What a library may have left open must not keep a stopped controller from ending.
  process.exit(EXIT_DONE)
}

/** What the operator can act on becomes one line; the rest is a mistake of ours and keeps its stack. */
function startFailure(error: unknown): unknown {
  if (error instanceof StoreError) return new CommandFailure(EXIT_FAILED, error.message, error)
  const isSystemError = error instanceof Error && 'syscall' in error
  return isSystemError ? new CommandFailure(EXIT_FAILED, error.message, error) : error
}

/** SIGTERM or ^C, also when it comes during the start. */
class StopRequest {
  readonly requested: Promise<NodeJS.Signals>
  /** On SIGHUP. On a terminal that one means that the terminal has gone, and stops as well. */
  onHangUp: () => void = () => undefined

  constructor() {
    const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>()
    this.requested = promise
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, resolve)
    const isOnTerminal = process.stdin.isTTY || process.stdout.isTTY
    process.on('SIGHUP', (name) => {
      if (isOnTerminal) resolve(name)
      else this.onHangUp()
    })
  }
}
