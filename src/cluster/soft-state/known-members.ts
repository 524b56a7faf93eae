import { createHash } from 'node:crypto'

import type { Clock } from '../../lib/clock.ts'
import type { ApiAddress } from '../../ports/cluster-view.ts'
import type { NodeId } from '../../raft/types.ts'

/**
 * A member's last description of itself, which controllers show while the member is disconnected.
 */
export interface KnownMember {
  readonly version: string
  readonly startedAtMs: number
  readonly apiAddresses: readonly ApiAddress[]
  readonly certificatePem: string
  /**
   * Time at which this controller learned that the member was removed, UTC ms; absent: it is still
   * a member.
   */
  readonly removedAtMs?: number
}

/** A removed member. Its key still verifies refresh tokens that it signed as a member. */
export interface FormerMember {
  readonly certificatePem: string
  readonly removedAtMs: number
}

/** Stores descriptions for the next start of this controller. */
export interface MemberDescriptionStore {
  /** The stored descriptions; empty when there are none or they are unreadable. */
  load(): ReadonlyMap<NodeId, KnownMember>
  /** Resolves when the descriptions are on disk; the caller logs errors. */
  save(members: ReadonlyMap<NodeId, KnownMember>): Promise<void>
}

const SAVE_MS_MIN = 60_000
const FORMER_MAX = 16
/** Time for which a former member is stored: the longest lifetime of a refresh token. */
const FORMER_MS_MAX = 90 * 24 * 60 * 60_000
/**
 * No controller id can contain this prefix. It distinguishes a former member from a new controller
 * with the same id.
 */
const FORMER_PREFIX = 'former:'

/**
 * Descriptions of members, including disconnected ones. They are stored after changes, at most once
 * a minute, and at shutdown.
 */
export class MemberDescriptions {
  readonly #memory: MemberDescriptionStore | null
  readonly #clock: Clock
  readonly #onError: (error: unknown) => void
  readonly #members: Map<NodeId, KnownMember>
  #isChanged = false
  #saving: Promise<void> | null = null
  #savedMs = -Infinity

  constructor(
    memory: MemberDescriptionStore | null,
    clock: Clock,
    onError: (error: unknown) => void,
  ) {
    this.#memory = memory
    this.#clock = clock
    this.#onError = onError
    this.#members = new Map(memory?.load() ?? [])
  }

  of(id: NodeId): KnownMember | null {
    return this.#members.get(id) ?? null
  }

  note(id: NodeId, said: KnownMember): void {
    if (said.startedAtMs === 0) return
    const known = this.#members.get(id)
    if (known !== undefined && isSame(known, said)) return
    this.#members.set(id, said)
    this.#isChanged = true
  }

  /** Removed members, in the order of their removal. */
  former(): readonly FormerMember[] {
    return [...this.#members.values()].flatMap(({ certificatePem, removedAtMs }) =>
      removedAtMs === undefined ? [] : [{ certificatePem, removedAtMs }],
    )
  }

  /**
   * Keeps the descriptions of the members with these ids. Members with other ids become former
   * members: those with a certificate are kept for it, at most `FORMER_MAX`, for `FORMER_MS_MAX`.
   * Writes changes to the file if the last write is long enough ago.
   */
  keep(ids: ReadonlySet<NodeId>): void {
    for (const [key, member] of Array.from(this.#members)) this.#judge(key, member, ids)
    if (this.#clock.monotonicMs() - this.#savedMs >= SAVE_MS_MIN) void this.save()
  }

  #judge(key: string, member: KnownMember, ids: ReadonlySet<NodeId>): void {
    const { removedAtMs, certificatePem } = member
    const nowMs = this.#clock.nowMs()
    const isKept = removedAtMs === undefined ? ids.has(key) : nowMs - removedAtMs < FORMER_MS_MAX
    if (isKept) return
    this.#members.delete(key)
    this.#isChanged = true
    if (removedAtMs !== undefined || certificatePem === '') return
    const digest = createHash('sha256').update(certificatePem).digest('hex')
    this.#members.set(FORMER_PREFIX + digest, { ...member, removedAtMs: nowMs })
    const former = [...this.#members.keys()].filter((one) => one.startsWith(FORMER_PREFIX))
    for (const one of former.slice(0, -FORMER_MAX)) this.#members.delete(one)
  }

  /** Resolves once all changes are on disk, or saving has failed. */
  async save(): Promise<void> {
    while (this.#saving !== null) await this.#saving
    if (this.#memory === null || !this.#isChanged) return
    this.#saving = this.#saveTo(this.#memory)
    await this.#saving
  }

  async #saveTo(memory: MemberDescriptionStore): Promise<void> {
    this.#isChanged = false
    this.#savedMs = this.#clock.monotonicMs()
    try {
      await memory.save(this.#members)
    } catch (error) {
      this.#onError(error)
    } finally {
      this.#saving = null
    }
  }
}

function isSame(a: KnownMember, b: KnownMember): boolean {
  return (
    a.version === b.version &&
    a.startedAtMs === b.startedAtMs &&
    a.certificatePem === b.certificatePem &&
    a.apiAddresses.length === b.apiAddresses.length &&
    a.apiAddresses.every(({ api, url }, at) => {
      const other = b.apiAddresses[at]
      return other !== undefined && other.api === api && other.url === url
    })
  )
}
