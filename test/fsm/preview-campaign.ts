import { deepStrictEqual, ok, strictEqual } from 'node:assert'
import { parseArgs } from 'node:util'
import type { KindName } from '../../src/entities/kind-records.ts'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import { findEntity } from '../../src/entities/registry.ts'
import { StateReader } from '../../src/fsm/state-reader.ts'
import { canonicalJson } from '../../src/lib/text/canonical-json.ts'
import type { EntityRecord } from '../../src/lib/entity-record.ts'
import {
  type AccessDifference,
  type AccessPreview,
  accessRights,
  type PairChanges,
  type PreviewedWrite,
} from '../../src/fsm/access/access-difference.ts'
import { RandomNetwork, type Step } from './support/access-network.ts'
import {
  edgeRoutersOf,
  identitiesOf,
  servicesOf,
  slowLinked,
  slowTypes,
} from './support/access-twin.ts'
import type { ClusterState } from '../../src/fsm/access/cluster-state.ts'

// Creates random networks and random writes. Compares each preview with all pairs before and after
// the same writes: `node test/fsm/preview-campaign.ts --networks 1000 --seed 1`.

const clock = { nowMs: () => 0, monotonicMs: () => 0 }
/** Number of entries with which the network is created. */
const earlyEntries = 35
const caller = { isAdmin: true, permissions: [] }

const modes = new Map<number, PreviewedWrite['mode']>([
  [CommandKind.ENTITY_CREATE, 'create'],
  [CommandKind.ENTITY_PATCH, 'patch'],
  [CommandKind.ENTITY_REPLACE, 'replace'],
  [CommandKind.ENTITY_DELETE, 'delete'],
])

function writeOf([kind, entity, id, fields]: Step): PreviewedWrite {
  const mode = modes.get(kind)
  ok(mode !== undefined, 'a step is a write of an entity')
  return { mode, entity: findEntity(entity).name, id, fields }
}

/** Every pair of identity and service with access, as text, computed from all records. */
function slowPairs(state: ClusterState): ReadonlyMap<string, ReadonlySet<string>> {
  const pairs = new Map(accessRights.map((right) => [right as string, new Set<string>()]))
  const add = (right: string, one: EntityRecord, other: EntityRecord): void => {
    pairs.get(right)?.add(`${one.id} ${other.id}`)
  }
  for (const identity of identitiesOf(state)) {
    for (const service of servicesOf(state)) {
      for (const type of slowTypes(state, identity, service)) {
        add(type.toLowerCase(), identity, service)
      }
    }
  }
  for (const router of edgeRoutersOf(state)) {
    const links = (kind: KindName, field: string, one: EntityRecord): boolean =>
      slowLinked(state, kind, [field, 'edgeRouterRoles'], [one, router]).length > 0
    for (const identity of identitiesOf(state)) {
      if (links('edgeRouterPolicy', 'identityRoles', identity)) add('router', identity, router)
    }
    for (const service of servicesOf(state)) {
      const isLinked = links('serviceEdgeRouterPolicy', 'serviceRoles', service)
      if (isLinked) add('serviceRouter', service, router)
    }
  }
  return pairs
}

/** Posture checks that each service policy requires now, computed from all records. */
function slowChecks(state: ClusterState): ReadonlyMap<string, ReadonlySet<string>> {
  const reader = new StateReader(state, clock)
  const everything = { limit: -1 } as const
  return new Map(
    [...state.table('servicePolicy').ids].flatMap((id) => {
      if (state.get('servicePolicy', id)?.isEnded === true) return []
      const found = reader.subList('servicePolicy', id, 'posture-checks', everything)
      return [[id, new Set((found?.records ?? []).map((check) => check.id))]]
    }),
  )
}

export function completedPreview(preview: AccessPreview): AccessDifference {
  ok(preview.outcome === 'judged', 'the writes are taken')
  for (;;) {
    const step = preview.difference.next()
    if (step.done !== true) continue
    ok(step.value !== null, 'nothing has changed meanwhile')
    return step.value
  }
}

/** All pairs of a change, read page by page. */
export function pairsOf({ count, page }: PairChanges, limit: number): string[] {
  const found: string[] = []
  for (let offset = 0; offset < count; offset += limit) {
    const rows = page(offset, limit)
    strictEqual(rows.length, Math.min(limit, count - offset))
    found.push(...rows.map((row) => row.join(' ')))
  }
  return found
}

const nothing: ReadonlySet<string> = new Set()
const minus = (a: ReadonlySet<string>, b: ReadonlySet<string>): string[] =>
  [...a].filter((one) => !b.has(one)).sort()

export interface PreviewFigures {
  previews: number
  refused: number
  given: number
  taken: number
  checks: number
}

class Run {
  readonly #network: RandomNetwork
  readonly #figures: PreviewFigures

  constructor(seed: number, figures: PreviewFigures) {
    this.#network = new RandomNetwork(seed)
    this.#figures = figures
  }

  run(entries: number): void {
    for (let at = 0; at < entries; at += 1) {
      if (at < earlyEntries) this.#network.change(true)
      else if (at % 4 === 0) this.#network.change(false)
      else this.#preview()
    }
  }

  #preview(): void {
    const { state, log } = this.#network
    const steps = this.#network.steps(this.#network.integer(1, 4))
    const [digest, dirty] = [state.stateDigest(), state.dirtyCharacters]
    const [pairs, checks] = [slowPairs(state), slowChecks(state)]
    const preview = new StateReader(state, clock).previewAccess(steps.map(writeOf), caller)
    const difference = preview.outcome === 'judged' ? completedPreview(preview) : null
    const pages = difference?.pairs.map((change) => pairsOf(change, this.#network.integer(1, 7)))
    deepStrictEqual([state.stateDigest(), state.dirtyCharacters], [digest, dirty])
    log.timeMs += 1
    const outcome = log.batch(steps)
    this.#figures.previews += 1
    if (!outcome.ok) {
      this.#figures.refused += 1
      ok(preview.outcome === 'refused', `the log refuses: ${canonicalJson(outcome)}`)
      deepStrictEqual(preview.refusal, outcome)
      return
    }
    ok(difference !== null && pages !== undefined, 'what the log takes, a preview takes')
    this.#holdPairs(difference, pages, pairs)
    this.#holdChecks(difference, checks)
  }

  #holdPairs(
    { pairs: changes }: AccessDifference,
    pages: readonly string[][],
    before: ReadonlyMap<string, ReadonlySet<string>>,
  ): void {
    const after = slowPairs(this.#network.state)
    for (const [at, { right, change }] of changes.entries()) {
      const [had, has] = [before.get(right) ?? nothing, after.get(right) ?? nothing]
      const slow = change === 'given' ? minus(has, had) : minus(had, has)
      deepStrictEqual([...(pages[at] ?? [])].sort(), slow, `${right} ${change}`)
      this.#figures[change] += slow.length
    }
    strictEqual(changes.length, 8)
  }

  #holdChecks(
    { checks: found }: AccessDifference,
    before: ReadonlyMap<string, ReadonlySet<string>>,
  ): void {
    const slow = [...slowChecks(this.#network.state)].flatMap(([policyId, has]) => {
      const had = before.get(policyId)
      if (had === undefined) return []
      const [given, taken] = [minus(has, had), minus(had, has)]
      return given.length + taken.length === 0 ? [] : [{ policyId, given, taken }]
    })
    const moved = found.flatMap(({ policyId, given, taken }) =>
      given.length + taken.length === 0 ? [] : [{ policyId, given, taken }],
    )
    deepStrictEqual(moved, slow)
    this.#figures.checks += found.length
  }
}

/** @throws {AssertionError} with the seed of the network in which the difference was found. */
export function runPreviewCampaign(
  networks: number,
  firstSeed: number,
  entries = 110,
): PreviewFigures {
  const figures = { previews: 0, refused: 0, given: 0, taken: 0, checks: 0 }
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
  const figures = runPreviewCampaign(
    Number(values.networks),
    Number(values.seed),
    Number(values.entries),
  )
  const seconds = ((performance.now() - started) / 1000).toFixed(0)
  console.log(`${values.networks} networks from seed ${values.seed} in ${seconds} s`, figures)
}
