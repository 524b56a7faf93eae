import { create, toBinary } from '@bufbuild/protobuf'
import { CommandKind, RouterPresenceSchema } from '../../proto/gen/command_pb.ts'
import type { Clock } from '../lib/clock.ts'
import type { PeriodicScheduler } from '../lib/periodic-scheduler.ts'
import { Problem } from '../lib/problems.ts'
import { SYSTEM_ACTOR } from '../ports/actor.ts'
import { LAST_SEEN_FEATURE_LEVEL } from '../ports/feature-level.ts'
import type { Proposer } from '../ports/proposer.ts'
import type { RouterStatuses } from '../ports/router-status.ts'
import type { RouterLogger } from './router-channels.ts'
import { routerLimits } from './limits.ts'

/** A router with the times in its replicated record, UTC ms. */
interface LoggedRouter {
  readonly id: string
  readonly onlineSince: number | null
  readonly offlineSince: number | null
}

interface RouterPresenceLogDeps {
  readonly statuses: Pick<RouterStatuses, 'presenceOf'>
  readonly state: { readonly featureLevel: number; routers(): Iterable<LoggedRouter> }
  readonly proposer: Pick<Proposer, 'propose'>
  readonly isLeader: () => boolean
  readonly clock: Clock
  readonly log: Pick<RouterLogger, 'warn'>
  readonly limits?: Pick<
    typeof routerLimits,
    'routerPresenceLogMs' | 'routerPresenceGraceMs' | 'routerPresenceBatchMax'
  >
}

interface Mark {
  readonly id: string
  readonly atMs: bigint
  readonly online: boolean
}

/**
 * Stores since when each router is online or offline, so that this time survives a restart of all
 * controllers. The leader checks once a minute and writes only changes, at most one batch at a
 * time.
 */
export class RouterPresenceLog {
  readonly #deps: RouterPresenceLogDeps
  readonly #limits: NonNullable<RouterPresenceLogDeps['limits']>
  #leadsSinceMs: number | null = null
  #isWriting = false

  constructor(deps: RouterPresenceLogDeps) {
    this.#deps = deps
    this.#limits = deps.limits ?? routerLimits
  }

  /** @returns a function that stops the periodic check. */
  start(scheduler: PeriodicScheduler): () => void {
    return scheduler.every(this.#limits.routerPresenceLogMs, () => void this.write())
  }

  async write(): Promise<void> {
    const { isLeader, clock, state, proposer, log } = this.#deps
    if (!isLeader()) {
      this.#leadsSinceMs = null
      return
    }
    this.#leadsSinceMs ??= clock.monotonicMs()
    if (this.#isWriting || state.featureLevel < LAST_SEEN_FEATURE_LEVEL) return
    const marks = this.#marks()
    if (marks.length === 0) return
    this.#isWriting = true
    try {
      const message = create(RouterPresenceSchema, { marks })
      await proposer.propose({
        kind: CommandKind.ROUTER_PRESENCE,
        payload: toBinary(RouterPresenceSchema, message),
        actor: SYSTEM_ACTOR,
      })
    } catch (error) {
      // The write fails while there is no leader; the next periodic check tries again.
      if (!(error instanceof Problem))
        log.warn({ err: error }, 'cannot store since when routers are online')
    } finally {
      this.#isWriting = false
    }
  }

  #marks(): Mark[] {
    const { state, clock } = this.#deps
    const ledMs = clock.monotonicMs() - (this.#leadsSinceMs ?? clock.monotonicMs())
    const mayBeLost = ledMs >= this.#limits.routerPresenceGraceMs
    const marks: Mark[] = []
    for (const router of state.routers()) {
      const mark = this.#markOf(router, mayBeLost)
      if (mark !== null) marks.push(mark)
      if (marks.length >= this.#limits.routerPresenceBatchMax) break
    }
    return marks
  }

  /**
   * The change to the router's record; null if the record is correct, or if no controller knows the
   * state of the router yet.
   */
  #markOf({ id, onlineSince, offlineSince }: LoggedRouter, mayBeLost: boolean): Mark | null {
    const { statuses, clock } = this.#deps
    const { connectedMs, returnedMs, lostMs } = statuses.presenceOf(id)
    if (connectedMs !== null) {
      const atMs = returnedMs ?? connectedMs
      const isKnown = onlineSince ? returnedMs === null || returnedMs <= onlineSince : false
      return isKnown ? null : { id, atMs: BigInt(atMs), online: true }
    }
    if (lostMs !== null) {
      const isKnown = offlineSince ? lostMs <= offlineSince : false
      return isKnown ? null : { id, atMs: BigInt(lostMs), online: false }
    }
    // The record says online, but no controller has or had a channel to the router since the start.
    // It is recorded as offline only after a delay, because routers need time to connect after a
    // restart.
    if (!onlineSince || !mayBeLost) return null
    return { id, atMs: BigInt(clock.nowMs()), online: false }
  }
}
