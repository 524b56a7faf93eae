import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  type Configuration as ConfigurationRecord,
  ConfigurationSchema,
  type Member,
} from '../../../proto/gen/membership_pb.ts'
import {
  AddressClaimSchema,
  type ForwardFrame,
  type Roster as RosterFrame,
  RosterSchema,
} from '../../../proto/gen/mesh_pb.ts'
import type { MembershipRecord } from '../../ports/membership-cache.ts'
import { hasMemberStore } from '../../raft/configuration.ts'
import type { CoreStatus } from '../../raft/effects.ts'
import type { Index, NodeId } from '../../raft/types.ts'
import type { AddressBook } from './address-book.ts'
import type { ConsensusThreadEvent } from '../thread-channel.ts'
import { LogThrottle } from '../logger.ts'
import type { MeshRefusal } from './mesh-refusal.ts'
import { toSafeInteger } from '../message-codec.ts'
import type { RollbackDetector } from './rollback-detector.ts'

interface MembershipCacheDeps {
  readonly selfId: NodeId
  readonly storeId: Uint8Array
  readonly generation: number
  readonly book: AddressBook
  /**
   * Detects members whose disk was rolled back. The membership cache stores the positions that it
   * has recorded.
   */
  readonly witness: Pick<RollbackDetector, 'marks' | 'takeChanged'>
  readonly monotonicMs: () => number
  /** Called when the set of members that this one accepts and dials may have changed. */
  readonly onView: (view: MembershipView) => void
  /** Sends a frame to every connected peer. */
  readonly broadcast: (frame: ForwardFrame['frame']) => void
  readonly post: (event: ConsensusThreadEvent) => void
}

interface MembershipView {
  readonly members: readonly Member[]
  /** Index of the newest configuration known to be committed. */
  readonly committedIndex: Index
}

interface Known {
  readonly index: Index
  readonly record: ConfigurationRecord
}

/** Whether, and how, the newest committed configuration lists this member. */
type Standing = 'listed' | 'other-store' | 'absent'

/** Limits for a received frame. */
export const MEMBERSHIP_CACHE_LIMITS = {
  /**
   * Maximum bytes of the encoded configuration in one frame; a larger configuration is ignored.
   */
  configurationBytesMax: 256 * 1024,
  /** Maximum address claims that are read from one frame; further claims are ignored. */
  claimsMax: 256,
} as const

const POST_MS = 1000
const SELF_REFUSED_MS = 1000

/**
 * Members that may use the mesh. Normally the log of this member decides: the current
 * configuration, plus members of the last committed configuration, because a removal takes effect
 * only once it is committed. On a member that lags, the log alone would refuse newer members and
 * accept removed ones. Members therefore send each other the newest configuration that they know to
 * be committed, and this configuration decides until the log of this member has caught up.
 */
export class MembershipCache {
  readonly #deps: MembershipCacheDeps
  readonly #throttle = new LogThrottle({ windowMs: SELF_REFUSED_MS, keysMax: 256 })
  #inForce: Known & { readonly isCommitted: boolean }
  /** The newest configuration that the log or state of this member knows to be committed. */
  #committed: Known
  #heard: Known | null
  #view: MembershipView
  #isFrameDue = true
  #isPostDue = true
  #postedMs = -Infinity

  /**
   * @param heard members that an earlier process stored, or that the controllers that admitted this
   * member sent.
   */
  constructor(status: CoreStatus, heard: MembershipRecord | null, deps: MembershipCacheDeps) {
    this.#deps = deps
    this.#heard = heard === null ? null : decode(heard.configuration, heard.index)
    this.#inForce = inForceOf(status)
    this.#committed = committedOf(status)
    this.#view = this.#makeView()
    deps.book.setMembers(byId(this.#view.members))
    for (const claim of heard?.claims ?? []) deps.book.take(decodeClaim(claim))
  }

  get view(): MembershipView {
    return this.#view
  }

  onStatus(status: CoreStatus): void {
    const before = this.#inForce
    const isSame =
      before.record === status.configurationRecord &&
      before.isCommitted === status.isConfigurationCommitted &&
      this.#committed.index === status.committedConfigurationIndex
    if (isSame) return
    this.#change(this.#deps.selfId, () => {
      this.#inForce = inForceOf(status)
      this.#committed = committedOf(status)
    })
  }

  /**
   * Stores a received configuration that is newer than the known ones, or that shows that the
   * current one is committed. Also stores received claims that are newer than the known ones.
   * @param from a member that has proven its pinned key.
   */
  take(from: NodeId, { configuration, index, claims }: RosterFrame): void {
    const at = toSafeInteger(index)
    const isNews = at > this.#newest().index && at > this.#inForce.index
    const isTie = at === this.#inForce.index && !this.#inForce.isCommitted
    if (
      (isNews || isTie) &&
      configuration.length <= MEMBERSHIP_CACHE_LIMITS.configurationBytesMax
    ) {
      const heard = decode(configuration, at)
      if (heard !== null) this.#change(from, () => (this.#heard = heard))
    }
    let isClaimNews = false
    for (const claim of claims.slice(0, MEMBERSHIP_CACHE_LIMITS.claimsMax)) {
      isClaimNews = this.#deps.book.take(claim) || isClaimNews
    }
    if (isClaimNews) this.onClaims()
  }

  /** Called when the address book has changed. */
  onClaims(): void {
    this.#isFrameDue = true
    this.#isPostDue = true
    this.#deps.onView(this.#view)
  }

  /**
   * The frame with the newest configuration and claims. This member sends it to a peer when the
   * link to it becomes ready, and to all peers after changes.
   */
  frame(): ForwardFrame['frame'] {
    const newest = this.#newest()
    const configuration = toBinary(ConfigurationSchema, newest.record)
    const claims = this.#deps.book.claims()
    const value = create(RosterSchema, { configuration, index: BigInt(newest.index), claims })
    return { case: 'roster', value }
  }

  /** Called when a peer with a pinned key refuses this member. */
  onRefused(by: NodeId, { reason, configurationIndex: index, generation }: MeshRefusal): void {
    // This check comes first: a newer generation shows that an operator recovered the cluster
    // without this member, whatever reason the refusal gives.
    if (generation > this.#deps.generation) {
      this.#report(by, 'fenced', index, generation)
      return
    }
    const newest = this.#newest()
    // Only a configuration committed after one that lists this disk can have removed this member.
    const isTakenOut = this.#standing(newest) === 'listed' && index > newest.index
    if (reason === 'rolled-back') this.#report(by, 'rolled-back', index)
    else if (reason === 'not-a-member') {
      this.#report(by, isTakenOut ? 'removed' : 'not-yet-a-member', index)
    } else if (reason === 'other-store') {
      this.#report(by, isTakenOut ? 'other-store' : 'not-yet-a-member', index)
    }
  }

  /**
   * Sends changes to the peers, and to the main thread at most once a second. Called periodically.
   */
  flush(): void {
    if (this.#isFrameDue) {
      this.#isFrameDue = false
      this.#deps.broadcast(this.frame())
    }
    if (this.#deps.monotonicMs() - this.#postedMs >= POST_MS) this.post()
  }

  /** Sends changes of the membership cache to the main thread, if there are any. */
  post(): void {
    const newest = this.#newest()
    const { witness, monotonicMs } = this.#deps
    if (witness.takeChanged()) this.#isPostDue = true
    if (!this.#isPostDue) return
    this.#isPostDue = false
    this.#postedMs = monotonicMs()
    const configuration = toBinary(ConfigurationSchema, newest.record)
    const claims = this.#deps.book.claims().map((claim) => toBinary(AddressClaimSchema, claim))
    const roster = { configuration, index: newest.index, claims, marks: witness.marks() }
    this.#deps.post({ type: 'roster', roster })
  }

  #change(by: NodeId, apply: () => void): void {
    const before = this.#newest()
    apply()
    this.#view = this.#makeView()
    this.#isFrameDue = true
    this.#isPostDue = true
    this.#deps.onView(this.#view)
    const after = this.#newest()
    if (this.#standing(before) !== 'listed') return
    const standing = this.#standing(after)
    if (standing === 'absent') this.#report(by, 'removed', after.index)
    else if (standing === 'other-store') this.#report(by, 'other-store', after.index)
  }

  #standing({ record }: Known): Standing {
    const { selfId, storeId } = this.#deps
    if (hasMemberStore(record, selfId, storeId)) return 'listed'
    return hasMemberStore(record, selfId, null) ? 'other-store' : 'absent'
  }

  #newest(): Known {
    // @guard 36-joiner-believes-its-old-removal
    const heard = this.#heard
    return heard !== null && heard.index > this.#committed.index ? heard : this.#committed
  }

  #makeView(): MembershipView {
    const [heard, inForce, committed] = [this.#heard, this.#inForce, this.#committed]
    const committedIndex = this.#newest().index
    const isHeardNewer =
      heard !== null &&
      (heard.index > inForce.index || (heard.index === inForce.index && !inForce.isCommitted))
    if (isHeardNewer) return { members: heard.record.members, committedIndex }
    const { members } = inForce.record
    const listed = new Set(members.map(({ id }) => id))
    const staying = (committed?.record.members ?? []).filter(({ id }) => !listed.has(id))
    return { members: [...members, ...staying], committedIndex }
  }

  #report(
    by: NodeId,
    reason: Extract<ConsensusThreadEvent, { type: 'selfRefused' }>['reason'],
    index: Index,
    generation = this.#deps.generation,
  ): void {
    if (!this.#throttle.allow(`${by} ${reason}`, this.#deps.monotonicMs())) return
    this.#deps.post({ type: 'selfRefused', reason, by, index, generation })
  }
}

function committedOf(status: CoreStatus): Known {
  const { committedConfigurationRecord: record, committedConfigurationIndex: index } = status
  return { record, index }
}

function inForceOf(status: CoreStatus): Known & { readonly isCommitted: boolean } {
  const { configurationRecord: record, configurationIndex: index } = status
  return { record, index, isCommitted: status.isConfigurationCommitted }
}

function decode(configuration: Uint8Array, index: Index): Known | null {
  try {
    const record = fromBinary(ConfigurationSchema, configuration)
    return record.members.some(({ voter }) => voter) ? { record, index } : null
  } catch {
    return null
  }
}

function decodeClaim(bytes: Uint8Array): RosterFrame['claims'][number] | undefined {
  try {
    return fromBinary(AddressClaimSchema, bytes)
  } catch {
    return undefined
  }
}

function byId(members: readonly Member[]): ReadonlyMap<NodeId, Member> {
  return new Map(members.map((member) => [member.id, member]))
}
