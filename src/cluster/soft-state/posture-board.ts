import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import { ToldFactSchema, ToldPostureSchema } from '../../../proto/gen/soft_pb.ts'
import type { ToldFact, ToldPosture } from '../../../proto/gen/soft_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import type {
  EndpointState,
  Posture,
  PostureReport,
  PostureReports,
  ProcessReport,
  ReportOutcome,
} from '../../ports/posture.ts'
import { SOFT_VALUE_BYTES_MAX } from '../../ports/soft-state.ts'
import type { SoftState, SoftTopic } from '../../ports/soft-state.ts'
import type { NodeId } from '../../raft/types.ts'
import { integer } from '../message-codec.ts'

export const postureLimits = {
  /** Machines tell again what they told a controller that went silent; until then its word counts. */
  postureTtlMs: 5 * 60_000,
  /** Told to one controller: the machines of 30,000 identities, a quarter of a kilobyte each. */
  postureOwnerBytesMax: 8 * 1024 * 1024,
  /** What is told again unchanged is news to the other controllers after so long: they show when it was told. */
  postureRetoldMs: 60_000,
} as const

/** The topic: values stay packed, as there may be one for each identity and few are looked at. */
export function postureTopic(soft: SoftState): SoftTopic<Uint8Array> {
  return soft.topic<Uint8Array>({
    name: 'posture',
    encode: (bytes) => bytes,
    decode: (bytes) => {
      unpack(bytes)
      // A copy: the bytes are a piece of a batch, which would be kept whole.
      return bytes.slice()
    },
    ttlMs: postureLimits.postureTtlMs,
    ownerBytesMax: postureLimits.postureOwnerBytesMax,
  })
}

/** The facts of one identity, by what each is about; a later fact on the same thing takes the place of an earlier one. */
type Facts = Map<string, ToldFact>

interface Merged {
  readonly facts: Facts
  /** The highest version of any. */
  readonly version: bigint
}

/**
 * What machines told of themselves, over the soft state. Each controller publishes what it was told itself. What counts of
 * two words on one thing is told by a version that the later controller set above all that it knew (Lamport's clock), and
 * between equal versions by the controllers' ids: all of them come to the same, and no clock is compared.
 */
export class PostureBoard implements PostureReports {
  readonly #selfId: NodeId
  readonly #topic: SoftTopic<Uint8Array>
  readonly #clock: Pick<Clock, 'nowMs'>
  /** Who else was told of an identity. */
  readonly #elsewhere = new Map<string, Set<NodeId>>()
  /** Identities that were told of here, those looked at last come last. */
  readonly #here = new Set<string>()
  readonly #listeners: ((identityId: string) => void)[] = []

  constructor(selfId: NodeId, topic: SoftTopic<Uint8Array>, clock: Pick<Clock, 'nowMs'>) {
    this.#selfId = selfId
    this.#topic = topic
    this.#clock = clock
    for (const { owner, key } of topic.values()) this.#noteOwner(owner, key, true)
    topic.onChange((owner, identityId, value) => {
      this.#noteOwner(owner, identityId, value !== undefined)
      // At once: should the later word go with its controller, the one before it must not count again.
      if (value !== undefined && this.#here.has(identityId))
        this.#dropWhere(identityId, isOverridden)
      if (value === undefined) for (const listener of this.#listeners) listener(identityId)
    })
  }

  onLost(listener: (identityId: string) => void): void {
    this.#listeners.push(listener)
  }

  of(identityId: string): Posture {
    const posture: { -readonly [name in keyof Posture]: Posture[name] } = {
      ...{ os: null, domain: null, mac: null, processes: [] },
    }
    const processes: ProcessReport[] = []
    for (const [, { what, checkId, atMs: told }] of inOrder(this.#merged(identityId).facts)) {
      const atMs = integer(told)
      if (what.case === 'os') {
        const { type, version, build } = what.value
        posture.os = { checkId, atMs, type, version, build }
      } else if (what.case === 'domain') {
        posture.domain = { checkId, atMs, domain: what.value.domain }
      } else if (what.case === 'mac') {
        posture.mac = { checkId, atMs, addresses: what.value.addresses }
      } else if (what.case === 'process') {
        const { path, running: isRunning, hash, signerFingerprints } = what.value
        processes.push({ checkId, atMs, path, isRunning, hash, signerFingerprints })
      }
    }
    posture.processes = processes
    return posture
  }

  endpointsOf(identityId: string): ReadonlyMap<string, EndpointState> {
    const found = new Map<string, EndpointState>()
    for (const { what } of this.#merged(identityId).facts.values()) {
      if (what.case !== 'endpoint') continue
      const { apiSessionId, wokenAtMs, unlockedAtMs } = what.value
      found.set(apiSessionId, {
        wokenAtMs: wokenAtMs === 0n ? null : integer(wokenAtMs),
        unlockedAtMs: unlockedAtMs === 0n ? null : integer(unlockedAtMs),
      })
    }
    return found
  }

  tell(identityId: string, apiSessionId: string, reports: readonly PostureReport[]): ReportOutcome {
    const nowMs = this.#clock.nowMs()
    const merged = this.#merged(identityId)
    const own = this.#ofOwner(this.#selfId, identityId)
    const facts = factsOf(own)
    const fresh = new Set<string>()
    let { version } = merged
    let isSame = true
    let isDue = false
    for (const report of reports) {
      const slot = slotOf(report, apiSessionId)
      const known = merged.facts.get(slot)
      const what = whatOf(report, apiSessionId, known, nowMs)
      isSame &&= known !== undefined && isSameWord(known, what)
      // What another controller was told goes with that one: the word is wanted here, too.
      const isOwn = known !== undefined && facts.get(slot)?.version === known.version
      isDue ||= !isOwn || isOld(known, nowMs)
      version += 1n
      const fact = create(ToldFactSchema, { version, atMs: BigInt(nowMs), ...what })
      facts.set(slot, fact)
      merged.facts.set(slot, fact)
      fresh.add(slot)
    }
    if (isSame && !isDue) return 'same'
    const outcome = this.#publish(identityId, own?.moves ?? 0n, facts, fresh)
    return outcome === 'taken' && isSame ? 'same' : outcome
  }

  moves(identityId: string): number {
    let moves = 0
    for (const owner of this.#ownersOf(identityId)) {
      moves += integer(this.#ofOwner(owner, identityId)?.moves ?? 0n)
    }
    return moves
  }

  noteMove(identityId: string): void {
    const own = this.#ofOwner(this.#selfId, identityId)
    const facts = factsOf(own)
    this.#publish(identityId, (own?.moves ?? 0n) + 1n, facts, new Set())
  }

  toldHere(max: number): readonly string[] {
    const found: string[] = []
    for (const id of this.#here) {
      if (found.length === max) break
      found.push(id)
    }
    for (const id of found) {
      this.#here.delete(id)
      this.#here.add(id)
    }
    return found
  }

  keepOnly(identityId: string, apiSessionIds: ReadonlySet<string>): void {
    if (apiSessionIds.size === 0) {
      this.#topic.withdraw(identityId)
      this.#here.delete(identityId)
      return
    }
    const isOver = ({ what }: ToldFact): boolean =>
      what.case === 'endpoint' && !apiSessionIds.has(what.value.apiSessionId)
    this.#dropWhere(identityId, (fact, counting) => isOver(fact) || isOverridden(fact, counting))
  }

  /** Of what was told here. @param isIdle given a fact, and the one on the same thing that counts. */
  #dropWhere(
    identityId: string,
    isIdle: (fact: ToldFact, counting: ToldFact | undefined) => boolean,
  ): void {
    const own = this.#ofOwner(this.#selfId, identityId)
    if (own === undefined) return
    const merged = this.#merged(identityId)
    const facts = factsOf(own)
    for (const [slot, fact] of facts) {
      if (isIdle(fact, merged.facts.get(slot))) facts.delete(slot)
    }
    if (facts.size < own.facts.length) this.#publish(identityId, own.moves, facts, new Set())
  }

  #noteOwner(owner: NodeId, identityId: string, hasTold: boolean): void {
    if (owner === this.#selfId) return
    const owners = this.#elsewhere.get(identityId)
    if (hasTold) {
      if (owners === undefined) this.#elsewhere.set(identityId, new Set([owner]))
      else owners.add(owner)
    } else if (owners?.delete(owner) === true && owners.size === 0) {
      this.#elsewhere.delete(identityId)
    }
  }

  /** Sorted, so that every controller merges in the same order. */
  #ownersOf(identityId: string): NodeId[] {
    return [this.#selfId, ...(this.#elsewhere.get(identityId) ?? [])].sort()
  }

  #ofOwner(owner: NodeId, identityId: string): ToldPosture | undefined {
    const bytes = this.#topic.get(owner, identityId)
    return bytes === undefined ? undefined : unpack(bytes)
  }

  #merged(identityId: string): Merged {
    const facts: Facts = new Map()
    let version = 0n
    for (const owner of this.#ownersOf(identityId)) {
      for (const [slot, fact] of factsOf(this.#ofOwner(owner, identityId))) {
        const known = facts.get(slot)
        if (known === undefined || fact.version >= known.version) facts.set(slot, fact)
        if (fact.version > version) version = fact.version
      }
    }
    return { facts, version }
  }

  /** What was told longest ago makes room, but for the facts that are `fresh`. */
  #publish(
    identityId: string,
    moves: bigint,
    facts: Facts,
    fresh: ReadonlySet<string>,
  ): ReportOutcome {
    let bytes = pack(moves, facts)
    for (const [slot] of inOrder(facts)) {
      if (bytes.length <= SOFT_VALUE_BYTES_MAX) break
      if (fresh.has(slot)) continue
      facts.delete(slot)
      bytes = pack(moves, facts)
    }
    if (bytes.length > SOFT_VALUE_BYTES_MAX) return 'tooLarge'
    if (!this.#topic.publish(identityId, bytes)) return 'full'
    this.#here.add(identityId)
    return 'taken'
  }
}

function isOverridden(fact: ToldFact, counting: ToldFact | undefined): boolean {
  return counting?.version !== fact.version
}

/** The oldest first; of facts on two things told at once, in one order on all controllers. */
function inOrder(facts: Facts): (readonly [slot: string, fact: ToldFact])[] {
  return [...facts].sort(([slotA, a], [slotB, b]) => {
    if (a.version !== b.version) return a.version < b.version ? -1 : 1
    return slotA < slotB ? -1 : 1
  })
}

function pack(moves: bigint, facts: Facts): Uint8Array {
  return toBinary(
    ToldPostureSchema,
    create(ToldPostureSchema, { moves, facts: [...facts.values()] }),
  )
}

/** @throws when the bytes are none, or a number in them is beyond a safe integer. */
function unpack(bytes: Uint8Array): ToldPosture {
  const told = fromBinary(ToldPostureSchema, bytes)
  integer(told.moves)
  for (const { version, atMs, what } of told.facts) {
    integer(version)
    integer(atMs)
    if (what.case === 'endpoint') {
      integer(what.value.wokenAtMs)
      integer(what.value.unlockedAtMs)
    }
  }
  return told
}

function factsOf(told: ToldPosture | undefined): Facts {
  const facts: Facts = new Map()
  for (const fact of told?.facts ?? []) {
    const slot = slotOfFact(fact)
    if (slot !== null) facts.set(slot, fact)
  }
  return facts
}

const endpointSlot = (apiSessionId: string): string => `endpoint ${apiSessionId}`
/** One path is one process, whichever checks ask for it: clients answer each path once. */
const processSlot = (path: string, checkId: string): string =>
  path === '' ? `check ${checkId}` : `path ${path}`

function slotOf(report: PostureReport, apiSessionId: string): string {
  if (report.kind === 'endpoint') return endpointSlot(apiSessionId)
  if (report.kind === 'process') return processSlot(report.path, report.checkId)
  return report.kind
}

/** null: a newer controller knows of more. */
function slotOfFact({ what, checkId }: ToldFact): string | null {
  if (what.case === undefined) return null
  if (what.case === 'endpoint') return endpointSlot(what.value.apiSessionId)
  if (what.case === 'process') return processSlot(what.value.path, checkId)
  return what.case
}

type Word = Pick<ToldFact, 'checkId' | 'what'>

function whatOf(
  report: PostureReport,
  apiSessionId: string,
  known: ToldFact | undefined,
  nowMs: number,
): Word {
  const before = known?.what.case === 'endpoint' ? known.what.value : null
  const bare = create(ToldFactSchema, wordOf(report, apiSessionId, before, nowMs))
  return { checkId: bare.checkId, what: bare.what }
}

function wordOf(
  report: PostureReport,
  apiSessionId: string,
  before: { readonly wokenAtMs: bigint; readonly unlockedAtMs: bigint } | null,
  nowMs: number,
): Parameters<typeof create<typeof ToldFactSchema>>[1] {
  switch (report.kind) {
    case 'os': {
      const { checkId, type, version, build } = report
      return { checkId, what: { case: 'os', value: { type, version, build } } }
    }
    case 'domain':
      return {
        checkId: report.checkId,
        what: { case: 'domain', value: { domain: report.domain } },
      }
    case 'mac':
      return {
        checkId: report.checkId,
        what: { case: 'mac', value: { addresses: [...report.addresses] } },
      }
    case 'process': {
      const { checkId, path, isRunning: running, hash } = report
      const signerFingerprints = [...report.signerFingerprints]
      return {
        checkId,
        what: { case: 'process', value: { path, running, hash, signerFingerprints } },
      }
    }
    case 'endpoint': {
      const wokenAtMs = report.isWoken ? BigInt(nowMs) : (before?.wokenAtMs ?? 0n)
      const unlockedAtMs = report.isUnlocked ? BigInt(nowMs) : (before?.unlockedAtMs ?? 0n)
      return { what: { case: 'endpoint', value: { apiSessionId, wokenAtMs, unlockedAtMs } } }
    }
  }
}

function isSameWord(known: ToldFact, { checkId, what }: Word): boolean {
  const bare = (word: Word): Uint8Array =>
    toBinary(ToldFactSchema, create(ToldFactSchema, { checkId: word.checkId, what: word.what }))
  return Buffer.compare(bare(known), bare({ checkId, what })) === 0
}

function isOld({ atMs }: ToldFact, nowMs: number): boolean {
  return Math.abs(nowMs - integer(atMs)) >= postureLimits.postureRetoldMs
}
