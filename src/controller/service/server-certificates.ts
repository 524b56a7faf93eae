import { fileFaultFields } from '../../pki/file-fault.ts'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { Logger } from 'pino'

import { periodicScheduler } from '../../lib/periodic-scheduler.ts'
import { listenerTlsOptions } from '../../api/http/transport/tls.ts'
import { CertificateFileWatcher } from '../../cluster/secrets/certificate-file-watcher.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Certificate } from '../../pki/certificate.ts'
import { inspectChain } from '../../pki/authority/inspection.ts'
import {
  certificateLifetime,
  missingHosts,
  serverExpirySentence,
} from '../../pki/authority/renewal.ts'
import {
  readServerCertificate,
  type ServerCertificatePaths,
  type ServerCertificateSet,
} from '../../pki/verify/server-certificate.ts'
import type { AlarmRaiser } from '../../cluster/alarm-table.ts'
import type { ServerCertificateStatus } from '../../api/cluster/pki-control.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { isoTime } from '../../lib/text/format-time.ts'

/**
 * Interval for checking whether files have changed. The controller reads a changed file after it
 * has stayed unchanged for one interval.
 */
const LOOK_MS = 5_000

interface ServerCertificateDeps {
  readonly alarms: AlarmRaiser
  readonly clock: Clock
  readonly log: Pick<Logger, 'info' | 'error'>
}

/** Files that belong together and were rejected. */
export interface RejectedFiles {
  readonly paths: readonly string[]
  /** The error; its message is one sentence. */
  readonly error: unknown
}

interface InForce {
  readonly set: ServerCertificateSet
  readonly context: SecureContext
}

/**
 * One server certificate from another authority. While certificate and key in the files do not
 * match, the controller uses the previous pair.
 */
class ServerCertificate {
  readonly paths: ServerCertificatePaths
  readonly #deps: ServerCertificateDeps
  #inForce: InForce | null = null
  readonly #files: CertificateFileWatcher
  #alarm: string | null = null

  constructor(paths: ServerCertificatePaths, deps: ServerCertificateDeps) {
    this.paths = paths
    this.#deps = deps
    this.#files = new CertificateFileWatcher(paths, deps.alarms)
  }

  get leaf(): Certificate | null {
    return this.#inForce?.set.chain[0] ?? null
  }

  get pem(): string {
    return this.#inForce?.set.certificatePem ?? ''
  }

  get context(): SecureContext | null {
    return this.#inForce?.context ?? null
  }

  /**
   * Reads files that have changed and then stayed unchanged, and warns before expiry. Never throws.
   */
  look(): void {
    if (this.#files.areDue()) this.#attempt()
    this.#reportExpiry()
  }

  /**
   * Reads the files immediately.
   * @throws {CertificateError | SecretFileError} when the files are rejected.
   */
  reload(): void {
    this.#files.judge(() => {
      this.#take(readServerCertificate(this.paths, this.#deps.clock.nowMs()))
    })
    this.#reportExpiry()
  }

  /** Clears the alarms of this certificate. Called when the configuration no longer contains it. */
  release(): void {
    this.#files.release()
    this.#deps.alarms.clear('CERTIFICATE_EXPIRES', this.paths.cert)
  }

  view(): ServerCertificateStatus {
    const [certificate = null] =
      this.#inForce === null ? [] : inspectChain(this.#inForce.set.chain, [], this.#nowMs)
    return { path: this.paths.cert, certificate, refused: this.#files.refusal }
  }

  #attempt(): void {
    try {
      this.reload()
    } catch (error) {
      const message = `server certificate rejected: ${errorMessage(error)}; ${this.#consequence}`
      this.#deps.log.error(fileFaultFields(error), message)
    }
  }

  get #consequence(): string {
    return this.leaf === null
      ? 'clients that ask for its names get the certificate of the controller'
      : 'keeping the current one'
  }

  #take(set: ServerCertificateSet): void {
    const { certificatePem: cert, privateKeyPem: key } = set
    const before = this.#inForce?.set
    if (before?.certificatePem === cert && before.privateKeyPem === key) return
    this.#inForce = { set, context: createSecureContext({ ...listenerTlsOptions, cert, key }) }
    const [leaf] = set.chain
    const names = [...leaf.dnsNames, ...leaf.ipAddresses].slice(0, 16)
    const message = `server certificate in use: expires at ${isoTime(leaf.notAfterMs)}`
    this.#deps.log.info({ path: this.paths.cert, names }, message)
  }

  #reportExpiry(): void {
    const { alarms } = this.#deps
    const { cert } = this.paths
    const life = this.leaf === null ? null : certificateLifetime(this.leaf, this.#nowMs)
    const text = life === null ? null : serverExpirySentence(life, cert)
    if (text === this.#alarm) return
    this.#alarm = text
    if (text === null) alarms.clear('CERTIFICATE_EXPIRES', cert)
    else alarms.raise('CERTIFICATE_EXPIRES', { sentences: [text], path: cert })
  }

  get #nowMs(): number {
    return this.#deps.clock.nowMs()
  }
}

function pathsKey({ cert, key }: ServerCertificatePaths): string {
  return `${cert}\n${key}`
}

/**
 * Server certificates from other authorities. The client's server name (SNI) selects one of them.
 * They have no other effect: the controller accepts no client certificate of their authorities. A
 * name in the controller's own certificate always gets the controller's certificate, because its
 * key signs enrollment tokens.
 */
export class ServerCertificates {
  #all: readonly ServerCertificate[]
  readonly #deps: ServerCertificateDeps
  readonly #ownLeaf: () => Certificate
  #stopTimer: (() => void) | null = null

  constructor(
    options: ServerCertificateDeps & {
      readonly files: readonly ServerCertificatePaths[]
      readonly ownLeaf: () => Certificate
    },
  ) {
    this.#deps = options
    this.#ownLeaf = options.ownLeaf
    this.#all = options.files.map((paths) => new ServerCertificate(paths, options))
  }

  get all(): readonly ServerCertificate[] {
    return this.#all
  }

  /**
   * Replaces the list of certificates. Certificates that are in both lists stay in use; new ones
   * are read by `reload`.
   */
  configure(files: readonly ServerCertificatePaths[]): void {
    const kept = new Map(this.#all.map((one) => [pathsKey(one.paths), one]))
    const before = this.#all
    this.#all = files.map(
      (paths) => kept.get(pathsKey(paths)) ?? new ServerCertificate(paths, this.#deps),
    )
    for (const one of before) if (!this.#all.includes(one)) one.release()
    this.start()
  }

  start(): void {
    if (this.#all.length === 0) return
    this.#stopTimer ??= periodicScheduler.every(LOOK_MS, () => this.look())
  }

  stop(): void {
    this.#stopTimer?.()
    this.#stopTimer = null
  }

  look(): void {
    for (const one of this.#all) one.look()
  }

  /**
   * Reads the files of all server certificates again, and uses the valid certificates.
   * @returns the files of each invalid certificate.
   */
  reload(): RejectedFiles[] {
    return this.#all.flatMap((one) => {
      try {
        one.reload()
        return []
      } catch (error) {
        return [{ paths: [one.paths.cert, one.paths.key], error }]
      }
    })
  }

  /**
   * The certificate for a server name.
   * @param name the client's server name (SNI).
   * @returns null: the controller's own certificate applies.
   */
  contextFor(name: string): SecureContext | null {
    // @guard certificate-of-the-web-authority--names
    if (missingHosts(this.#ownLeaf(), [name]).length === 0) return null
    const found = this.#all.find(
      ({ leaf }) => leaf !== null && missingHosts(leaf, [name]).length === 0,
    )
    return found?.context ?? null
  }

  view(): ServerCertificateStatus[] {
    return this.#all.map((one) => one.view())
  }
}
