import type { Clock } from '../lib/clock.ts'
import { errorMessage } from '../lib/error-code.ts'
import { isoTime } from '../lib/text/format-time.ts'
import type { ProgramLogger } from '../overlay/logger.ts'
import {
  type ApiLogInResult,
  type ControllerApi,
  objectOrEmpty,
  LogInRefusedError,
  readRecords,
  readTextField,
} from './controller-api.ts'
import type { IdentityCertificate } from './identity-certificate.ts'
import { tunnelLimits } from './limits.ts'

interface IdentityCertificateRenewerDeps {
  readonly api: ControllerApi
  readonly certificate: IdentityCertificate
  readonly clock: Clock
  readonly log: ProgramLogger
  /** True: renews the certificate once, even if renewal is not due. */
  readonly isForced?: boolean
}

const { certificateJudgedEveryMs, renewedAgainMs, reasonCharactersMax } = tunnelLimits
const AUTHENTICATORS = '/current-identity/authenticators'

/**
 * Renews the certificate of an identity before it expires, with the same key. The controllers
 * accept a renewed certificate, and refuse the earlier one, once this program confirms it. The
 * program writes the certificate to its file before the confirmation, so it has a valid certificate
 * even if it stops at any point.
 */
export class IdentityCertificateRenewer {
  readonly #deps: IdentityCertificateRenewerDeps
  #isForced: boolean
  #judgeAtMs = -Infinity
  #logged = ''

  constructor(deps: IdentityCertificateRenewerDeps) {
    this.#deps = deps
    this.#isForced = deps.isForced === true
  }

  /**
   * Logs in. If the controllers refuse the certificate in use, logs in with the renewed certificate
   * in the file, if there is one.
   */
  async logIn(): Promise<ApiLogInResult> {
    const { api, certificate } = this.#deps
    try {
      return await api.logIn()
    } catch (error) {
      const { renewed } = certificate
      if (!(error instanceof LogInRefusedError) || renewed === null) throw error
      return await this.#logInWith(renewed.certificatePem, error)
    }
  }

  /**
   * Renews the certificate if renewal is due or forced, or if an earlier renewal is not confirmed.
   * Needs a session; logs the reason if a renewal fails.
   */
  async judge(identityId: string): Promise<void> {
    const { clock, certificate } = this.#deps
    if (clock.monotonicMs() < this.#judgeAtMs) return
    const leftMs = certificate.renewAtMs - clock.nowMs()
    if (!this.#isForced && certificate.renewed === null && leftMs > 0) {
      this.#judgeIn(Math.min(certificateJudgedEveryMs, leftMs))
      return
    }
    try {
      await this.#renew(identityId)
      this.#isForced = false
      this.#logged = ''
      this.#judgeIn(certificateJudgedEveryMs)
    } catch (error) {
      this.#warnOnce(errorMessage(error).slice(0, reasonCharactersMax))
      this.#judgeIn(renewedAgainMs)
    }
  }

  #judgeIn(waitMs: number): void {
    this.#judgeAtMs = this.#deps.clock.monotonicMs() + waitMs
  }

  #warnOnce(reason: string): void {
    const notAfter = isoTime(this.#deps.certificate.notAfterMs)
    if (reason === this.#logged) return
    this.#logged = reason
    this.#deps.log.warn({ reason, notAfter }, 'certificate not renewed; trying again each minute')
  }

  async #logInWith(certificatePem: string, refusal: LogInRefusedError): Promise<ApiLogInResult> {
    const { api, certificate } = this.#deps
    api.useCertificate(certificatePem)
    try {
      const session = await api.logIn()
      this.#adopt()
      return session
    } catch (error) {
      api.useCertificate(certificate.credential.certificatePem)
      throw error instanceof LogInRefusedError ? refusal : error
    }
  }

  async #renew(identityId: string): Promise<void> {
    const { api, certificate } = this.#deps
    const { id, fingerprint } = await this.#authenticator()
    // The controller has already applied an earlier confirmation, but its response was lost.
    if (fingerprint === certificate.renewed?.fingerprint) {
      this.#adopt()
      return
    }
    const clientCertCsr = await certificate.request(identityId)
    const answer = objectOrEmpty(
      await api.post(`${AUTHENTICATORS}/${id}/extend`, { clientCertCsr }),
    )
    const clientCert = readTextField(answer, 'clientCert')
    // Stores the certificate before the confirmation, because after it the controllers refuse the
    // earlier certificate.
    certificate.store(clientCert)
    await api.post(`${AUTHENTICATORS}/${id}/extend-verify`, { clientCert })
    this.#adopt()
  }

  #adopt(): void {
    const { api, certificate, log } = this.#deps
    try {
      certificate.adopt()
    } finally {
      api.useCertificate(certificate.credential.certificatePem)
    }
    log.info({ notAfter: isoTime(certificate.notAfterMs) }, 'certificate renewed')
  }

  /**
   * The controller's record of the certificate in use or, if it was confirmed, of the renewed one.
   */
  async #authenticator(): Promise<{ readonly id: string; readonly fingerprint: string }> {
    const { api, certificate } = this.#deps
    const known = [certificate.fingerprint, certificate.renewed?.fingerprint]
    const own = readRecords(await api.get(AUTHENTICATORS)).find((record) =>
      known.includes(readTextField(record, 'fingerprint')),
    )
    if (own === undefined) throw new Error('the identity has another certificate')
    if (own['isIssuedByNetwork'] !== true) {
      throw new Error('the network did not issue it, so its own authority must renew it')
    }
    return { id: readTextField(own, 'id'), fingerprint: readTextField(own, 'fingerprint') }
  }
}
