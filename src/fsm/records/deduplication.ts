import type { Outcome } from '../../ports/proposer.ts'
import { uuidv7TimeMs } from '../../lib/text/uuid.ts'
import { toHex } from '../../lib/text/to-hex.ts'
import { digestLanes, type SetDigest } from './digest.ts'
import { type DeduplicationRecord, DeduplicationRecords } from './deduplication-records.ts'

/** Log time for which callers can use a request ID; its outcome is stored at least as long. */
export const requestIdRetentionMs = 15 * 60_000
/**
 * Maximum time by which a caller's clock may be ahead of log time. Outcomes are stored for this
 * additional time, so that no request id takes effect twice.
 */
export const requestIdAheadMsMax = 5 * 60_000
/**
 * Maximum memory for stored request ids. Above this limit, new request ids are refused: if a stored
 * id were dropped early, a repeated write could take effect again.
 */
export const requestIdsBytesMax = 96 * 1024 * 1024
/** Maximum memory for the request ids of one caller; the rest remains for other callers. */
export const requestIdsPerCallerBytesMax = (requestIdsBytesMax / 4) * 3
/**
 * Memory of one entry in addition to the characters of its key and outcome: objects, headers and
 * the slot in the map. Refusals depend on this constant, so it must never change.
 */
const REQUEST_BYTES = 288
/**
 * Below this feature level, the limits of release 0.1.0 apply, so that all controllers decide
 * equally.
 */
const BOUNDED_BY_BYTES_LEVEL = 2
export const release010DeduplicationLimits = {
  countMax: 1_000_000,
  countPerCallerMax: 750_000,
  bytesMax: 128 * 1024 * 1024,
}
const FORMER_REQUEST_BYTES = 56
const originsMax = 256
/**
 * Maximum applied sequence numbers above a gap that are stored for one store (of a proposing
 * controller); a controller has far fewer outstanding writes.
 */
const aheadMax = 65_536

interface OriginWindow {
  boot: number
  /** All sequence numbers below this one are finished. */
  floor: number
  /** Applied sequence numbers above `floor`, with gaps between them. */
  readonly ahead: Set<number>
  /**
   * Log index of the last command from this store (of a proposing controller). When there are too
   * many stores, the one with the lowest index is dropped.
   */
  index: number
}

export interface StoredOrigin {
  readonly ahead: readonly number[]
  readonly boot: number
  readonly floor: number
  readonly index: number
}

/**
 * Deduplication of commands from controllers: a command, identified by (store, boot, sequence
 * number), takes effect once, even if the log contains it several times.
 */
export class ProposerDeduplication {
  readonly #windows = new Map<string, OriginWindow>()
  readonly #changed = new Set<string>()

  /**
   * Records a sequence number as applied.
   * @returns false when it was already applied or abandoned, or belongs to an earlier start of the
   * store.
   */
  take(
    storeId: string,
    boot: number,
    sequence: number,
    lowestOutstanding: number,
    index: number,
  ): boolean {
    let window = this.#windows.get(storeId)
    // @guard dedupe-of-an-earlier-start
    if (window !== undefined && boot < window.boot) return false
    if (window === undefined || boot > window.boot) {
      window = { boot, floor: 1, ahead: new Set(), index }
      this.#windows.set(storeId, window)
      if (this.#windows.size > originsMax) this.#forgetLeastRecent()
    }
    window.index = index
    this.#changed.add(storeId)
    // @guard dedupe-by-origin, dedupe-by-origin-below-the-floor
    const isNew = sequence >= window.floor && !window.ahead.has(sequence)
    if (isNew) window.ahead.add(sequence)
    raiseFloor(window, lowestOutstanding)
    return isNew
  }

  #forgetLeastRecent(): void {
    let oldest: string | null = null
    let oldestIndex = Infinity
    for (const [storeId, window] of this.#windows) {
      if (window.index >= oldestIndex) continue
      oldest = storeId
      oldestIndex = window.index
    }
    if (oldest === null) return
    this.#windows.delete(oldest)
    this.#changed.add(oldest)
  }

  stored(storeId: string): StoredOrigin | null {
    const window = this.#windows.get(storeId)
    if (window === undefined) return null
    const { boot, floor, index } = window
    return { ahead: [...window.ahead].sort((a, b) => a - b), boot, floor, index }
  }

  load(storeId: string, stored: StoredOrigin): void {
    const { boot, floor, index } = stored
    this.#windows.set(storeId, { boot, floor, index, ahead: new Set(stored.ahead) })
  }

  /**
   * Returns and clears the IDs of the stores (of proposing controllers) whose sequence numbers
   * changed since the last call.
   */
  takeChanged(): string[] {
    const changed = [...this.#changed]
    this.#changed.clear()
    return changed
  }

  /**
   * Adds the records to a digest. They are hashed when a digest is computed, not at each command,
   * because they are few and small.
   */
  digestInto(digest: SetDigest, key: (storeId: string) => string): void {
    for (const storeId of this.#windows.keys()) {
      digest.add(digestLanes(key(storeId), JSON.stringify(this.stored(storeId))))
    }
  }
}

function raiseFloor(window: OriginWindow, lowestOutstanding: number): void {
  if (lowestOutstanding > window.floor) {
    window.floor = lowestOutstanding
    for (const sequence of window.ahead) {
      if (sequence < lowestOutstanding) window.ahead.delete(sequence)
    }
  }
  while (window.ahead.delete(window.floor)) window.floor += 1
  if (window.ahead.size > aheadMax) raiseFloor(window, Math.min(...window.ahead))
}

export interface StoredRequest {
  readonly atMs: number
  /** SHA-256 over the request, in hex. */
  readonly bodyHash: string
  /** Log index of the entry that decided the request. */
  readonly index: number
  readonly outcome: Outcome
}

/**
 * `new`: the request is unknown and must be applied. Otherwise the outcome is the stored one, or a
 * refusal.
 */
export type RequestDeduplicationResult = 'new' | Outcome

/** Key of a request. `caller` is an identity id or ''. */
function requestKey(caller: string, id: Uint8Array): string {
  return `r/${caller}/${toHex(id)}`
}

/** Matches keys that `requestKey` returns for ids of 16 bytes. */
const REQUEST_KEY = /^r\/.*\/[0-9a-f]{32}$/s

function callerOf(key: string): string {
  return key.slice('r/'.length, key.lastIndexOf('/'))
}

/**
 * The text that the store contains for a request. The order of the members is fixed, so that equal
 * requests have equal text.
 */
function storedText(atMs: number, bodyHash: string, index: number, outcome: string): string {
  return `{"atMs":${atMs},"bodyHash":"${bodyHash}","index":${index},"outcome":${outcome}}`
}

const DONE_HEAD = '{"ok":true,"id":"'
const DONE_TAIL = '"}'

/** Short form of an outcome: for a success, which most outcomes are, only the id is stored. */
function packed(outcome: string): string {
  const isDone = outcome.startsWith(DONE_HEAD) && outcome.endsWith(DONE_TAIL)
  return isDone ? outcome.slice(DONE_HEAD.length, -DONE_TAIL.length) : outcome
}

function unpacked(text: string): string {
  return text.startsWith('{') ? text : `${DONE_HEAD}${text}${DONE_TAIL}`
}

function refusal(
  code: 'REQUEST_ID_REUSED' | 'REQUEST_ID_EXPIRED' | 'SERVER_TOO_MANY_REQUESTS',
): Outcome {
  return { ok: false, code, fault: null, detail: null }
}

/** The totals that the limits for stored requests restrict. */
interface Weight {
  count: number
  bytes: number
  /** Bytes of the stored requests, computed as in release 0.1.0. */
  formerBytes: number
}

function weigh(weight: Weight, key: string, outcome: string, sign: 1 | -1): void {
  const callerBytes = Buffer.byteLength(callerOf(key))
  weight.count += sign
  weight.bytes += sign * (REQUEST_BYTES + key.length + outcome.length)
  weight.formerBytes += sign * (FORMER_REQUEST_BYTES + callerBytes + Buffer.byteLength(outcome))
}

const weightless = (): Weight => ({ count: 0, bytes: 0, formerBytes: 0 })

/** The time at which a request is evaluated, and the limits that apply. */
interface RequestMoment {
  readonly logTimeMs: number
  /**
   * A request whose id is older than this is refused as expired, unless its outcome is stored.
   */
  readonly floorMs: number
  /** The cluster's feature level. */
  readonly level: number
}

/**
 * Deduplication of requests from callers: outcomes by caller and request id, oldest first. Only log
 * time, or its reset by an operator, determines when an outcome is dropped.
 */
export class RequestDeduplication {
  readonly #records = new DeduplicationRecords()
  readonly #digest: SetDigest
  readonly #total = weightless()
  readonly #ofCallers = new Map<string, Weight>()

  readonly #former: typeof release010DeduplicationLimits

  constructor(digest: SetDigest, former = release010DeduplicationLimits) {
    this.#digest = digest
    this.#former = former
  }

  get size(): number {
    return this.#records.size
  }

  judge(
    caller: string,
    id: Uint8Array,
    bodyHash: string,
    { logTimeMs, floorMs, level }: RequestMoment,
  ): RequestDeduplicationResult {
    const key = requestKey(caller, id)
    const known = this.#records.get(key)
    // @guard dedupe-by-request-id
    if (known !== undefined) {
      // @guard dedupe-by-body-of-a-request
      return isOf(key, known, bodyHash)
        ? (JSON.parse(unpacked(known.outcome)) as Outcome)
        : refusal('REQUEST_ID_REUSED')
    }
    const timeMs = uuidv7TimeMs(id)
    if (timeMs === null || timeMs > logTimeMs + requestIdAheadMsMax) {
      const reason = 'must be a UUIDv7 (RFC 9562) made at most five minutes ahead of the cluster'
      return {
        ok: false,
        code: 'COULD_NOT_VALIDATE',
        fault: { field: 'net-request-id', reason },
        detail: null,
      }
    }
    const oldestMs = Math.max(logTimeMs - requestIdRetentionMs, floorMs)
    // @guard dedupe-window-of-request-ids
    if (timeMs < oldestMs) return refusal('REQUEST_ID_EXPIRED')
    return this.#isFull(caller, level) ? refusal('SERVER_TOO_MANY_REQUESTS') : 'new'
  }

  #isFull(caller: string, level: number): boolean {
    const { count, bytes, formerBytes } = this.#total
    const own = this.#ofCallers.get(caller)
    if (level >= BOUNDED_BY_BYTES_LEVEL) {
      return bytes >= requestIdsBytesMax || (own?.bytes ?? 0) >= requestIdsPerCallerBytesMax
    }
    const { countMax, countPerCallerMax, bytesMax } = this.#former
    const isFullOfAll = count >= countMax || formerBytes >= bytesMax
    return isFullOfAll || (own?.count ?? 0) >= countPerCallerMax
  }

  /**
   * Stores an outcome.
   * @returns the record for the store.
   */
  remember(
    caller: string,
    id: Uint8Array,
    { atMs, bodyHash, index, outcome: decided }: StoredRequest,
  ): { readonly key: string; readonly value: string } {
    const key = requestKey(caller, id)
    const outcome = JSON.stringify(decided)
    const value = storedText(atMs, bodyHash, index, outcome)
    this.#add(key, { atMs, index, outcome: packed(outcome), lanes: digestLanes(key, value) })
    return { key, value }
  }

  /**
   * Loads a record that `remember` returned. The records may be loaded in any order; the caller
   * must call `loaded` after the last one.
   * @throws on a malformed record.
   */
  load(key: string, value: string): void {
    const { atMs, bodyHash, index, outcome: decided } = JSON.parse(value) as StoredRequest
    const outcome = JSON.stringify(decided)
    const isOwn = REQUEST_KEY.test(key) && storedText(atMs, bodyHash, index, outcome) === value
    if (!isOwn) throw new Error(`the store holds a malformed request: ${key.slice(0, 80)}`)
    this.#add(key, { atMs, index, outcome: packed(outcome), lanes: digestLanes(key, value) })
  }

  #add(key: string, record: DeduplicationRecord): void {
    this.#records.add(key, record)
    this.#digest.add(record.lanes)
    const caller = callerOf(key)
    const own = this.#ofCallers.get(caller) ?? weightless()
    this.#ofCallers.set(caller, own)
    for (const weight of [this.#total, own]) weigh(weight, key, record.outcome, 1)
  }

  #forgetOldest(key: string, { outcome, lanes }: DeduplicationRecord): void {
    this.#records.forgetOldest()
    this.#digest.remove(lanes)
    const caller = callerOf(key)
    const own = this.#ofCallers.get(caller) ?? weightless()
    for (const weight of [this.#total, own]) weigh(weight, key, outcome, -1)
    if (own.count === 0) this.#ofCallers.delete(caller)
  }

  digestInto(digest: SetDigest): void {
    for (const lanes of this.#records.allLanes()) digest.add(lanes)
  }

  /** Called after the last record is loaded; sorts the records so that the oldest comes first. */
  loaded(): void {
    this.#records.sortByIndex()
  }

  /** Drops requests whose retention has ended, and calls `onForgotten` with each key. */
  forget(logTimeMs: number, onForgotten: (key: string) => void): void {
    const beforeMs = logTimeMs - requestIdRetentionMs - requestIdAheadMsMax
    for (;;) {
      const oldest = this.#records.oldest()
      if (oldest === null || oldest[1].atMs >= beforeMs) return
      this.#forgetOldest(...oldest)
      onForgotten(oldest[0])
    }
  }
}

/**
 * Whether a request body belongs to a stored outcome. The hash of the body is not kept in memory;
 * instead, the digest of the stored record includes it.
 */
function isOf(
  key: string,
  { atMs, index, outcome, lanes }: DeduplicationRecord,
  bodyHash: string,
): boolean {
  const own = digestLanes(key, storedText(atMs, bodyHash, index, unpacked(outcome)))
  return own.a === lanes.a && own.b === lanes.b && own.c === lanes.c && own.d === lanes.d
}
