import { createHash } from 'node:crypto'

import { create, fromBinary } from '@bufbuild/protobuf'

import { CommandSchema } from '../../proto/gen/command_pb.ts'
import { type Configuration, ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import { ProposerDeduplication } from '../../src/fsm/records/deduplication.ts'
import type {
  AppliedEntry,
  StateDigests,
  ReplicatedStateMachine,
} from '../../src/ports/replicated-state-machine.ts'
import type {
  ApplyProgress,
  StorePosition,
  StoreReceiver,
  StoreSnapshot,
} from '../../src/ports/state-store.ts'
import type { Entry, Index, Position } from '../../src/raft/types.ts'

interface Counted {
  position: Position
  timeMs: number
  /** Encoded configuration, base64. */
  configuration: string
  count: number
  /** Hash chained over every command that took effect; equal only for equal histories. */
  digest: string
  /** For each store ID, the deduplication window as the real state machine stores it. */
  origins: Record<string, ReturnType<ProposerDeduplication['stored']>>
}

const empty = (): Counted => ({
  position: { term: 0, index: 0 },
  timeMs: 0,
  configuration: '',
  count: 0,
  digest: '',
  origins: {},
})

/**
 * The smallest state machine that implements its interface. It counts the commands that take
 * effect, each exactly once; its store is a copy of its state that it makes from time to time. For
 * benchmarks of the Raft engine, and for tests of code that drives a state machine.
 */
export class CounterMachine implements ReplicatedStateMachine {
  readonly featureLevel = 1
  readonly setbackMs = 0
  onPersisted: (position: Position) => void = () => undefined
  onFailed: (error: Error) => void = () => undefined
  /** Called for each command that takes effect. */
  onCommand: (payload: Uint8Array) => void = () => undefined
  /** Additional bytes in snapshots, so that they consist of many chunks. */
  snapshotPaddingBytes = 0
  readonly #persistEntries: number
  readonly #isChained: boolean
  #live = empty()
  #kept = empty()
  #windows = new ProposerDeduplication()
  #waiters: { index: Index; resolve: (isReached: boolean) => void }[] = []

  constructor(options: { readonly persistEntries: number; readonly isChained: boolean }) {
    this.#persistEntries = options.persistEntries
    this.#isChained = options.isChained
  }

  get logTimeMs(): number {
    return this.#live.timeMs
  }

  get count(): number {
    return this.#live.count
  }

  progress(): ApplyProgress {
    return { applied: this.#live.position.index, persisted: this.#kept.position.index }
  }

  persistedMark(): { position: Position; configuration: Configuration; timeMs: number } {
    const { position, timeMs, configuration } = this.#kept
    const bytes = Uint8Array.from(Buffer.from(configuration, 'base64'))
    const record =
      bytes.length === 0 ? create(ConfigurationSchema) : fromBinary(ConfigurationSchema, bytes)
    return { position, configuration: record, timeMs }
  }

  /** The configuration that was applied last. */
  currentConfiguration(): Configuration {
    return fromBinary(ConfigurationSchema, Buffer.from(this.#live.configuration, 'base64'))
  }

  apply(entry: Entry): AppliedEntry {
    const live = this.#live
    const { index, term, timeMs, type, data } = entry
    if (index <= live.position.index) return NOTHING(index)
    if (index !== live.position.index + 1) throw new Error(`gap before entry ${index}`)
    if (timeMs < live.timeMs) throw new Error(`log time runs back at entry ${index}`)
    live.position = { term, index }
    live.timeMs = timeMs
    if (type === 'configuration') live.configuration = Buffer.from(data).toString('base64')
    const applied = type === 'command' ? this.#command(index, data) : NOTHING(index)
    for (const waiter of this.#waiters) if (waiter.index <= index) waiter.resolve(true)
    if (this.#waiters.length > 0) {
      this.#waiters = this.#waiters.filter((waiter) => waiter.index > index)
    }
    if (index % this.#persistEntries === 0) this.persist()
    return applied
  }

  #command(index: Index, data: Uint8Array): AppliedEntry {
    const { origin, payload } = fromBinary(CommandSchema, data)
    if (origin === undefined) return NOTHING(index)
    const storeId = Buffer.from(origin.storeId).toString('hex')
    const boot = Number(origin.boot)
    const sequence = Number(origin.sequence)
    const lowest = Number(origin.lowestOutstanding)
    const isNew = this.#windows.take(storeId, boot, sequence, lowest, index)
    const from = { storeId, boot, sequence }
    if (!isNew) return { ...NOTHING(index), origin: from }
    this.#live.count += 1
    if (this.#isChained) {
      this.#live.digest = createHash('sha256')
        .update(this.#live.digest)
        .update(payload)
        .digest('hex')
        .slice(0, 32)
    }
    this.onCommand(payload)
    const id = String(this.#live.count)
    return { index, origin: from, outcome: { ok: true, id }, audit: { ...counted, index } }
  }

  /**
   * Copies the state in place of a store on disk, and reports this a little later, as a real store
   * does.
   */
  persist(): void {
    for (const storeId of this.#windows.takeChanged()) {
      this.#live.origins[storeId] = this.#windows.stored(storeId)
    }
    this.#kept = structuredClone(this.#live)
    const { position } = this.#kept
    setImmediate(() => this.onPersisted(position))
  }

  /** Always false, because the copy is made immediately. */
  get isBehind(): boolean {
    return false
  }

  digests(): StateDigests {
    const { position, digest } = this.#live
    return { index: position.index, state: digest, entities: digest }
  }

  async waitForApplied(index: Index, timeoutMs: number): Promise<boolean> {
    if (this.#live.position.index >= index) return true
    return await new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), timeoutMs)
      this.#waiters.push({
        index,
        resolve: (isReached) => {
          clearTimeout(timer)
          resolve(isReached)
        },
      })
    })
  }

  async snapshot(): Promise<StoreSnapshot> {
    this.persist()
    const kept = this.#kept
    const text = JSON.stringify({ kept, padding: 'x'.repeat(this.snapshotPaddingBytes) })
    const bytes = new TextEncoder().encode(text)
    return await Promise.resolve({
      mark: markOf(kept),
      async *chunks() {
        const size = 64 * 1024
        for (let at = 0; at < bytes.length; at += size) {
          await Promise.resolve()
          yield bytes.subarray(at, at + size)
        }
      },
      close: () => Promise.resolve(),
    })
  }

  async receive(): Promise<StoreReceiver> {
    return await Promise.resolve(new CounterReceiver((kept) => (this.#kept = kept)))
  }

  async restore(receiver: StoreReceiver): Promise<void> {
    await receiver.swap()
    this.#live = structuredClone(this.#kept)
    this.#windows = new ProposerDeduplication()
    for (const [storeId, stored] of Object.entries(this.#live.origins)) {
      if (stored !== null) this.#windows.load(storeId, stored)
    }
    this.onPersisted(this.#kept.position)
  }

  async close(): Promise<void> {
    await Promise.resolve()
  }
}

const NOTHING = (index: Index): AppliedEntry => ({
  index,
  origin: null,
  outcome: null,
  audit: null,
})

function markOf(kept: Counted): StorePosition {
  const { position, timeMs, configuration, digest } = kept
  return { position, timeMs, configuration, featureLevel: 1, digest, entitiesDigest: digest }
}

class CounterReceiver implements StoreReceiver {
  readonly #onSwap: (kept: Counted) => void
  #chunks: Uint8Array[] = []
  #kept: Counted | null = null

  constructor(onSwap: (kept: Counted) => void) {
    this.#onSwap = onSwap
  }

  async write(chunk: Uint8Array): Promise<void> {
    this.#chunks.push(chunk)
    await Promise.resolve()
  }

  async finish(): Promise<StorePosition> {
    const text = Buffer.concat(this.#chunks).toString()
    this.#kept = (JSON.parse(text) as { kept: Counted }).kept
    return await Promise.resolve(markOf(this.#kept))
  }

  async swap(): Promise<void> {
    if (this.#kept === null) throw new Error('swap before finish')
    this.#onSwap(this.#kept)
    await Promise.resolve()
  }

  async abandon(): Promise<void> {
    this.#chunks = []
    await Promise.resolve()
  }
}

const counted = {
  atMs: 0,
  actor: '',
  actorName: '',
  session: '',
  address: '',
  action: 'count',
  entity: '',
  entityId: '',
  fields: [],
  also: [],
  outcome: 'done',
  reason: '',
  entityName: '',
  change: '',
}
