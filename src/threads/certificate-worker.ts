import { requirePresent } from '../lib/assert.ts'
import type { Clock } from '../lib/clock.ts'
import { Problem } from '../lib/problems.ts'
import type { CertificateIssueOrder, IssuingSettings } from '../pki/authority/issue-certificates.ts'
import type {
  CertificateIssuer,
  ExtensionCertificateRequest,
  IdentityCertificateRequest,
  IssuedCertificate,
  RouterCertificatePair,
  RouterCertificateRequest,
  SessionCertificateRequest,
} from '../ports/certificate-issuer.ts'
import type { AuthorityKey, CertificateCommand, CertificateResult } from './certificate-messages.ts'
import { TaskLimitError, WorkerQueue } from './worker-queue.ts'

export interface CertificateWorkerLimits {
  /**
   * Maximum processor time and maximum elapsed time of one certificate order; if an order takes
   * more, a new thread replaces the thread.
   */
  readonly certificateMsMax: number
  /** Maximum wait of a certificate order in the queue; an order that waits longer is refused. */
  readonly certificateWaitMsMax: number
  /** Maximum certificate orders in the queue, in total for all callers. */
  readonly certificatesWaitingMax: number
}

interface CertificateWorkerDeps {
  readonly limits: CertificateWorkerLimits
  readonly settings: IssuingSettings
  /**
   * Returns the current authority; null while this controller has none. Called for each order,
   * because a rotation may have replaced the authority.
   */
  readonly authority: () => AuthorityKey | null
  readonly clock: Clock
}

/** Heap limit of the certificate thread. */
const HEAP_MEGABYTES_MAX = 64
/**
 * Maximum orders in the thread at a time: enough that it rarely waits for the next order, and few
 * enough that the queue serves callers round robin.
 */
const IN_THREAD_MAX = 8

type IssuedCertificates = readonly [IssuedCertificate, ...IssuedCertificate[]]

/** Issues certificates in a separate thread. */
export class CertificateWorker implements CertificateIssuer {
  readonly #deps: CertificateWorkerDeps
  readonly #queue: WorkerQueue<CertificateCommand, CertificateResult>

  constructor(deps: CertificateWorkerDeps) {
    const { certificateMsMax, certificateWaitMsMax, certificatesWaitingMax } = deps.limits
    this.#deps = deps
    this.#queue = new WorkerQueue({
      thread: 'certificate',
      workerData: deps.settings,
      heapMegabytesMax: HEAP_MEGABYTES_MAX,
      inThreadMax: IN_THREAD_MAX,
      limits: {
        taskMsMax: certificateMsMax,
        lateMsMax: certificateMsMax,
        waitMsMax: certificateWaitMsMax,
        waitingMax: certificatesWaitingMax,
      },
      clock: deps.clock,
    })
  }

  async identity(order: IdentityCertificateRequest, caller: string): Promise<IssuedCertificate> {
    return (await this.#issue({ kind: 'identity', ...order }, caller))[0]
  }

  async extend(order: ExtensionCertificateRequest, caller: string): Promise<IssuedCertificate> {
    return (await this.#issue({ kind: 'extension', ...order }, caller))[0]
  }

  async session(order: SessionCertificateRequest, caller: string): Promise<IssuedCertificate> {
    return (await this.#issue({ kind: 'session', ...order }, caller))[0]
  }

  async router(order: RouterCertificateRequest, caller: string): Promise<RouterCertificatePair> {
    const [client, server] = await this.#issue({ kind: 'router', ...order }, caller)
    return { client, server: requirePresent(server, 'a router has two certificates') }
  }

  close(): Promise<void> {
    return this.#queue.close()
  }

  async #issue(order: CertificateIssueOrder, caller: string): Promise<IssuedCertificates> {
    this.#authority()
    const result = await this.#queue
      .run(caller, () => {
        const { certificatePem, privateKeyPem } = this.#authority()
        const nowMs = this.#deps.clock.nowMs()
        return { order, nowMs, authority: { certificatePem, privateKeyPem } }
      })
      .catch((error: unknown) => {
        throw error instanceof TaskLimitError ? this.#timeout(error) : error
      })
    if (result.type === 'refused') throw toCertificateProblem(result)
    return result.certificates
  }

  #authority(): AuthorityKey {
    const authority = this.#deps.authority()
    if (authority !== null) return authority
    const detail =
      'this controller does not have the issuing authority; retry, or use another controller'
    throw new Problem('PEER_UNREACHABLE', { detail, retryAfterSeconds: 1 })
  }

  #timeout({ reason }: TaskLimitError): Problem {
    const detail =
      reason === 'not started'
        ? 'the controller is too busy to issue certificates now'
        : `the certificate was not issued within ${this.#deps.limits.certificateMsMax} ms`
    return new Problem('TIMEOUT', { detail })
  }
}

/** Turns the result of a failed order into the error that the API caller receives. */
export function toCertificateProblem({
  fault,
  reason,
}: Extract<CertificateResult, { readonly type: 'refused' }>): Problem {
  const code = fault === 'expired' ? 'CERTIFICATE_REFUSED' : 'COULD_NOT_PROCESS_CSR'
  return new Problem(code, { detail: reason })
}
