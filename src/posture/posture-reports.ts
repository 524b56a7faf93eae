import { create } from '@bufbuild/protobuf'

import { type PostureFact, PostureFactSchema, type PostureRecord } from '../../proto/gen/soft_pb.ts'
import type { Clock } from '../lib/clock.ts'
import { toSafeInteger } from '../lib/text/safe-integer.ts'
import type {
  EndpointState,
  Posture,
  PostureReport,
  ProcessReport,
  PostureReportOutcome,
} from '../ports/posture.ts'
import { SOFT_VALUE_BYTES_MAX } from '../ports/soft-state.ts'
import type { OpenSoftTopic } from '../ports/soft-topics.ts'
import {
  type PostureFacts,
  postureFactsFromRecord,
  sortPostureFacts,
  isUnchangedSinceVerdict,
  kindsJudgedByRouter,
  encodePostureRecord,
  isSameReport,
  reportSubjectKey,
  decodePostureRecord,
  toPostureFact,
} from './posture-facts.ts'
import { addToSet, removeFromSet } from '../lib/keyed-sets.ts'

export const postureLimits = {
  /**
   * Minimum age at which a report that a client repeats unchanged is published again, because other
   * controllers show the time of the report.
   */
  postureRepeatMs: 60_000,
} as const

interface Merged {
  readonly facts: PostureFacts
  /** The highest version of all facts. */
  readonly version: bigint
}

interface Staged {
  readonly own: PostureRecord | undefined
  readonly facts: PostureFacts
  /** Subjects of the added reports. */
  readonly fresh: ReadonlySet<string>
  /** Whether all added reports equal the ones that count. */
  readonly isSame: boolean
  /** Whether a report must be published, even if it is equal. */
  readonly isDue: boolean
}

/**
 * Reports of devices, shared as soft state. Each controller publishes the reports that it received.
 * Of two reports about the same subject, the one with the higher version counts. A controller
 * chooses a version above all versions that it knows for the identity (Lamport clock); the caller
 * first gets the latest reports of the other controllers.
 * Equal versions are ordered by controller id. So all controllers agree without comparing wall
 * clocks.
 */
export class PostureReports {
  readonly #selfId: string
  readonly #topic: OpenSoftTopic<'posture'>
  readonly #clock: Pick<Clock, 'nowMs'>
  /** For each identity, the other controllers that have reports about it. */
  readonly #elsewhere = new Map<string, Set<string>>()
  /**
   * Identities about which this controller has received reports; the most recently checked identity
   * is last.
   */
  readonly #here = new Set<string>()
  readonly #listeners: ((identityId: string) => void)[] = []

  constructor(selfId: string, topic: OpenSoftTopic<'posture'>, clock: Pick<Clock, 'nowMs'>) {
    this.#selfId = selfId
    this.#topic = topic
    this.#clock = clock
    topic.onChange((owner, identityId, value) => {
      this.#noteOwner(owner, identityId, value !== undefined)
      // Drops this controller's reports that later reports have replaced. Otherwise they would
      // count again if the controller with the later reports failed.
      if (value !== undefined && this.#here.has(identityId))
        this.#dropWhere(identityId, isOverridden)
      if (value === undefined) for (const listener of this.#listeners) listener(identityId)
    })
  }

  /**
   * Registers a function that is called when the reports that another controller had about an
   * identity are gone: the controller has failed, or has withdrawn them.
   */
  onLost(listener: (identityId: string) => void): void {
    this.#listeners.push(listener)
  }

  /**
   * @param apiSessionId if set, the posture includes the result that a router reported for this API
   * session.
   */
  of(identityId: string, apiSessionId?: string): Posture {
    const { facts } = this.#merged(identityId)
    const posture: { -readonly [name in keyof Posture]: Posture[name] } = {
      os: null,
      domain: null,
      mac: null,
      processes: [],
    }
    const processes: ProcessReport[] = []
    for (const [, { what, checkId, atMs: reportedAt }] of sortPostureFacts(facts)) {
      const atMs = toSafeInteger(reportedAt)
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
    if (apiSessionId !== undefined)
      posture.judgedByRouter = kindsJudgedByRouter(facts, apiSessionId)
    return posture
  }

  /** Endpoint state of the identity, by API session. */
  endpointsOf(identityId: string): ReadonlyMap<string, EndpointState> {
    const found = new Map<string, EndpointState>()
    for (const { what } of this.#merged(identityId).facts.values()) {
      if (what.case !== 'endpoint') continue
      const { apiSessionId, wokenAtMs, unlockedAtMs } = what.value
      found.set(apiSessionId, {
        wokenAtMs: wokenAtMs === 0n ? null : toSafeInteger(wokenAtMs),
        unlockedAtMs: unlockedAtMs === 0n ? null : toSafeInteger(unlockedAtMs),
      })
    }
    return found
  }

  /** @returns whether there are no reports about the identity. */
  isUnheardOf(identityId: string): boolean {
    return this.#merged(identityId).facts.size === 0
  }

  /** Accepts all reports in a request, or none of them. */
  report(
    identityId: string,
    apiSessionId: string,
    reports: readonly PostureReport[],
  ): PostureReportOutcome {
    const { own, facts, fresh, isSame, isDue } = this.#staged(identityId, apiSessionId, reports)
    if (isSame && !isDue) return 'same'
    const outcome = this.#publish(identityId, own?.moves ?? 0n, facts, fresh)
    return outcome === 'taken' && isSame ? 'same' : outcome
  }

  /** Whether `report` would publish nothing, because this controller published the same reports. */
  isPublished(
    identityId: string,
    apiSessionId: string,
    reports: readonly PostureReport[],
  ): boolean {
    const { isSame, isDue } = this.#staged(identityId, apiSessionId, reports)
    return isSame && !isDue
  }

  /** This controller's facts about the identity with the reports added, without publishing them. */
  #staged(identityId: string, apiSessionId: string, reports: readonly PostureReport[]): Staged {
    const nowMs = this.#clock.nowMs()
    const merged = this.#merged(identityId)
    const own = this.#ofOwner(this.#selfId, identityId)
    const facts = postureFactsFromRecord(own)
    const fresh = new Set<string>()
    let { version } = merged
    let isSame = true
    let isDue = false
    for (const report of reports) {
      const slot = reportSubjectKey(report, apiSessionId)
      const known = merged.facts.get(slot)
      const what = toPostureFact(report, apiSessionId, known, nowMs)
      isSame &&= known !== undefined && isSameReport(known, what)
      if (report.kind === 'router') isSame &&= isUnchangedSinceVerdict(merged.facts, slot)
      // If only another controller has an equal report, stores it here as well: the report would be
      // lost if that controller failed.
      const isOwn = known !== undefined && facts.get(slot)?.version === known.version
      isDue ||= !isOwn || isOld(known, nowMs)
      version += 1n
      const fact = create(PostureFactSchema, { version, atMs: BigInt(nowMs), ...what })
      facts.set(slot, fact)
      merged.facts.set(slot, fact)
      fresh.add(slot)
    }
    return { own, facts, fresh, isSame, isDue }
  }

  /**
   * How often reports about an identity have changed the set of checks that it passes. Also counts
   * changes of the second factor, and wake-ups after which a check requires a new code. Decreases
   * only if a controller fails, or drops its reports because the identity has no API session.
   */
  moves(identityId: string): number {
    let moves = 0
    for (const owner of this.#ownersOf(identityId)) {
      moves += toSafeInteger(this.#ofOwner(owner, identityId)?.moves ?? 0n)
    }
    return moves
  }

  noteMove(identityId: string): void {
    const own = this.#ofOwner(this.#selfId, identityId)
    const facts = postureFactsFromRecord(own)
    this.#publish(identityId, (own?.moves ?? 0n) + 1n, facts, new Set())
  }

  /**
   * Identities about which this controller received reports, at most `max`; the least recently
   * checked are first.
   */
  reportedHere(max: number): readonly string[] {
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

  /**
   * Drops this controller's reports that belong to API sessions other than these, and those that
   * later reports have replaced. If the set is empty, drops all of its reports about the identity.
   */
  keepOnly(identityId: string, apiSessionIds: ReadonlySet<string>): void {
    if (apiSessionIds.size === 0) {
      this.#topic.withdraw(identityId)
      this.#here.delete(identityId)
      return
    }
    const isOver = ({ what }: PostureFact): boolean =>
      (what.case === 'endpoint' || what.case === 'router') &&
      !apiSessionIds.has(what.value.apiSessionId)
    this.#dropWhere(identityId, (fact, counting) => isOver(fact) || isOverridden(fact, counting))
  }

  /**
   * Drops facts that were reported to this controller.
   * @param isIdle called with such a fact, and with the fact that currently counts for the same
   * subject; returns true if the fact that was reported to this controller is to be dropped.
   */
  #dropWhere(
    identityId: string,
    isIdle: (fact: PostureFact, counting: PostureFact | undefined) => boolean,
  ): void {
    const own = this.#ofOwner(this.#selfId, identityId)
    if (own === undefined) return
    const merged = this.#merged(identityId)
    const facts = postureFactsFromRecord(own)
    for (const [slot, fact] of facts) {
      if (isIdle(fact, merged.facts.get(slot))) facts.delete(slot)
    }
    if (facts.size < own.facts.length) this.#publish(identityId, own.moves, facts, new Set())
  }

  #noteOwner(owner: string, identityId: string, hasReports: boolean): void {
    if (owner === this.#selfId) return
    if (hasReports) addToSet(this.#elsewhere, identityId, owner)
    else removeFromSet(this.#elsewhere, identityId, owner)
  }

  /**
   * Controllers that may have reports about the identity; sorted, so that every controller merges
   * the reports in the same order.
   */
  #ownersOf(identityId: string): string[] {
    return [this.#selfId, ...(this.#elsewhere.get(identityId) ?? [])].sort()
  }

  #ofOwner(owner: string, identityId: string): PostureRecord | undefined {
    const bytes = this.#topic.get(owner, identityId)
    return bytes === undefined ? undefined : decodePostureRecord(bytes)
  }

  #merged(identityId: string): Merged {
    const facts: PostureFacts = new Map()
    let version = 0n
    for (const owner of this.#ownersOf(identityId)) {
      for (const [slot, fact] of postureFactsFromRecord(this.#ofOwner(owner, identityId))) {
        const known = facts.get(slot)
        if (known === undefined || fact.version >= known.version) facts.set(slot, fact)
        if (fact.version > version) version = fact.version
      }
    }
    return { facts, version }
  }

  /**
   * Publishes facts. If they are too large, the oldest facts are dropped, but never those in
   * `fresh`.
   */
  #publish(
    identityId: string,
    moves: bigint,
    facts: PostureFacts,
    fresh: ReadonlySet<string>,
  ): PostureReportOutcome {
    let bytes = encodePostureRecord(moves, facts)
    for (const [slot] of sortPostureFacts(facts)) {
      if (bytes.length <= SOFT_VALUE_BYTES_MAX) break
      if (fresh.has(slot)) continue
      facts.delete(slot)
      bytes = encodePostureRecord(moves, facts)
    }
    if (bytes.length > SOFT_VALUE_BYTES_MAX) return 'tooLarge'
    if (!this.#topic.publish(identityId, bytes)) return 'full'
    this.#here.add(identityId)
    return 'taken'
  }
}

function isOverridden(fact: PostureFact, counting: PostureFact | undefined): boolean {
  return counting?.version !== fact.version
}

function isOld({ atMs }: PostureFact, nowMs: number): boolean {
  return Math.abs(nowMs - toSafeInteger(atMs)) >= postureLimits.postureRepeatMs
}
