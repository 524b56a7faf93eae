import type { Clock } from '../../lib/clock.ts'
import type { ApiAddress } from '../../ports/cluster-view.ts'
import type { NodeId } from '../../raft/types.ts'

/** A member's last description of itself, shown while the member is away. */
export interface KnownMember {
  readonly version: string
  readonly startedAtMs: number
  readonly apiAddresses: readonly ApiAddress[]
  readonly certificatePem: string
}

/** Stores descriptions for the next start of this controller. */
export interface MemberMemory {
  /** The stored descriptions; empty when there are none or they are unreadable. */
  load(): ReadonlyMap<NodeId, KnownMember>
  /** Resolves when they are on disk; the caller logs errors. */
  save(members: ReadonlyMap<NodeId, KnownMember>): Promise<void>
}

const SAVE_MS_MIN = 60_000

/**
 * Descriptions of members, including those that are away. Stored after changes, at most once a
 * minute, and at shutdown.
 */
export class KnownMembers {
  readonly #memory: MemberMemory | null
  readonly #clock: Clock
  readonly #onError: (error: unknown) => void
  readonly #members: Map<NodeId, KnownMember>
  #isChanged = false
  #saving: Promise<void> | null = null
  #savedMs = -Infinity

  constructor(memory: MemberMemory | null, clock: Clock, onError: (error: unknown) => void) {
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

  /** Drops former members, and stores changes that are due. */
  keep(ids: ReadonlySet<NodeId>): void {
    for (const id of this.#members.keys()) {
      if (ids.has(id)) continue
      this.#members.delete(id)
      this.#isChanged = true
    }
    if (this.#clock.monotonicMs() - this.#savedMs >= SAVE_MS_MIN) void this.save()
  }

  /** Resolves once all changes are on disk, or saving has failed. */
  async save(): Promise<void> {
    while (this.#saving !== null) await this.#saving
    if (this.#memory === null || !this.#isChanged) return
    this.#saving = this.#saveTo(this.#memory)
    await this.#saving
  }

  async #saveTo(memory: MemberMemory): Promise<void> {
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
