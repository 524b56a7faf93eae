import { deepStrictEqual, strictEqual } from 'node:assert'
import { parseArgs } from 'node:util'
import type { KindName } from '../../src/entities/kind-records.ts'
import { StateReader } from '../../src/fsm/state-reader.ts'
import type { EntityRecord } from '../../src/lib/entity-record.ts'
import type { ListResult } from '../../src/ports/state-view.ts'
import { RandomNetwork } from './support/access-network.ts'
import {
  edgeRoutersOf,
  identitiesOf,
  servicesOf,
  sessionsOf,
  slowActive,
  slowClientView,
  slowRouters,
  slowServicePolicies,
  slowTypes,
} from './support/access-twin.ts'
import { ClusterState } from '../../src/fsm/access/cluster-state.ts'

// Creates random networks with random changes. After each entry, compares the content of the access
// indexes with a computation over all records: `node test/fsm/access-campaign.ts --networks 2000
// --seed 1`.

const clock = { nowMs: () => 0, monotonicMs: () => 0 }
/** Number of entries with which the network is created. */
const earlyEntries = 35
const everything = { limit: -1 } as const

function ids(result: ListResult | null): string[] {
  return (result?.records ?? []).map(({ id }) => id)
}

function idsOf(records: readonly EntityRecord[]): string[] {
  return records.map(({ id }) => id).sort()
}

export interface CampaignFigures {
  entries: number
  refused: number
  /** Number of views that an entry changed, and of views that an entry did not change. */
  moved: number
  unmoved: number
  sessionsOpened: number
  sessionsEnded: number
}

/**
 * One network from its creation. Throws an AssertionError if the index and the computation differ.
 */
class Run {
  readonly #network: RandomNetwork
  readonly #figures: CampaignFigures
  readonly #reader: StateReader
  /** For each identity, its view, and the time of its last change. */
  #views = new Map<string, string>()
  readonly #movedAt = new Map<string, number>()

  constructor(seed: number, figures: CampaignFigures) {
    this.#network = new RandomNetwork(seed)
    this.#figures = figures
    this.#reader = new StateReader(this.#network.state, clock)
  }

  run(entries: number): void {
    for (let at = 0; at < entries; at += 1) {
      if (at > earlyEntries && this.#network.integer(0, 5) === 0) this.#openSession()
      else this.#change(at < earlyEntries)
      this.#holdMarks()
      this.#holdAccess()
      // Reads all views, because entries update a view only after its first use.
      if (at % 3 === 0) this.#holdLists()
    }
    this.#holdReload()
  }

  #change(isEarly: boolean): void {
    const { state } = this.#network
    const before = new Map(sessionsOf(state).map((session) => [session.id, session]))
    const livedBy = this.#livedBy(before.values())
    const entitiesBefore = state.entitiesDigest()
    const marksBefore = this.#marks(state)
    const outcome = this.#network.change(isEarly)
    this.#figures.entries += 1
    const after = new Map(sessionsOf(state).map((session) => [session.id, session]))
    if (!outcome.ok) {
      this.#figures.refused += 1
      deepStrictEqual([state.entitiesDigest(), this.#marks(state)], [entitiesBefore, marksBefore])
    }
    this.#holdSessions(before, after, livedBy)
  }

  #marks(state: ClusterState): string {
    const rows = [...state.table('accessMark').rows.values()].map(({ record }) => record)
    return JSON.stringify(rows.sort((a, b) => (a.id < b.id ? -1 : 1)))
  }

  /**
   * Records on which each session depends, and that one entry may delete and create again with the
   * same ID.
   */
  #livedBy(sessions: Iterable<EntityRecord>): ReadonlyMap<string, string> {
    const { state } = this.#network
    const made = (kind: KindName, id: unknown): number | undefined =>
      state.get(kind, String(id))?.createdAt
    return new Map(
      [...sessions].map(({ id, ...session }) => [
        id,
        [
          made('identity', session['identityId']),
          made('service', session['serviceId']),
          made('apiSession', session['apiSessionId']),
        ].join(),
      ]),
    )
  }

  /**
   * Checks the sessions: a session must stay if its dependencies and a grant exist, or if its
   * identity is an administrator; otherwise it must end.
   */
  #holdSessions(
    before: ReadonlyMap<string, EntityRecord>,
    after: ReadonlyMap<string, EntityRecord>,
    livedBy: ReadonlyMap<string, string>,
  ): void {
    const { state } = this.#network
    const livingBy = this.#livedBy(before.values())
    const staying = [...before.values()].filter((session) => {
      const identity = state.get('identity', String(session['identityId']))
      const service = state.get('service', String(session['serviceId']))
      if (state.get('apiSession', String(session['apiSessionId'])) === undefined) return false
      if (identity === undefined || service === undefined) return false
      if (livingBy.get(session.id) !== livedBy.get(session.id)) return false
      const types = slowTypes(state, identity, service)
      return identity['isAdmin'] === true || types.includes(String(session['type']))
    })
    deepStrictEqual([...after.keys()].sort(), idsOf(staying))
    this.#figures.sessionsEnded += before.size - after.size
  }

  #openSession(): void {
    const { state } = this.#network
    const known = sessionsOf(state)
    const asked = this.#network.openServiceSession()
    this.#figures.entries += 1
    const { apiSessionId, serviceId, type, outcome } = asked
    const apiSession = state.get('apiSession', apiSessionId)
    const identity = state.get('identity', String(apiSession?.['identityId']))
    const service = state.get('service', serviceId)
    const expected = (): string => {
      if (identity === undefined) return 'UNAUTHORIZED'
      if (service === undefined) return 'NOT_FOUND'
      const policies = slowServicePolicies(state, identity, service)
      if (policies.length === 0) return 'NOT_FOUND'
      const ofType = policies.filter((policy) => policy['type'] === type)
      if (ofType.length === 0) return 'COULD_NOT_VALIDATE'
      const passing = ofType.filter((policy) =>
        slowChecks(state, policy).every((id) => asked.passingChecks.includes(id)),
      )
      if (passing.length === 0) return 'INVALID_POSTURE'
      return slowRouters(state, { identity, service }).length === 0
        ? 'NO_EDGE_ROUTERS_AVAILABLE'
        : 'ok'
    }
    strictEqual(outcome.ok ? 'ok' : outcome.code, expected())
    if (!outcome.ok) return
    const same = known.find(
      (session) =>
        session['apiSessionId'] === apiSessionId &&
        session['serviceId'] === serviceId &&
        session['type'] === type,
    )
    strictEqual(sessionsOf(state).length, known.length + (same === undefined ? 1 : 0))
    if (same !== undefined) strictEqual(outcome.id, same.id)
    this.#figures.sessionsOpened += 1
  }

  #holdMarks(): void {
    const { state } = this.#network
    const views = new Map<string, string>()
    for (const id of slowActive(state)) {
      const identity = state.get('identity', id)
      if (identity === undefined) throw new Error(`${id} has a session and is not there`)
      const view = slowClientView(state, identity)
      views.set(id, view)
      const old = this.#views.get(id)
      if (old === undefined) this.#movedAt.delete(id)
      else if (old !== view) {
        this.#movedAt.set(id, state.logTimeMs)
        this.#figures.moved += 1
      } else this.#figures.unmoved += 1
    }
    this.#views = views
    this.#holdLastChanges(state, this.#reader)
    const known = [...state.table('accessMark').ids]
    const classes = state.access.classes
    for (const id of known) {
      const isUsed = id.startsWith('i:')
        ? views.has(id.slice(2))
        : classes.withKey(id.slice(2)) !== undefined
      strictEqual(isUsed, true, `the mark ${id} is of nobody`)
    }
  }

  #holdLastChanges(state: ClusterState, reader: StateReader): void {
    for (const { record } of state.table('apiSession').rows.values()) {
      const moved = this.#movedAt.get(String(record['identityId'])) ?? 0
      strictEqual(
        reader.lastChangeAt(record.id),
        Math.max(record.createdAt, moved),
        `the mark of ${String(record['identityId'])}`,
      )
    }
  }

  /** Compares the access of one identity and of one service, which are different each time. */
  #holdAccess(): void {
    const { state } = this.#network
    const some = <T>(from: readonly T[]): T | undefined =>
      from[this.#network.integer(0, Math.max(0, from.length - 1))]
    const identity = some(identitiesOf(state))
    const service = some(servicesOf(state))
    if (identity === undefined || service === undefined) return
    const reader = this.#reader
    deepStrictEqual(
      reader.permissions(identity.id, service.id),
      slowTypes(state, identity, service),
    )
    const between = reader.accessBetween(identity.id, service.id)
    deepStrictEqual(idsOf(between?.commonRouters ?? []), slowRouters(state, { identity, service }))
    strictEqual(between?.identityRouterCount, slowRouters(state, { identity }).length)
    strictEqual(between.serviceRouterCount, slowRouters(state, { service }).length)
    deepStrictEqual(
      between.policies.map(({ id }) => id),
      idsOf(slowServicePolicies(state, identity, service)),
    )
  }

  #holdLists(): void {
    const { state } = this.#network
    const reader = this.#reader
    const identities = identitiesOf(state)
    const services = servicesOf(state)
    const list = (kind: KindName, id: string, key: string, type = '') =>
      ids(
        reader.subList(kind, id, key, {
          ...everything,
          ...(type === '' ? {} : { policyType: type }),
        }),
      )
    for (const identity of identities) {
      for (const [type, wanted] of [
        ['', ['Bind', 'Dial']],
        ['dial', ['Dial']],
        ['bind', ['Bind']],
      ] as const) {
        const slow = services.filter((service) =>
          slowTypes(state, identity, service).some((one) => wanted.some((two) => one === two)),
        )
        deepStrictEqual(list('identity', identity.id, 'services', type), idsOf(slow))
      }
      const routers = slowRouters(state, { identity })
      deepStrictEqual(list('identity', identity.id, 'edge-routers'), routers)
      deepStrictEqual(
        ids(reader.accessibleServices(identity.id, everything)),
        idsOf(services.filter((service) => slowTypes(state, identity, service).length > 0)),
      )
    }
    for (const service of services) {
      const slow = identities.filter((one) => slowTypes(state, one, service).length > 0)
      deepStrictEqual(list('service', service.id, 'identities'), idsOf(slow))
      const routers = slowRouters(state, { service })
      deepStrictEqual(list('service', service.id, 'edge-routers'), routers)
    }
    for (const { id } of edgeRoutersOf(state)) {
      const users = identities.filter((one) => slowRouters(state, { identity: one }).includes(id))
      deepStrictEqual(list('edgeRouter', id, 'identities'), idsOf(users))
      const reached = services.filter((one) => slowRouters(state, { service: one }).includes(id))
      deepStrictEqual(list('edgeRouter', id, 'services'), idsOf(reached))
    }
  }

  /** Checks that a controller that starts from the stored state gives the same answers. */
  #holdReload(): void {
    const { state } = this.#network
    const loaded = new ClusterState()
    loaded.featureLevel = state.featureLevel
    for (const { key, value } of state.takeDirty()) if (value !== null) loaded.load(key, value)
    loaded.loaded()
    loaded.position = state.position
    loaded.logTimeMs = state.logTimeMs
    strictEqual(loaded.stateDigest(), state.stateDigest())
    this.#holdLastChanges(loaded, new StateReader(loaded, clock))
    strictEqual(loaded.access.classes.count, state.access.classes.count)
    const endsOf = (of: ClusterState) => of.ends.between('', '~', Infinity)
    deepStrictEqual(endsOf(loaded), endsOf(state))
  }
}

function slowChecks(state: ClusterState, policy: EntityRecord): string[] {
  const reader = new StateReader(state, clock)
  return ids(reader.subList('servicePolicy', policy.id, 'posture-checks', everything))
}

/** @throws {AssertionError} with the seed of the network in which the difference was found. */
export function runCampaign(networks: number, firstSeed: number, entries = 110): CampaignFigures {
  const figures: CampaignFigures = {
    entries: 0,
    refused: 0,
    moved: 0,
    unmoved: 0,
    sessionsOpened: 0,
    sessionsEnded: 0,
  }
  for (let seed = firstSeed; seed < firstSeed + networks; seed += 1) {
    try {
      new Run(seed, figures).run(entries)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      throw new Error(`network ${seed}: ${reason}`, { cause: error })
    }
  }
  return figures
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      networks: { type: 'string', default: '100' },
      seed: { type: 'string', default: '1' },
      entries: { type: 'string', default: '110' },
    },
  })
  const started = performance.now()
  const figures = runCampaign(Number(values.networks), Number(values.seed), Number(values.entries))
  const seconds = ((performance.now() - started) / 1000).toFixed(0)
  console.log(`${values.networks} networks from seed ${values.seed} in ${seconds} s`, figures)
}
