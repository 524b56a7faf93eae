import { CommandKind } from '../proto/gen/command_pb.ts'
import { applyLogEntry } from '../src/fsm/apply-log-entry.ts'
import { StateReader } from '../src/fsm/state-reader.ts'
import { LogWriter, identity, policy, service } from '../test/fsm/support/log.ts'
import { ClusterState } from '../src/fsm/access/cluster-state.ts'

export interface AccessSize {
  readonly identities: number
  readonly active: number
  readonly services: number
  readonly policies: number
  readonly edgeRouters: number
}

export interface AccessFigures {
  /** Time to decode and apply one log entry. */
  readonly serviceChangeP50Ms: number
  readonly serviceChangeP99Ms: number
  readonly identityChangeP50Ms: number
  readonly identityChangeP99Ms: number
  readonly createAllP50Ms: number
  readonly deleteAllP50Ms: number
  readonly firstListMs: number
  readonly nextListMs: number
  readonly classes: number
  readonly viewIds: number
  readonly indexBytes: number
}

/**
 * Number of departments. Each department has some identities and services, and policies connect it
 * to several other departments.
 */
const departments = 100

export class Network {
  readonly state = new ClusterState()
  readonly log: LogWriter
  readonly reader: StateReader
  readonly size: AccessSize
  indexBytes = 0

  constructor(size: AccessSize) {
    this.size = size
    this.log = new LogWriter((entry) => {
      const applied = applyLogEntry(this.state, entry)
      // Removes changes from the state as a controller's write-behind does. The log entries are not
      // kept, because a controller does not keep its log in memory either.
      if (this.state.dirtyCharacters > 1024 * 1024) this.state.takeDirty()
      return applied
    })
    this.#build()
    this.reader = new StateReader(this.state, {
      nowMs: () => this.log.timeMs,
      monotonicMs: () => 0,
    })
  }

  #build(): void {
    const { log } = this
    const { identities, active, services, policies, edgeRouters } = this.size
    log.form()
    const department = (n: number): string => `d${n % departments}`
    for (let n = 0; n < identities; n += 1) {
      log.create('identity', `i${n}`, identity(`i${n}`, [department(n), `site${n % 7}`]))
    }
    for (let n = 0; n < services; n += 1) {
      log.create('service', `s${n}`, service(`s${n}`, [department(n), `tier${n % 3}`]))
    }
    for (let n = 0; n < edgeRouters; n += 1) {
      log.create('edgeRouter', `r${n}`, { name: `r${n}`, roleAttributes: [`site${n % 7}`] })
    }
    for (let n = 0; n < policies; n += 1) {
      const roles = [`#${department(n * 31 + 7)}`]
      const type = n % 4 === 0 ? 'Bind' : 'Dial'
      log.create('servicePolicy', `p${n}`, policy(`p${n}`, [`#${department(n)}`], roles, { type }))
    }
    const before = heapBytes()
    for (let n = 0; n < active; n += 1) log.logIn(`as${n}`, this.identityId(n), '')
    this.indexBytes = heapBytes() - before
  }

  /** Number of active identities, spread over all departments. */
  identityId(n: number): string {
    const { identities, active } = this.size
    const step = Math.max(1, Math.floor(identities / active))
    return `i${(n % active) * step + (n % step)}`
  }
}

function heapBytes(): number {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

function timed(run: () => void): number {
  const started = performance.now()
  run()
  return performance.now() - started
}

export function percentile(times: readonly number[], part: number): number {
  const sorted = [...times].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0
}

function mustBe(isDone: boolean, what: string): void {
  if (!isDone) throw new Error(`${what} was refused`)
}

export function benchAccess(size: AccessSize, rounds: number): AccessFigures {
  const network = new Network(size)
  const { log, reader, state } = network
  const list = (n: number) => () => {
    reader.accessibleServices(network.identityId(n), { limit: 500 })
  }
  const firstListMs = percentile(
    Array.from({ length: Math.min(departments, size.active) }, (_, n) => timed(list(n))),
    0.5,
  )
  const nextListMs = percentile(
    Array.from({ length: rounds }, (_, n) => timed(list(n))),
    0.5,
  )
  // Encodes the attributes before the measurement, as a proposer does, so that only applying the
  // entry is measured.
  const patch = (kind: string, id: string, roleAttributes: readonly string[]) => {
    const payload = LogWriter.write(kind, id, { roleAttributes })
    log.timeMs += 1
    return timed(() => {
      mustBe(log.command(CommandKind.ENTITY_PATCH, payload).outcome?.ok === true, 'a patch')
    })
  }
  const serviceChanges = Array.from({ length: rounds }, (_, n) =>
    patch('service', `s${(n * 17) % size.services}`, [`d${(n * 13) % departments}`, 'moved']),
  )
  const identityChanges = Array.from({ length: rounds }, (_, n) =>
    patch('identity', network.identityId(n * 11), [`d${(n * 29) % departments}`, 'moved']),
  )
  const { viewIds, classes } = state.access.size
  const creates: number[] = []
  const deletes: number[] = []
  for (let n = 0; n < 10; n += 1) {
    log.timeMs += 1
    const id = `touches-all-${n}`
    const body = policy(id, ['#all'], ['#all'])
    creates.push(timed(() => mustBe(log.create('servicePolicy', id, body).ok, 'the policy')))
    log.timeMs += 1
    deletes.push(timed(() => mustBe(log.delete('servicePolicy', id).ok, 'its end')))
  }
  return {
    serviceChangeP50Ms: percentile(serviceChanges, 0.5),
    serviceChangeP99Ms: percentile(serviceChanges, 0.99),
    identityChangeP50Ms: percentile(identityChanges, 0.5),
    identityChangeP99Ms: percentile(identityChanges, 0.99),
    createAllP50Ms: percentile(creates, 0.5),
    deleteAllP50Ms: percentile(deletes, 0.5),
    firstListMs,
    nextListMs,
    classes,
    viewIds,
    indexBytes: network.indexBytes,
  }
}

/**
 * The largest network for which a controller is designed. The next constant has a hundredth of its
 * identities.
 */
export const large: AccessSize = {
  identities: 100_000,
  active: 1_000,
  services: 10_000,
  policies: 1_000,
  edgeRouters: 1_000,
}

if (import.meta.main) {
  const few = benchAccess({ ...large, identities: 1_000 }, 500)
  const many = benchAccess(large, 500)
  const growth = Math.log(large.identities / 1_000)
  for (const name of Object.keys(many) as (keyof AccessFigures)[]) {
    const exponent = Math.log(many[name] / few[name]) / growth
    const shown = (value: number): string => (value < 10 ? value.toFixed(3) : value.toFixed(0))
    console.log(
      `${name}: ${shown(few[name])} at 1,000 identities, ${shown(many[name])} at 100,000, growth exponent ${exponent.toFixed(2)}`,
    )
  }
}
