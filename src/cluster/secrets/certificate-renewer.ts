import { fileFaultFields } from '../../pki/file-fault.ts'
import { periodicScheduler } from '../../lib/periodic-scheduler.ts'
import type { Clock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/error-code.ts'
import {
  type CertificateWithKey,
  issueControllerCertificateForKey,
  LEAF_LIFETIME_MS,
} from '../../pki/authority/authority.ts'
import {
  CertificateError,
  checkCertificateChain,
  parseCertificates,
} from '../../pki/certificate.ts'
import {
  type IdentityOwner,
  type IdentityPaths,
  type IdentityFileContents,
  readIdentitySet,
} from '../../pki/verify/identity-files.ts'
import { inspectChain, type InspectedCertificate } from '../../pki/authority/inspection.ts'
import { writePublicFile } from '../../pki/secret-file.ts'
import {
  certificateHealth,
  type CertificateHealth,
  certificateLifetime,
  expirySentence,
  isIssuerName,
  missingHosts,
  renewalReason,
  type RenewalReason,
  limitValidity,
} from '../../pki/authority/renewal.ts'
import type { AlarmRaiser } from '../alarm-table.ts'
import type { Logger } from '../logger.ts'
import type { MeshIdentity } from '../mesh/mesh-service.ts'
import { CertificateFileWatcher } from './certificate-file-watcher.ts'
import { isoTime } from '../../lib/text/format-time.ts'

/**
 * Interval at which the certificate and its files are checked. Changed files are read once they
 * have stayed unchanged for one interval.
 */
const LOOK_MS = 5_000
/** Delay after a failed renewal. */
const RETRY_MS = 60_000

interface CertificateRenewerDeps {
  readonly selfId: string
  readonly trustDomain: string
  readonly paths: IdentityPaths
  /** DNS names and IP addresses that the leaf must contain, as known at the start. */
  readonly hosts: readonly string[]
  /** Identity at the start of the controller: read from `paths` and checked. */
  readonly identity: MeshIdentity
  /** Issuing authority of the cluster; null until this controller knows it. */
  readonly issuing: () => CertificateWithKey | null
  /** Installs another leaf for new connections; open ones continue with the previous leaf. */
  readonly onRenewed: (identity: MeshIdentity) => void
  readonly alarms: AlarmRaiser
  readonly clock: Clock
  readonly log: Logger
}

interface CertificatesView {
  /** The leaf certificate of this controller, then the authorities above it. */
  readonly certificates: readonly InspectedCertificate[]
  /** Certificate of the current issuing authority (PEM); null when unknown. */
  readonly issuingPem: string | null
  /**
   * True if this controller renews the leaf. False if another authority issued it, so that an
   * operator must renew it, and while this controller does not know the issuing authority.
   */
  readonly isRenewedHere: boolean
  /** Time of the automatic renewal, UTC ms; null if `isRenewedHere` is false. */
  readonly renewAtMs: number | null
  /** Reason why the controller rejected the files; null if it did not reject them. */
  readonly refused: string | null
  readonly alarm: string | null
}

/**
 * Keeps the certificate of this controller valid. If the cluster's issuing authority signed it,
 * this class renews it: some time before it expires, when it lacks a host, and when the authority
 * has changed. The key stays the same, because other members pin it. If another authority signed
 * it, this class only watches the files and uses changed files once certificate and key match.
 */
export class CertificateRenewer {
  readonly #deps: CertificateRenewerDeps
  readonly #owner: IdentityOwner
  #set: IdentityFileContents
  #hosts: readonly string[]
  readonly #files: CertificateFileWatcher
  #alarm: string | null = null
  #retryAtMs = Number.NEGATIVE_INFINITY
  #stopTimer: (() => void) | null = null
  /** The step in progress; steps run one after another. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(deps: CertificateRenewerDeps) {
    this.#deps = deps
    const { hosts, identity, selfId, trustDomain } = deps
    this.#hosts = hosts
    const chain = parseCertificates(identity.certificatePem)
    const anchors = parseCertificates(identity.caPem, { certificatesMax: 256 })
    this.#owner = { id: selfId, trustDomain, publicKeySha256: chain[0].publicKeySha256 }
    this.#set = { ...identity, chain, anchors }
    // The files may have changed since `identity` was read, so the first check reads them again.
    this.#files = new CertificateFileWatcher(deps.paths, deps.alarms)
  }

  start(): void {
    void this.look()
    this.#stopTimer = periodicScheduler.every(LOOK_MS, () => void this.look())
  }

  /** Resolves when no step is in progress. */
  async stop(): Promise<void> {
    this.#stopTimer?.()
    this.#stopTimer = null
    await this.#last
  }

  /** Reads changed files, renews a due certificate, and warns before expiry. Never rejects. */
  async look(): Promise<void> {
    try {
      await this.#inTurn(async () => {
        this.#reloadChanged()
        await this.#renewDue()
        this.#reportExpiry()
      })
    } catch (error) {
      this.#deps.log.error({ err: error }, 'certificate check failed')
    }
  }

  /**
   * Replaces the hosts that the leaf must contain, and renews the leaf if it lacks any of them. If
   * this controller does not renew the leaf, logs a warning instead. Never rejects.
   */
  async requireHosts(hosts: readonly string[]): Promise<void> {
    this.#hosts = hosts
    await this.look()
    const missing = missingHosts(this.#set.chain[0], hosts)
    if (missing.length === 0 || this.#isRenewedHere(this.#deps.issuing())) return
    this.#deps.log.warn(
      { hosts: missing },
      'the certificate lacks hosts of the configuration, and clients would reject it there; have its issuer renew it for the same key, with these hosts',
    )
  }

  /**
   * Renews the leaf immediately, even if it is not due.
   * @throws {CertificateError} one sentence; nothing has changed then.
   */
  async renew(): Promise<void> {
    await this.#inTurn(async () => {
      const issuing = this.#deps.issuing()
      if (issuing === null) {
        throw new CertificateError(
          'untrusted',
          'the issuing authority of the cluster is not known here yet; retry once this controller has caught up',
        )
      }
      if (!isIssuerName(this.#set.chain[0], issuing.certificatePem)) {
        throw new CertificateError(
          'untrusted',
          'the certificate was not issued by the authority of this cluster; have its issuer renew it, for the same key',
        )
      }
      await this.#renew(issuing, 'asked-for')
      this.#reportExpiry()
    })
  }

  /**
   * Reads the files again, even if they are unchanged.
   * @throws {CertificateError | SecretFileError} when the files are rejected; the controller then
   * keeps its certificate.
   */
  async reload(): Promise<void> {
    await this.#inTurn(() => {
      this.#read()
      this.#reportExpiry()
      return Promise.resolve()
    })
  }

  health(): CertificateHealth {
    const { chain, anchors } = this.#set
    return certificateHealth({ chain, anchors, nowMs: this.#deps.clock.nowMs() })
  }

  view(): CertificatesView {
    const { chain, anchors } = this.#set
    const issuing = this.#deps.issuing()
    const nowMs = this.#deps.clock.nowMs()
    const isRenewedHere = this.#isRenewedHere(issuing)
    return {
      certificates: inspectChain(chain, anchors, nowMs),
      issuingPem: issuing?.certificatePem ?? null,
      isRenewedHere,
      renewAtMs: isRenewedHere ? certificateLifetime(chain[0], nowMs).renewAtMs : null,
      refused: this.#files.refusal,
      alarm: this.#alarm,
    }
  }

  /** CA certificates for verifying peers. */
  get anchors(): IdentityFileContents['anchors'] {
    return this.#set.anchors
  }

  get leaf(): IdentityFileContents['chain'][0] {
    return this.#set.chain[0]
  }

  async #inTurn(step: () => Promise<void>): Promise<void> {
    const turn = this.#last.then(step)
    this.#last = turn.catch(() => undefined)
    await turn
  }

  #isRenewedHere(issuing: CertificateWithKey | null): boolean {
    return issuing !== null && isIssuerName(this.#set.chain[0], issuing.certificatePem)
  }

  #reloadChanged(): void {
    if (!this.#files.areDue()) return
    try {
      this.#read()
    } catch (error) {
      this.#deps.log.error(
        fileFaultFields(error),
        `certificate files rejected: ${errorMessage(error)}; keeping the current ones until a restart`,
      )
    }
  }

  #read(): void {
    this.#files.judge(() => {
      const set = readIdentitySet(this.#deps.paths, this.#owner, this.#deps.clock.nowMs())
      if (isSameSet(set, this.#set)) return
      this.#take(set)
      this.#deps.log.info({}, `certificate files reloaded: ${endOf(set)}`)
    })
  }

  async #renewDue(): Promise<void> {
    const { clock, log } = this.#deps
    const issuing = this.#deps.issuing()
    if (issuing === null || !this.#isRenewedHere(issuing)) return
    // The controller does not overwrite an operator's invalid files; the operator must replace
    // them.
    if (this.#files.refusal !== null || clock.monotonicMs() < this.#retryAtMs) return
    // The controller does not overwrite new files before it has checked them.
    if (!this.#files.areJudged) return
    const reason = renewalReason({
      chain: this.#set.chain,
      issuingPem: issuing.certificatePem,
      hosts: this.#hosts,
      nowMs: clock.nowMs(),
    })
    if (reason === null) return
    try {
      await this.#renew(issuing, reason)
    } catch (error) {
      this.#retryAtMs = clock.monotonicMs() + RETRY_MS
      const message = `certificate renewal failed (${reason}): ${errorMessage(error)}`
      log.error({ err: error }, message)
    }
  }

  async #renew(issuing: CertificateWithKey, reason: RenewalReason): Promise<void> {
    const { clock, paths, log, selfId, trustDomain } = this.#deps
    const { chain, anchors } = this.#set
    const [leaf] = chain
    const nowMs = clock.nowMs()
    const validity = validityOf(issuing, nowMs)
    const certificatePem = await issueControllerCertificateForKey({
      issuer: issuing,
      trustDomain,
      id: selfId,
      hosts: [...new Set([...leaf.dnsNames, ...leaf.ipAddresses, ...this.#hosts])],
      publicKeySpki: Uint8Array.from(leaf.native.publicKey.export({ type: 'spki', format: 'der' })),
      validity,
    })
    const next = parseCertificates(certificatePem)
    // The new certificate gets the same checks as peers will make, before it replaces a valid one.
    checkCertificateChain(next, anchors, nowMs)
    writePublicFile(paths.cert, certificatePem)
    this.#files.accept()
    const set = { ...this.#set, chain: next, certificatePem }
    this.#take(set)
    log.info({ reason }, `certificate renewed: ${endOf(set)}`)
  }

  #take(set: IdentityFileContents): void {
    this.#set = set
    const { certificatePem, privateKeyPem, caPem } = set
    this.#deps.onRenewed({ certificatePem, privateKeyPem, caPem })
  }

  #reportExpiry(): void {
    const isRenewedHere = this.#isRenewedHere(this.#deps.issuing())
    const { leaf, authorities } = this.health()
    const sentences = [leaf, ...authorities]
      .map((life) => expirySentence(life, isRenewedHere))
      .filter((sentence) => sentence !== null)
    const text = sentences.length === 0 ? null : sentences.join('. ')
    if (text === this.#alarm) return
    // `Alarms` logs a raised alarm only once, so this line logs a changed text.
    if (text !== null && this.#alarm !== null) this.#deps.log.warn({}, text)
    this.#alarm = text
    if (text === null) this.#deps.alarms.clear('CERTIFICATE_EXPIRES')
    else this.#deps.alarms.raise('CERTIFICATE_EXPIRES', { sentences })
  }
}

/**
 * Validity period of a new leaf.
 * @throws {CertificateError} when the authority has expired.
 */
function validityOf(issuing: CertificateWithKey, nowMs: number): ReturnType<typeof limitValidity> {
  const [issuer] = parseCertificates(issuing.certificatePem)
  const validity = limitValidity(issuer, nowMs, LEAF_LIFETIME_MS)
  if (validity.notAfterMs > nowMs) return validity
  throw new CertificateError(
    'expired',
    `the issuing authority of the cluster expired at ${isoTime(issuer.notAfterMs)}; run 'flotilla pki renew-issuing' with the root key`,
  )
}

function isSameSet(a: IdentityFileContents, b: IdentityFileContents): boolean {
  const printOf = ({ chain, anchors, privateKeyPem }: IdentityFileContents): string =>
    [...chain, '', ...anchors, privateKeyPem]
      .map((one) => (typeof one === 'string' ? one : one.sha256))
      .join(' ')
  return printOf(a) === printOf(b)
}

function endOf({ chain }: IdentityFileContents): string {
  return `expires at ${isoTime(chain[0].notAfterMs)}`
}
