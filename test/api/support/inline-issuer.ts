import type { Clock } from '../../../src/lib/clock.ts'
import { requirePresent } from '../../../src/lib/assert.ts'
import type { CertificateWithKey } from '../../../src/pki/authority/authority.ts'
import type {
  CertificateIssueOrder,
  IssuingSettings,
} from '../../../src/pki/authority/issue-certificates.ts'
import type {
  CertificateIssuer,
  ExtensionCertificateRequest,
  IdentityCertificateRequest,
  IssuedCertificate,
  RouterCertificatePair,
  RouterCertificateRequest,
  SessionCertificateRequest,
} from '../../../src/ports/certificate-issuer.ts'
import type { Problem } from '../../../src/lib/problems.ts'
import { CertificateCommandExecutor } from '../../../src/threads/certificate-messages.ts'
import { toCertificateProblem } from '../../../src/threads/certificate-worker.ts'

export const testTrustDomain = 'test.internal'

/** Issues certificates immediately in this thread, by the same code as the certificate thread. */
export class InlineIssuer implements CertificateIssuer {
  readonly #authority: CertificateWithKey
  readonly #commands: CertificateCommandExecutor
  readonly #clock: Clock
  /** Error to throw instead of returning a certificate. */
  refusal: Problem | null = null
  /** Requests for certificates, in order. */
  readonly orders: CertificateIssueOrder[] = []

  constructor(authority: CertificateWithKey, settings: IssuingSettings, clock: Clock) {
    this.#authority = authority
    this.#commands = new CertificateCommandExecutor(settings)
    this.#clock = clock
  }

  async identity(order: IdentityCertificateRequest): Promise<IssuedCertificate> {
    return (await this.#issue({ kind: 'identity', ...order }))[0]
  }

  async extend(order: ExtensionCertificateRequest): Promise<IssuedCertificate> {
    return (await this.#issue({ kind: 'extension', ...order }))[0]
  }

  async session(order: SessionCertificateRequest): Promise<IssuedCertificate> {
    return (await this.#issue({ kind: 'session', ...order }))[0]
  }

  async router(order: RouterCertificateRequest): Promise<RouterCertificatePair> {
    const [client, server] = await this.#issue({ kind: 'router', ...order })
    return { client, server: requirePresent(server, 'a router has two certificates') }
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  #issue(
    order: CertificateIssueOrder,
  ): Promise<readonly [IssuedCertificate, ...IssuedCertificate[]]> {
    this.orders.push(order)
    if (this.refusal !== null) return Promise.reject(this.refusal)
    const [authority, nowMs] = [this.#authority, this.#clock.nowMs()]
    const result = this.#commands.carryOut({ order, nowMs, authority })
    return result.type === 'issued'
      ? Promise.resolve(result.certificates)
      : Promise.reject(toCertificateProblem(result))
  }
}
