import { type Random, seededRandom } from '../../src/lib/random.ts'
import { formatUuid, newUuidv7 } from '../../src/lib/text/uuid.ts'
import { checkByIndex } from '../linearizability/by-index.ts'
import { checkBySearch } from '../linearizability/by-search.ts'
import type { Operation, Request, Scalar } from '../linearizability/history.ts'
import { type Model, register, uniqueSet } from '../linearizability/models.ts'
import { Recorder } from '../linearizability/recorder.ts'
import { print, type Verdict } from '../linearizability/verdict.ts'
import { type Answer, type Client, pause, UndeclaredAnswer } from '../process/support/client.ts'

const SERVICES = '/edge/management/v1/services'
const REGISTERS = 4
/**
 * Maximum elements of a set, which fit into one page, because pages of one list are read at
 * different times.
 */
const SET_SIZE_MAX = 200
/** Number of clients that compete for one name. */
const CLAIMANTS = 3
const THINK_MS = 20
const RETRY_MS = 20
const DEADLINE_MS = 60_000
/** Number of recorded operations at which the clients stop; the recorded ones are still checked. */
const OPERATIONS_MAX = 1_000_000

/** Responses that guarantee that the write has not taken effect and never will. */
const unchanged = new Set(['CLUSTER_NO_LEADER', 'SERVER_TOO_MANY_REQUESTS'])

type Subject = 'register' | 'set' | 'claim'

const models: Readonly<Record<Subject, Model>> = {
  register: register(0),
  set: uniqueSet(),
  claim: register(null),
}

export interface Judgement {
  readonly subject: Subject
  readonly by: 'search' | 'index'
  readonly operations: number
  readonly unknown: number
  readonly failed: number
  readonly verdict: Verdict
}

/**
 * Clients whose every operation is recorded and checked for linearizability at the end. They use
 * three kinds of objects that the API provides: a register (a field of a service, which is patched
 * and read), a set (services with one role, which are created and listed), and a claim (a name that
 * only one service can have and for which clients compete: a compare-and-set from nothing). All
 * reads are linearizable.
 */
export class RecordedLoad {
  readonly #clients: readonly Client[]
  readonly #seed: number
  readonly #ids: readonly string[]
  readonly #recorders: Readonly<Record<Subject, Recorder>>
  #value = 0
  #isOver = false
  #isPaused = false
  #busy = 0
  #failure: Error | null = null
  #workers: Promise<unknown> = Promise.resolve()

  private constructor(clients: readonly Client[], seed: number, ids: readonly string[]) {
    this.#clients = clients
    this.#seed = seed
    this.#ids = ids
    const now = (): number => performance.now()
    const recorder = (): Recorder => new Recorder({ now, operationsMax: OPERATIONS_MAX + 1000 })
    this.#recorders = { register: recorder(), set: recorder(), claim: recorder() }
  }

  /** @param clients one for each controller, logged in. */
  static async start(
    clients: readonly Client[],
    { workers, seed }: { workers: number; seed: number },
  ): Promise<RecordedLoad> {
    const ids: string[] = []
    for (let n = 1; n <= REGISTERS; n += 1) {
      const body = { name: `register-${n}`, encryptionRequired: true }
      const answer = await clients[0]?.request('POST', SERVICES, { body })
      if (answer?.status !== 201) throw new Error(`register-${n}: ${answer?.text}`)
      ids.push((answer.body.data as { id: string }).id)
    }
    const load = new RecordedLoad(clients, seed, ids)
    const all = Array.from({ length: workers }, (_, worker) => load.#work(worker))
    load.#workers = Promise.all(all).catch((error: unknown) => {
      load.#failure ??= error instanceof Error ? error : new Error(String(error))
    })
    return load
  }

  get size(): number {
    const { register: one, set, claim } = this.#recorders
    return one.size + set.size + claim.size
  }

  /** @throws if a client received an answer that no client should receive. */
  throwFailure(): void {
    if (this.#failure !== null) throw this.#failure
  }

  /** Resolves when no operation is in progress; none starts until `resume`. */
  async pause(): Promise<void> {
    this.#isPaused = true
    while (this.#busy > 0) await pause(RETRY_MS)
  }

  resume(): void {
    this.#isPaused = false
  }

  /** Ends the clients. @throws if a client received a response that no client should receive. */
  async end(): Promise<void> {
    this.#isOver = true
    await this.#workers
    this.throwFailure()
  }

  operations(): Readonly<Record<Subject, readonly Operation[]>> {
    const { register: one, set, claim } = this.#recorders
    return { register: one.operations(), set: set.operations(), claim: claim.operations() }
  }

  judged(): Judgement[] {
    return Object.entries(this.operations()).flatMap(([name, operations]) => {
      const subject = name as Subject
      const of = (outcome: string): number =>
        operations.filter((operation) => operation.outcome === outcome).length
      const counts = {
        operations: operations.length,
        unknown: of('unknown'),
        failed: of('failed'),
      }
      return [
        { subject, by: 'search', ...counts, verdict: checkBySearch(operations, models[subject]) },
        { subject, by: 'index', ...counts, verdict: checkByIndex(operations, models[subject]) },
      ]
    })
  }

  async #work(worker: number): Promise<void> {
    const random = seededRandom(this.#seed * 1000 + worker)
    while (!this.#isOver && this.size < OPERATIONS_MAX) {
      if (!this.#isPaused) {
        this.#busy += 1
        await this.#operate(`c${worker}`, random).finally(() => (this.#busy -= 1))
      }
      await pause(THINK_MS)
    }
  }

  async #operate(process: string, random: Random): Promise<void> {
    const subject = (['register', 'register', 'set', 'claim'] as const)[random.integer(0, 3)]
    const isRead = random.next() < 0.5
    const first = random.integer(0, this.#clients.length - 1)
    if (subject === 'register') {
      const key = `register-${random.integer(1, REGISTERS)}`
      if (isRead) await this.#readRegister(process, key, first)
      else await this.#writeRegister(process, key, first)
    } else if (subject === 'set') {
      if (isRead) await this.#readSet(process, first)
      else await this.#add(process, first)
    } else if (isRead) await this.#readClaim(process, first)
    else await this.#claim(process, first)
  }

  async #readRegister(process: string, key: string, first: number): Promise<void> {
    await this.#read('register', { process, key }, first, this.#pathOf(key), (data) => {
      return (data as { maxIdleTimeMillis: number }).maxIdleTimeMillis
    })
  }

  async #writeRegister(process: string, key: string, first: number): Promise<void> {
    const value = (this.#value += 1)
    const request = { process, key, kind: 'write', argument: value }
    const body = { maxIdleTimeMillis: value }
    await this.#write('register', request, first, {
      method: 'PATCH',
      path: this.#pathOf(key),
      body,
    })
  }

  #pathOf(key: string): string {
    return `${SERVICES}/${this.#ids[Number(key.slice('register-'.length)) - 1]}`
  }

  async #readSet(process: string, first: number): Promise<void> {
    const key = this.#setKey()
    const path = listPath(`anyOf(roleAttributes)="${key}"`)
    await this.#read('set', { process, key }, first, path, (data) =>
      (data as { name: string }[]).map(({ name }) => name),
    )
  }

  async #add(process: string, first: number): Promise<void> {
    const key = this.#setKey()
    const name = `element-${(this.#value += 1)}`
    const body = { name, encryptionRequired: true, roleAttributes: [key] }
    const request = { process, key, kind: 'add', argument: name }
    await this.#write('set', request, first, { method: 'POST', path: SERVICES, body })
  }

  /**
   * Key of the current set. A set is used until it has this many operations, of which half are
   * additions.
   */
  #setKey(): string {
    return `set-${Math.floor(this.#recorders.set.size / SET_SIZE_MAX)}`
  }

  async #readClaim(process: string, first: number): Promise<void> {
    const key = this.#claimKey()
    await this.#read('claim', { process, key }, first, listPath(`name="${key}"`), (data) => {
      return (data as { maxIdleTimeMillis: number }[])[0]?.maxIdleTimeMillis ?? null
    })
  }

  async #claim(process: string, first: number): Promise<void> {
    const key = this.#claimKey()
    const value = (this.#value += 1)
    const body = { name: key, encryptionRequired: true, maxIdleTimeMillis: value }
    const request = { process, key, kind: 'cas', argument: [null, value] } as const
    await this.#write('claim', request, first, { method: 'POST', path: SERVICES, body })
  }

  /** Key of the current claim; half of its operations are claims. */
  #claimKey(): string {
    return `claim-${Math.floor(this.#recorders.claim.size / (2 * CLAIMANTS))}`
  }

  async #read(
    subject: Subject,
    { process, key }: { process: string; key: string },
    first: number,
    path: string,
    result: (data: unknown) => Scalar | readonly Scalar[],
  ): Promise<void> {
    const request = { process, key, kind: 'read', argument: null }
    const pending = this.#recorders[subject].begin(request)
    const url = `${path}${path.includes('?') ? '&' : '?'}consistency=linearizable`
    const answer = await this.#ask(first, 'GET', url)
    // A read without a response changes nothing.
    if (answer === null || answer === 'refused' || answer.status === 503) pending.failed()
    else if (answer.status === 200) pending.ok(result(answer.body.data), indexOf(answer))
    else throw new Error(`${key}: a read was answered ${answer.status}: ${answer.text}`)
  }

  /**
   * Makes one write. One third of the clients send no request ID and do not retry. The others retry
   * with their ID until they know the outcome. A write that every contacted controller refused
   * without effect has ended: it must never become visible.
   */
  async #write(
    subject: Subject,
    request: Request,
    first: number,
    { method, path, body }: { method: string; path: string; body: object },
  ): Promise<void> {
    const pending = this.#recorders[subject].begin(request)
    const hasRequestId = this.#value % 3 !== 0
    const headers: Record<string, string> = hasRequestId
      ? { 'net-request-id': formatUuid(newUuidv7(Date.now())) }
      : {}
    const deadline = performance.now() + DEADLINE_MS
    for (let attempt = 0; ; attempt += 1) {
      const answer = await this.#ask(first + attempt, method, path, { body, headers })
      const fate = answer === null ? 'unknown' : answer === 'refused' ? 'unchanged' : fateOf(answer)
      if (typeof fate === 'boolean' && answer !== null && answer !== 'refused') {
        if (!fate && request.kind !== 'cas') throw new Error(`${request.key}: ${answer.text}`)
        // The response to a repeated request contains the log index of the repetition.
        return pending.ok(
          request.kind === 'cas' ? fate : null,
          attempt === 0 ? indexOf(answer) : null,
        )
      }
      if (fate === 'unchanged' && attempt === 0) return pending.failed()
      if (!hasRequestId || performance.now() > deadline) return pending.unknown()
      await pause(RETRY_MS)
    }
  }

  /** @returns null when the connection broke, 'refused' when it could not be opened. */
  async #ask(
    client: number,
    method: string,
    path: string,
    options: { body?: object; headers?: Record<string, string> } = {},
  ): Promise<Answer | 'refused' | null> {
    const asked = this.#clients[client % this.#clients.length]
    if (asked === undefined) throw new Error('no clients')
    return asked.request(method, path, options).catch((error: unknown) => {
      if (error instanceof UndeclaredAnswer) throw error
      return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED' ? 'refused' : null
    })
  }
}

/** True: the write took effect. False: its condition was evaluated and failed. */
function fateOf(answer: Answer): boolean | 'unknown' | 'unchanged' {
  const { status, text } = answer
  const cause = answer.body.error?.cause as { reason?: string } | undefined
  if (status === 200 || status === 201) return true
  const code = answer.body.error?.code ?? ''
  if (unchanged.has(code)) return 'unchanged'
  if (code === 'OUTCOME_UNKNOWN') return 'unknown'
  if (code === 'COULD_NOT_VALIDATE' && cause?.reason === 'name must be unique') return false
  throw new Error(`a write was answered ${status}: ${text}`)
}

/**
 * Log index in `net-index: <generation>:<index>`. No restore happens here, so all responses have
 * the same generation.
 */
function indexOf({ headers }: Answer): number {
  const match = /^[0-9]+:([0-9]+)$/.exec(String(headers['net-index']))
  if (match === null) throw new Error(`net-index: ${String(headers['net-index'])}`)
  return Number(match[1])
}

function listPath(filter: string): string {
  return `${SERVICES}?limit=500&filter=${encodeURIComponent(filter)}`
}

/**
 * Prints a line for each result, and the counterexamples. @returns whether all histories are
 * linearizable.
 */
export function report(judgements: readonly Judgement[]): boolean {
  for (const { subject, by, operations, unknown, failed, verdict } of judgements) {
    console.log(
      `${subject} by ${by}: ${verdict.kind}; ${operations} operations, ${unknown} unknown, ${failed} failed`,
    )
    if (verdict.kind !== 'linearizable') console.log(print(verdict))
  }
  return judgements.every(({ verdict }) => verdict.kind === 'linearizable')
}
