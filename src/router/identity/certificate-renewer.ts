import type { Clock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { type Certificate, checkKeyMatches, parseCertificates } from '../../pki/certificate.ts'
import { certificatesPem } from '../../pki/verify/identity-files.ts'
import { writePublicFile } from '../../pki/secret-file.ts'
import { certificateLifetime } from '../../pki/authority/renewal.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import { certificateLimits } from './limits.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import { findIdentityFiles } from './identity-files.ts'
import type { ReloadableIdentity, RouterIdentity } from './reloadable-identity.ts'
import { createCertificateRequests, type CertificateRequests } from './certificate-requests.ts'
import { isoTime } from '../../lib/text/format-time.ts'

/**
 * Sends the certificate requests to one controller's client API. Throws an error whose message is a
 * clause to be used within a sentence.
 * @returns PEM chains, leaf certificate first.
 */
export type SendRenewal = (
  api: string,
  requests: CertificateRequests,
  identity: RouterIdentity,
) => Promise<{ readonly cert: string; readonly serverCert: string }>

interface RouterCertificateRenewerDeps {
  readonly config: RouterConfig
  readonly holder: ReloadableIdentity
  readonly clock: Clock
  readonly log: ProgramLogger
  /** Null if the router cannot send HTTP requests, and thus cannot renew certificates. */
  readonly ask: SendRenewal | null
  readonly apis: () => readonly string[]
  readonly onExtended: (api: string) => void
}

const NO_APIS =
  'the certificates are due, and cannot be extended: no controller has sent the address of its client API. Check that a controller is reached; controllers of OpenZiti and of 0.2.0 send none, so enroll this router again or upgrade them'

/** Extends the certificates of a running router before they expire, with the same keys. */
export class RouterCertificateRenewer {
  readonly #deps: RouterCertificateRenewerDeps
  #timer: NodeJS.Timeout | null = null
  /** True if the certificates must be renewed even if they are not due. */
  #isForced = false
  #isStopped = false
  #logged = ''
  /** Result of the last attempt; null before the first one. */
  #isDone: boolean | null = null

  constructor(deps: RouterCertificateRenewerDeps) {
    this.#deps = deps
  }

  /** @param isForced true: renew immediately, regardless of the remaining lifetime. */
  start(isForced: boolean): void {
    this.#isForced = isForced
    void this.#judge()
  }

  /** Tries again immediately, because the router has learned more addresses of client APIs. */
  wake(): void {
    if (this.#isStopped || this.#timer === null || this.#isDone !== false) return
    clearTimeout(this.#timer)
    this.#timer = null
    void this.#judge()
  }

  stop(): void {
    this.#isStopped = true
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  async #judge(): Promise<void> {
    const { clock, holder } = this.#deps
    const identity = holder.current()
    const leaves = [identity.leaf, ...(identity.server === null ? [] : [identity.server.leaf])]
    const renewAtMs = Math.min(
      ...leaves.map((leaf) => certificateLifetime(leaf, clock.nowMs()).renewAtMs),
    )
    const isDue = this.#isForced || clock.nowMs() >= renewAtMs
    const isDone = !isDue || (await this.#extend(identity))
    if (this.#isStopped) return
    this.#isDone = isDone
    if (isDone) this.#isForced = false
    const { certificatesJudgedEveryMs, extensionAgainMs } = certificateLimits
    // Short-lived certificates may be due before the next regular check, so this makes the next
    // check earlier.
    const leftMs = Math.max(1000, renewAtMs - clock.nowMs())
    const waitMs = isDone
      ? Math.min(certificatesJudgedEveryMs, isDue ? certificatesJudgedEveryMs : leftMs)
      : Math.min(extensionAgainMs, leftMs + 1000)
    this.#timer = setTimeout(() => {
      this.#timer = null
      void this.#judge()
    }, waitMs)
  }

  /** @returns true if the certificates need no further attempt. */
  async #extend(identity: RouterIdentity): Promise<boolean> {
    const { apis } = this.#deps
    const obstacle = this.#obstacle()
    if (obstacle !== null) {
      this.#warnOnce(`the certificates are due, and cannot be extended: ${obstacle}`)
      return false
    }
    if (apis().length === 0) {
      // No warning directly after the start, because controllers have not sent their addresses yet.
      if (this.#isDone !== null) this.#warnOnce(NO_APIS)
      return false
    }
    const failures: string[] = []
    for (const api of apis()) {
      try {
        await this.#extendAt(api, identity)
        this.#logged = ''
        return true
      } catch (error) {
        failures.push(`${api}: ${errorMessage(error)}`)
      }
    }
    this.#warnOnce(
      'certificates not extended; asking again each minute until they expire',
      failures,
    )
    return false
  }

  #obstacle(): string | null {
    const { config, ask } = this.#deps
    const files = findIdentityFiles(config)
    if (config.csr === null) return 'the configuration has no csr'
    if (!files.ok) return files.fault
    return ask === null ? 'this program was started without a way to ask' : null
  }

  #warnOnce(sentence: string, failures: readonly string[] = []): void {
    const text = [sentence, ...failures].join(' ')
    if (text === this.#logged) return
    this.#logged = text
    this.#deps.log.warn(failures.length === 0 ? {} : { failures }, sentence)
  }

  async #extendAt(api: string, identity: RouterIdentity): Promise<void> {
    const { config, ask, log, onExtended } = this.#deps
    const files = findIdentityFiles(config)
    const { csr } = config
    if (ask === null || csr === null || !files.ok) return
    const serverKeyPem = identity.server?.privateKeyPem ?? identity.privateKeyPem
    const requests = await createCertificateRequests({
      routerId: identity.id,
      csr,
      privateKeyPem: identity.privateKeyPem,
      serverKeyPem,
    })
    const { cert, serverCert } = await ask(api, requests, identity)
    const client = judged(cert, identity.privateKeyPem)
    const server = judged(serverCert, serverKeyPem)
    if (client[0].commonName !== identity.id) {
      throw new Error('it issued a certificate for another router')
    }
    // The client certificate is written first, because controllers may no longer accept the
    // previous one.
    writePublicFile(files.files.cert, certificatesPem(client))
    writePublicFile(files.files.serverCert, certificatesPem(server))
    log.info({ api, notAfter: isoTime(client[0].notAfterMs) }, 'certificates extended')
    onExtended(api)
  }
}

/** The chain, after checking that it fits the key. @throws {CertificateError} */
function judged(pem: string, privateKeyPem: string): [Certificate, ...Certificate[]] {
  const chain = parseCertificates(pem)
  checkKeyMatches(chain[0], privateKeyPem)
  return chain
}
