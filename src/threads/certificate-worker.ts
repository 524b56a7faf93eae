import { Worker } from 'node:worker_threads'

import { present } from '../lib/assert.ts'
import type { Clock } from '../lib/clock.ts'
import { FairQueue } from '../lib/bounds/fair-queue.ts'
import { Problem } from '../lib/problems.ts'
import type { CertificateOrder, IssuingSettings } from '../pki/authority/certificate-order.ts'
import type {
  CertificateIssuer,
  ExtensionOrder,
  IdentityOrder,
  IssuedCertificate,
  RouterCertificatePair,
  RouterOrder,
  SessionOrder,
} from '../ports/certificate-issuer.ts'
import type {
  CertificateCommand,
  CertificateReport,
  CertificateResult,
} from './certificate-messages.ts'
import { heapLimits, threadFile } from './thread-file.ts'

export interface CertificateWorkerLimits {
  /** One order at work; beyond it the thread is ended and another takes its place. */
  readonly certificateMsMax: number
  /** In line; who has waited for longer is sent away. */
  readonly certificateWaitMsMax: number
  /** Orders in line, of all callers. */
  readonly certificatesWaitingMax: number
}

export interface AuthorityKey {
  readonly certificatePem: string
  readonly privateKeyPem: string
}

export interface CertificateWorkerParts {
  readonly limits: CertificateWorkerLimits
  readonly settings: IssuingSettings
  /**
   * The authority in force, null while this controller holds none. Asked at each order, as it is
   * rotated.
   */
  readonly authority: () => AuthorityKey | null
  readonly clock: Clock
}

/** Of the thread's heap. */
const HEAP_MEGABYTES_MAX = 64
/** From its start until it can work; a machine under load takes its time. */
const START_MS_MAX = 8_000
/**
 * Orders that are in the thread at a time: it has the next one when it is done with one, and
 * callers still take turns.
 */
const IN_THREAD_MAX = 8

interface Job {
  readonly order: CertificateOrder
  readonly queuedAtMs: number
  readonly resolve: (certificates: readonly [IssuedCertificate, ...IssuedCertificate[]]) => void
  readonly reject: (error: Error) => void
}

/**
 * One thread, orders of callers in turn. The thread starts with the first order and keeps no
 * process alive.
 */
export class CertificateWorker implements CertificateIssuer {
  readonly #parts: CertificateWorkerParts
  readonly #queue: FairQueue<Job>
  /** In the thread, the one at work first. */
  #jobs: Job[] = []
  #worker: Worker | null = null
  #isReady = false
  /** What the thread has. */
  #authority: AuthorityKey | null = null
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(parts: CertificateWorkerParts) {
    this.#parts = parts
    this.#queue = new FairQueue(parts.limits.certificatesWaitingMax)
  }

  async identity(order: IdentityOrder, caller: string): Promise<IssuedCertificate> {
    return (await this.#issue({ kind: 'identity', ...order }, caller))[0]
  }

  async extend(order: ExtensionOrder, caller: string): Promise<IssuedCertificate> {
    return (await this.#issue({ kind: 'extension', ...order }, caller))[0]
  }

  async session(order: SessionOrder, caller: string): Promise<IssuedCertificate> {
    return (await this.#issue({ kind: 'session', ...order }, caller))[0]
  }

  async router(order: RouterOrder, caller: string): Promise<RouterCertificatePair> {
    const [client, server] = await this.#issue({ kind: 'router', ...order }, caller)
    return { client, server: present(server, 'a router has two certificates') }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const job of [...this.#takeJobs(), ...this.#queue.drain()]) job.reject(tooMany())
    const worker = this.#worker
    this.#worker = null
    await worker?.terminate()
  }

  #issue(
    order: CertificateOrder,
    caller: string,
  ): Promise<readonly [IssuedCertificate, ...IssuedCertificate[]]> {
    return new Promise((resolve, reject) => {
      const job = { order, queuedAtMs: this.#parts.clock.monotonicMs(), resolve, reject }
      if (this.#isClosed || !this.#queue.push(caller, job)) reject(tooMany())
      else this.#next()
    })
  }

  #next(): void {
    const { clock, limits } = this.#parts
    while (this.#jobs.length < IN_THREAD_MAX) {
      const job = this.#queue.shift()
      if (job === undefined) return
      if (clock.monotonicMs() - job.queuedAtMs > limits.certificateWaitMsMax) job.reject(tooMany())
      else this.#hand(job)
    }
  }

  #hand(job: Job): void {
    const authority = this.#parts.authority()
    if (authority === null) {
      job.reject(notHeld())
      return
    }
    this.#jobs.push(job)
    if (this.#worker === null) this.#start()
    else if (this.#isReady) this.#send(this.#worker, job, authority)
  }

  #start(): void {
    const worker = new Worker(threadFile('certificate'), {
      name: 'certificates',
      env: {},
      workerData: this.#parts.settings,
      resourceLimits: heapLimits(HEAP_MEGABYTES_MAX),
    })
    worker.unref()
    worker.on('message', (report: CertificateReport) => {
      if (worker === this.#worker) this.#take(worker, report)
    })
    worker.on('error', (error) => {
      this.#replace(worker, error)
    })
    worker.on('exit', (code) => {
      this.#replace(worker, new Error(`the thread of certificates has ended with code ${code}`))
    })
    this.#worker = worker
    this.#isReady = false
    this.#authority = null
    this.#setTimer(
      worker,
      START_MS_MAX,
      new Problem('TIMEOUT', { detail: 'the controller is too busy to issue certificates now' }),
    )
  }

  #take(worker: Worker, report: CertificateReport): void {
    if (report.type === 'ready') {
      this.#isReady = true
      clearTimeout(this.#timer)
      this.#timer = undefined
      this.#sendAll(worker)
    } else {
      const job = present(this.#jobs.shift(), 'the thread answers what it was asked')
      clearTimeout(this.#timer)
      this.#timer = undefined
      if (this.#jobs.length > 0) this.#watch(worker)
      settle(job, report)
    }
    this.#next()
  }

  /** A thread that took the place of another one has none of the orders yet. */
  #sendAll(worker: Worker): void {
    const jobs = this.#jobs
    this.#jobs = []
    const authority = this.#parts.authority()
    for (const job of jobs) {
      if (authority === null) job.reject(notHeld())
      else {
        this.#jobs.push(job)
        this.#send(worker, job, authority)
      }
    }
  }

  #send(worker: Worker, { order }: Job, authority: AuthorityKey): void {
    const post = (command: CertificateCommand): void => worker.postMessage(command)
    if (!isSame(authority, this.#authority)) {
      const { certificatePem, privateKeyPem } = authority
      this.#authority = { certificatePem, privateKeyPem }
      post({ type: 'authority', certificatePem, privateKeyPem })
    }
    post({ type: 'issue', order, nowMs: this.#parts.clock.nowMs() })
    if (this.#timer === undefined) this.#watch(worker)
  }

  /** The order at work has begun when the one before it was answered. */
  #watch(worker: Worker): void {
    const { certificateMsMax } = this.#parts.limits
    const late = new Problem('TIMEOUT', {
      detail: `the certificate was not issued within ${certificateMsMax} ms`,
    })
    this.#setTimer(worker, certificateMsMax, late)
  }

  #setTimer(worker: Worker, ms: number, error: Error): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#replace(worker, error)
    }, ms)
  }

  #takeJobs(): Job[] {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const jobs = this.#jobs
    this.#jobs = []
    return jobs
  }

  /**
   * What the thread was at is refused, or all that it was to do when it did not even start; the
   * rest gets a fresh thread.
   */
  #replace(worker: Worker, error: Error): void {
    if (worker !== this.#worker) return
    this.#worker = null
    worker.terminate().catch(() => undefined)
    const jobs = this.#takeJobs()
    for (const job of jobs.splice(0, this.#isReady ? 1 : jobs.length)) job.reject(error)
    for (const job of jobs) this.#hand(job)
    this.#next()
  }
}

function isSame(one: AuthorityKey, other: AuthorityKey | null): boolean {
  return one.certificatePem === other?.certificatePem && one.privateKeyPem === other.privateKeyPem
}

function settle(job: Job, result: CertificateResult): void {
  if (result.type === 'issued') job.resolve(result.certificates)
  else job.reject(problemOfRefusal(result))
}

export function problemOfRefusal({
  fault,
  reason,
}: Extract<CertificateResult, { readonly type: 'refused' }>): Problem {
  const code = fault === 'expired' ? 'CERTIFICATE_REFUSED' : 'COULD_NOT_PROCESS_CSR'
  return new Problem(code, { detail: reason })
}

function tooMany(): Problem {
  return new Problem('SERVER_TOO_MANY_REQUESTS', { retryAfterSeconds: 1 })
}

function notHeld(): Problem {
  return new Problem('PEER_UNREACHABLE', {
    detail: 'this controller does not have the issuing authority; retry, or use another controller',
    retryAfterSeconds: 1,
  })
}
