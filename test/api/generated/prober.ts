import { expect } from 'vitest'
import { type ProblemCode, problemTypes, reportedProblemCodes } from '../../../src/lib/problems.ts'
import { CallerOf, type Reply } from '../support/caller.ts'
import type { TestController } from '../support/controller.ts'

/** Status and code of every problem, as responses contain them. */
const wire = new Set(
  Object.entries(problemTypes).map(
    ([code, { http }]) => `${http} ${reportedProblemCodes[code as ProblemCode] ?? code}`,
  ),
)

/** Sends a request that must be refused, and checks the refusal and that nothing has changed. */
export class Prober {
  readonly root: CallerOf
  /** A caller at the admin socket: the user of the host. */
  readonly system: CallerOf
  /** Operations that only the user of the host may call, as `POST /url`. */
  readonly socketOnly = new Set<string>()
  readonly #controller: TestController
  requests = 0

  constructor(controller: TestController) {
    this.#controller = controller
    this.root = new CallerOf(controller)
    this.root.token = controller.openSession('admin-id')
    this.system = new CallerOf(controller)
    this.system.isAtSocket = true
  }

  newCaller(token: string | null): CallerOf {
    const caller = new CallerOf(this.#controller)
    caller.token = token
    return caller
  }

  ask(
    method: string,
    url: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
    asking: CallerOf | null = null,
  ): Promise<Reply> {
    this.requests += 1
    const isSocketOnly = this.socketOnly.has(`${method} ${url.split('?')[0] ?? ''}`)
    const caller = asking ?? (isSocketOnly ? this.system : this.root)
    return caller.call(method, url, body, headers)
  }

  /** @param statuses permitted status codes; if empty, all 4xx codes. */
  async refused(
    why: string,
    statuses: readonly number[],
    asking: () => Promise<Reply>,
  ): Promise<Reply> {
    const before = this.#controller.machine.digests().entities
    const reply = await asking()
    const faults = [...this.#faultsOf(reply, statuses)]
    if (this.#controller.machine.digests().entities !== before) faults.push('changed records')
    // One assertion for all facts: separate assertions would take a tenth of the time of
    // bad-input.test.ts.
    if (faults.length > 0) {
      expect(faults, `${why}: ${reply.status} ${reply.text.slice(0, 300)}`).toEqual([])
    }
    return reply
  }

  *#faultsOf({ status, body }: Reply, statuses: readonly number[]): Generator<unknown> {
    if (statuses.length > 0 && !statuses.includes(status)) yield `is none of ${statuses.join()}`
    if (status < 400 || status >= 500) yield 'is no refusal'
    const code = body.error?.code ?? ''
    if (!wire.has(`${status} ${code}`)) yield `has the code '${code}', which no problem has`
    yield* this.#controller.errors
  }
}
