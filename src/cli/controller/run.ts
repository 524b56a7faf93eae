import { flushCompileCache } from 'node:module'
import { resolve } from 'node:path'
import type { Logger } from 'pino'

import { clusterScopeOptionsSha256 } from '../../config/controller/cluster-scope-options.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { systemClock } from '../../lib/clock.ts'
import { limitHeapGrowth, collectBufferGarbage } from '../../threads/collect-buffers.ts'
import { loadConfigOrFail } from '../client/connection.ts'
import { Controller } from '../../controller/controller.ts'
import { runPreflight } from '../../controller/start/preflight.ts'
import type { Credentials } from '../../controller/start/check-certificates.ts'
import { type ControllerLogWriters, createControllerLog } from './log.ts'
import { moveAwayText } from './move-away-text.ts'
import {
  CommandFailure,
  EXIT_SUCCESS,
  EXIT_FAILED,
  toOperatorFailure,
} from '../../controller/command-failure.ts'
import {
  hasOtherVoters,
  otherMeshAddresses,
  readKnownMembership,
} from '../../controller/start/known-voters.ts'
import { knownSeeds } from '../../controller/start/known-seeds.ts'
import { rejoinWithEmptyDisk } from '../../controller/start/lost-disk.ts'
import type { RemovalAction } from '../../controller/start/removal-action.ts'
import { StoreError } from '../../store/errors.ts'
import { writeFence } from '../../store/folder/fence-file.ts'
import { refuseForeignFolders } from '../terminal/folder-owner.ts'
import { printNote } from '../terminal/output.ts'
import { ServiceManager } from '../terminal/service-manager.ts'
import { unitStartCommand } from '../terminal/start-command.ts'
import { removePidFile, writePidFile } from '../../controller/admin/pid-file.ts'
import { hasNoData, setAside } from '../../controller/start/set-aside.ts'
import { programVersion } from '../../controller/version.ts'
import { errorMessage } from '../../lib/error-code.ts'

/**
 * Maximum time to stop; after that the process exits immediately, because a service manager kills
 * it some time after SIGTERM.
 */
const STOP_MS_MAX = 9_500

/**
 * V8 collects young objects when their buffers, for example those of large bodies, have grown by
 * this size.
 */
const YOUNG_BUFFERS_BYTES_MAX = 8 * 1024 * 1024

/**
 * `controller run CONFIG` runs a controller in the foreground until SIGTERM or ^C. If its disk was
 * lost or rolled back and it has peers, the controller moves its data folder aside and gets the
 * data from its peers, in the same process. A controller that was removed from the cluster exits
 * without an error.
 * @param options.isJoining called when the cluster has removed the controller; returns true if the
 * controller has not finished joining. The process then exits with an error, because the join has
 * failed.
 * @throws {CommandFailure} exit 2 for the configuration, 1 for other faults that prevent the start.
 */
export async function runController(
  path: string,
  { isJoining = () => false }: { readonly isJoining?: () => boolean } = {},
): Promise<void> {
  // LevelDB creates its files with the permissions that the umask allows: only this user may read
  // them.
  process.umask(0o077)
  collectBufferGarbage('minor', YOUNG_BUFFERS_BYTES_MAX)
  const config = loadConfigOrFail(path)
  refuseForeignFolders([config.data, config.identity.key], unitStartCommand('controller', path))
  const run = new ControllerRun(path, config, isJoining)
  process.exit(await run.untilEnd())
}

/** Why one run of a controller on one data folder ended. */
type LifeEnd =
  | { readonly type: 'stopped' }
  | (RemovalAction & { readonly addresses: readonly string[] })

class ControllerRun {
  readonly #path: string
  readonly #config: ControllerConfig
  readonly #isJoining: () => boolean
  readonly #stop = new StopRequest()
  readonly #startedAtMs = systemClock.nowMs()
  #log: Logger | null = null
  #audit: ControllerLogWriters['audit'] = null
  #lines: ControllerLogWriters['lines'] | null = null
  #serviceManager: ServiceManager | null = null
  /** Why the controller must discard its data folder; null: it may use the folder. */
  #doubt: string | null = null
  /** Mesh addresses for a request for re-admission: of seeds, and of members that were known. */
  #addresses: readonly string[]

  constructor(path: string, config: ControllerConfig, isJoining: () => boolean) {
    this.#isJoining = isJoining
    this.#path = path
    this.#config = config
    this.#addresses = knownSeeds(config)
  }

  /**
   * Runs the controller until it ends.
   * @returns the exit code.
   * @throws {CommandFailure}
   */
  async untilEnd(): Promise<number> {
    let code: number = EXIT_SUCCESS
    try {
      for (;;) {
        const end = await this.#liveOnce()
        if (end.type === 'stopped') break
        if (end.type === 'fenced') writeFence(this.#config.data, end.fence)
        if (end.type === 'removed' || end.type === 'fenced') {
          this.#reportEnd(end.sentence)
          await this.#serviceManager?.ended(end.sentence)
          code = this.#isJoining() ? EXIT_FAILED : EXIT_SUCCESS
          break
        }
        this.#doubt = end.sentence
        this.#addresses = [...new Set([...end.addresses, ...this.#addresses])]
      }
    } finally {
      removePidFile(this.#path)
    }
    this.#log?.info('controller stopped')
    return code
  }

  /**
   * Runs the controller once on its data folder, after re-admission if the folder is missing or
   * discarded; returns when the folder is released.
   */
  async #liveOnce(): Promise<LifeEnd> {
    const config = this.#config
    const { faults, warnings, credentials } = await runPreflight(config, systemClock.nowMs())
    if (credentials === null || faults.length > 0) {
      throw new CommandFailure(EXIT_FAILED, faults.join('\n'))
    }
    const log = this.#openLog()
    for (const warning of warnings) log.warn(warning)
    if (this.#doubt !== null || hasNoData(config.data)) {
      writePidFile(this.#path)
      // Reports `ready` here, because re-admission may take as long as the peers are unreachable,
      // and the start of the systemd unit must not wait for it.
      this.#serviceManager?.ready('waits to be re-admitted with an empty data folder')
      const entered = await this.#reenter(credentials, log)
      if (entered !== null) return entered
    }
    const ousted = Promise.withResolvers<
      RemovalAction & { readonly addresses: readonly string[] }
    >()
    let controller: Controller
    try {
      controller = await Controller.start({
        config,
        configPath: resolve(this.#path),
        credentials,
        log,
        audit: this.#audit,
        eventLines: this.#lines,
        startedAtMs: this.#startedAtMs,
        onFatal: this.#die,
        onOusted: (fate, addresses) => ousted.resolve({ ...fate, addresses }),
      })
    } catch (error) {
      const end = this.#endOfLostVote(error)
      if (end !== null) return end
      throw toOperatorFailure(error)
    }
    writePidFile(this.#path)
    this.#reportUp(log)
    // Writes the compile cache here, because a killed process would not write it; with the cache on
    // disk, the next start does not compile the code again.
    flushCompileCache()
    limitHeapGrowth()
    this.#stop.onHangUp = () => void controller.reload()
    const end = await Promise.race([
      this.#stop.requested.then(() => ({ type: 'stopped' }) as const),
      ousted.promise,
    ])
    await controller.stop()
    return end
  }

  /**
   * How a run ends when its data folder must no longer be used for voting. If other members exist,
   * the controller rebuilds its data from them, as after the loss of its disk.
   * @returns null without other members, and for any other error.
   */
  #endOfLostVote(error: unknown): LifeEnd | null {
    if (!(error instanceof StoreError) || error.code !== 'VOTE_LOST') return null
    const { id, data } = this.#config
    const known = readKnownMembership(data)
    const addresses = [...new Set([...this.#addresses, ...otherMeshAddresses(id, known)])]
    const isAlone = known === null ? addresses.length === 0 : !hasOtherVoters(id, [known])
    if (isAlone) return null
    this.#log?.error(`${error.finding}; this data folder can no longer vote`)
    return { type: 'rebuild', sentence: error.finding, addresses }
  }

  /**
   * Requests re-admission to the cluster with an empty data folder.
   * @returns null once the controller has a data folder again.
   */
  async #reenter(credentials: Credentials, log: Logger): Promise<LifeEnd | null> {
    const addresses = this.#addresses
    const why = this.#doubt ?? `${this.#config.data} is empty`
    log.warn(
      `${why}; requesting re-admission from ${addresses.join(', ')} with an empty data folder`,
    )
    const outcome = await rejoinWithEmptyDisk({
      config: this.#config,
      credentials,
      addresses,
      log,
      startedAtMs: this.#startedAtMs,
      stop: this.#stop.requested,
      makeRoom: () => this.#setAside(),
    }).catch((error: unknown) => {
      throw toOperatorFailure(error)
    })
    if (outcome === 'entered') return null
    if (outcome === 'stopped') return { type: 'stopped' }
    return { type: 'removed', sentence: outcome.removed, addresses }
  }

  /**
   * Renames the old data folder. The caller must wait until the cluster has re-admitted this
   * controller with an empty folder: without a quorum, the old folder may be the only remaining
   * copy.
   */
  #setAside(): void {
    if (this.#doubt === null) return
    this.#doubt = null
    const aside = setAside(this.#config.data, systemClock.nowMs())
    this.#log?.warn(`${this.#config.data} moved to ${aside}; starting with an empty data folder`)
  }

  #reportEnd(sentence: string): void {
    this.#log?.info(sentence)
    printNote(`flotilla: ${moveAwayText(this.#config, sentence)}`)
  }

  #reportUp(log: Logger): void {
    const { web, cluster } = this.#config
    this.#serviceManager?.ready(`serves as ${this.#config.id}`)
    log.info(
      {
        version: programVersion(),
        web: web.map(({ advertise }) => advertise),
        mesh: cluster.advertise,
        sharedOptions: Buffer.from(clusterScopeOptionsSha256(this.#config))
          .toString('hex')
          .slice(0, 12),
      },
      'controller started',
    )
  }

  /** Opened in the first run, so that an invalid configuration creates no log file. */
  #openLog(): Logger {
    if (this.#log !== null) return this.#log
    const { log, audit, lines } = createControllerLog(this.#config)
    this.#log = log
    this.#lines = lines
    this.#audit = audit
    const { env, pid } = process
    this.#serviceManager = new ServiceManager({ env, pid, log })
    // Ends the process with a message after an unhandled error, because the state of the process
    // may be inconsistent.
    process.on('uncaughtException', this.#die)
    process.on('unhandledRejection', this.#die)
    // The time limit for stopping starts with the signal, even if the signal arrives during the
    // start.
    void this.#stop.requested.then((signal) => {
      log.info({ signal }, 'controller stopping')
      this.#serviceManager?.stopping()
      setTimeout(() => this.#die(new Error('shutdown timed out')), STOP_MS_MAX).unref()
    })
    return log
  }

  readonly #die = (error: unknown): never => {
    // Logs one sentence for a failure that an operator can correct, and the stack for any other
    // error, which is a bug.
    const known = toOperatorFailure(error)
    const fields = known instanceof CommandFailure ? {} : { err: error }
    this.#log?.fatal(fields, `controller exits: ${errorMessage(known)}`)
    printNote(`flotilla: ${this.#config.id} stops: ${errorMessage(error)}`)
    removePidFile(this.#path)
    process.exit(EXIT_FAILED)
  }
}

/** A request to stop by SIGTERM or ^C, also during the start. */
class StopRequest {
  readonly requested: Promise<NodeJS.Signals>
  /**
   * Called on SIGHUP, unless standard input or output is a terminal: there, SIGHUP means that the
   * terminal was closed, and stops the controller.
   */
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
