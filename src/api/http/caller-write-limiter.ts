import { CommandKind } from '../../../proto/gen/command_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import { Problem } from '../../lib/problems.ts'
import { WindowedQuota } from '../../lib/bounds/quota.ts'
import type { Actor } from '../../ports/actor.ts'
import type { AppliedProposal, ProposalInput, Proposer } from '../../ports/proposer.ts'

/**
 * Maximum writes per minute on this controller by callers that need no granted permission: an
 * identity's writes about itself, and a router's writes with its certificate. Each write adds an
 * audit record, and only a limited number of audit records is stored.
 */
export const callerWriteLimits = {
  /** Maximum writes of one identity per window; above that: 429 SERVER_TOO_MANY_REQUESTS. */
  identityWritesMax: 1200,
  /**
   * Maximum writes of one kind by one identity per window, except service sessions; above that: 429
   * SERVER_TOO_MANY_REQUESTS.
   */
  identityWritesOfKindMax: 120,
  /**
   * Maximum writes of one router per minute: after a reconnect, a router that hosts many services
   * creates all its terminators again.
   */
  routerWritesMax: 12_000,
  /**
   * Maximum writes of one kind by one router per minute to renew its certificates: renewals in one
   * step, begun renewals, or confirmed renewals.
   */
  routerExtensionsMax: 12,
  /**
   * Maximum writes of all callers together per window; above that: 429 SERVER_TOO_MANY_REQUESTS.
   */
  writesMax: 1_000_000,
  /**
   * Length of the window in which writes are counted. `Retry-After` in the refusal contains the
   * time until the window ends.
   */
  writeWindowMs: 60_000,
}

type CallerWriteLimits = Readonly<typeof callerWriteLimits>

/**
 * Kinds of writes without a separate limit: a client may use its whole limit for one of these
 * kinds, because a client that uses or hosts many services makes many such writes.
 */
const frequent: ReadonlySet<CommandKind> = new Set([
  CommandKind.SERVICE_SESSION_CREATE,
  CommandKind.SERVICE_SESSION_END,
])

const extensions: ReadonlySet<CommandKind> = new Set([
  CommandKind.ROUTER_EXTEND,
  CommandKind.ROUTER_EXTEND_BEGIN,
  CommandKind.ROUTER_EXTEND_VERIFY,
])

interface Allowed {
  readonly caller: string
  readonly allMax: number
  /** Key of the caller's writes of this kind. */
  readonly kindKey: string
  /** null for a kind without a separate limit. */
  readonly kindMax: number | null
}

/**
 * Limits the writes per minute of each caller that needs no granted permission, for each kind of
 * write and in total. Passes all other writes on.
 */
export class CallerWriteLimiter implements Proposer {
  readonly #proposer: Proposer
  readonly #limits: CallerWriteLimits
  /** Counts all writes. */
  readonly #writes: WindowedQuota
  /** Counts the writes whose kind has a separate limit, by caller and kind. */
  readonly #writesOfKinds: WindowedQuota

  constructor(proposer: Proposer, clock: Pick<Clock, 'monotonicMs'>, limits = callerWriteLimits) {
    this.#proposer = proposer
    this.#limits = limits
    const { identityWritesMax: ofOneMax, writesMax: allMax, writeWindowMs: windowMs } = limits
    this.#writes = new WindowedQuota({ ofOneMax, allMax, windowMs }, clock)
    this.#writesOfKinds = new WindowedQuota({ ofOneMax, allMax, windowMs }, clock)
  }

  propose(input: ProposalInput): Promise<AppliedProposal> {
    const allowed = allowedTo(input, this.#limits)
    if (allowed === null) return this.#proposer.propose(input)
    const exhausted = this.#exhaustedQuota(allowed)
    if (exhausted !== null) return Promise.reject(refusal(exhausted))
    const { caller, allMax, kindKey, kindMax } = allowed
    this.#writes.take(caller, allMax)
    if (kindMax !== null) this.#writesOfKinds.take(kindKey, kindMax)
    return this.#proposer.propose(input)
  }

  /**
   * Checks the limit without counting a write. Call it before expensive work for the write, such as
   * signing a certificate.
   * @throws {Problem} SERVER_TOO_MANY_REQUESTS when `propose` would refuse the write.
   */
  judge(write: Pick<ProposalInput, 'actor' | 'kind'>): void {
    const allowed = allowedTo(write, this.#limits)
    const exhausted = allowed === null ? null : this.#exhaustedQuota(allowed)
    if (exhausted !== null) throw refusal(exhausted)
  }

  /** The quota that refuses another write of the caller; null if there is none. */
  #exhaustedQuota({ caller, allMax, kindKey, kindMax }: Allowed): WindowedQuota | null {
    const [all, kinds] = [this.#writes, this.#writesOfKinds]
    if (kindMax !== null && !kinds.hasLeft(kindKey, kindMax)) return kinds
    // @guard audit-pushed-out--all
    return all.hasLeft(caller, allMax) ? null : all
  }
}

function refusal(exhausted: WindowedQuota): Problem {
  const retryAfterSeconds = Math.ceil(exhausted.leftMs / 1000)
  const detail = 'too many writes of this caller in one minute'
  return new Problem('SERVER_TOO_MANY_REQUESTS', { detail, retryAfterSeconds })
}

/**
 * The limits that apply to a write; null for a write that is not limited here: with a granted
 * permission, by the system or host user, or by an identity that enrolls.
 */
function allowedTo(
  { actor, kind }: Pick<ProposalInput, 'actor' | 'kind'>,
  limits: CallerWriteLimits,
): Allowed | null {
  const caller = callerOf(actor)
  if (caller === null) return null
  const kindKey = `${caller} ${kind}`
  if (caller.startsWith('router ')) {
    const { routerWritesMax, routerExtensionsMax } = limits
    // @guard audit-pushed-out--kind
    const kindMax = extensions.has(kind) ? routerExtensionsMax : null
    return { caller, allMax: routerWritesMax, kindKey, kindMax }
  }
  const { identityWritesMax, identityWritesOfKindMax } = limits
  const kindMax = frequent.has(kind) ? null : identityWritesOfKindMax
  return { caller, allMax: identityWritesMax, kindKey, kindMax }
}

function callerOf({ case: of, value }: Actor): string | null {
  if (of === 'enrollment') return value.routerId === '' ? null : `router ${value.routerId}`
  if (of !== 'session') return null
  const isOfEverySession = value.permission === 'session' || value.permission === 'partial'
  // @guard audit-pushed-out--session
  return isOfEverySession ? `identity ${value.identityId}` : null
}
