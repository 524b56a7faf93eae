import type { Outcome } from '../ports/proposer.ts'
import { uuidv7TimeMs } from '../lib/uuid.ts'
import { lanesOf } from './digest.ts'
import type { Lanes, SetDigest } from './digest.ts'

/** How long the outcome of a caller's request id is kept, in log time. */
export const requestWindowMs = 15 * 60_000
/** How far ahead of log time a caller's clock may be; outcomes are kept that much longer, so that no id works twice. */
export const requestAheadMsMax = 5 * 60_000
/** Request ids remembered at once. Beyond it new ones are refused: forgetting one early could repeat a write. */
export const requestsMax = 1_000_000
const originsMax = 256
/** Applied sequences above a gap that are kept per origin; a proposer's window is far smaller. */
const aheadMax = 65_536

interface OriginWindow {
  boot: number
  /** Every sequence below it is done with. */
  floor: number
  /** Applied sequences from `floor` on; never holds `floor` itself. */
  readonly ahead: Set<number>
  /** Log index of its last command: the least recent origin makes room. */
  index: number
}

export interface StoredOrigin {
  readonly ahead: readonly number[]
  readonly boot: number
  readonly floor: number
  readonly index: number
}

/** Exactly once between controllers: a (store, boot, sequence) takes effect once, wherever the log repeats it. */
export class OriginWindows {
  readonly #windows = new Map<string, OriginWindow>()
  readonly #changed = new Set<string>()

  /** @returns false when that sequence has been applied, given up or belongs to an earlier start of that store. */
  take(
    storeId: string,
    boot: number,
    sequence: number,
    lowestOutstanding: number,
    index: number,
  ): boolean {
    let window = this.#windows.get(storeId)
    if (window !== undefined && boot < window.boot) return false
    if (window === undefined || boot > window.boot) {
      window = { boot, floor: 1, ahead: new Set(), index }
      this.#windows.set(storeId, window)
      if (this.#windows.size > originsMax) this.#forgetLeastRecent()
    }
    window.index = index
    this.#changed.add(storeId)
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

  /** The origins changed since the last call. */
  takeChanged(): string[] {
    const changed = [...this.#changed]
    this.#changed.clear()
    return changed
  }

  /** Few and small: hashed when a digest is asked for, not at each command. */
  digestInto(digest: SetDigest, key: (storeId: string) => string): void {
    for (const storeId of this.#windows.keys()) {
      digest.add(lanesOf(key(storeId), JSON.stringify(this.stored(storeId))))
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
  /** Hex of the SHA-256 over the request. */
  readonly bodyHash: string
  /** Log index of the first time. */
  readonly index: number
  readonly outcome: Outcome
}

interface RememberedRequest extends StoredRequest {
  readonly lanes: Lanes
}

/** `new`: not seen, go on. Else what the caller is answered. */
export type RequestJudgement = 'new' | Outcome

function refusal(
  code: 'REQUEST_ID_REUSED' | 'REQUEST_ID_EXPIRED' | 'SERVER_TOO_MANY_REQUESTS',
): Outcome {
  return { ok: false, code, fault: null, detail: null }
}

/** Exactly once for callers: outcomes by (caller, request id), oldest first, forgotten by log time alone. */
export class RequestTable {
  readonly #requests = new Map<string, RememberedRequest>()
  readonly #digest: SetDigest

  constructor(digest: SetDigest) {
    this.#digest = digest
  }

  get size(): number {
    return this.#requests.size
  }

  judge(key: string, id: Uint8Array, bodyHash: string, logTimeMs: number): RequestJudgement {
    const known = this.#requests.get(key)
    if (known !== undefined) {
      return known.bodyHash === bodyHash ? known.outcome : refusal('REQUEST_ID_REUSED')
    }
    const timeMs = uuidv7TimeMs(id)
    if (timeMs === null || timeMs > logTimeMs + requestAheadMsMax) {
      const reason = 'must be a UUIDv7 (RFC 9562) made at most five minutes ahead of the cluster'
      return {
        ok: false,
        code: 'COULD_NOT_VALIDATE',
        fault: { field: 'net-request-id', reason },
        detail: null,
      }
    }
    if (timeMs < logTimeMs - requestWindowMs) return refusal('REQUEST_ID_EXPIRED')
    return this.#requests.size >= requestsMax ? refusal('SERVER_TOO_MANY_REQUESTS') : 'new'
  }

  /** @returns the value to store under `key`. */
  remember(key: string, request: StoredRequest): string {
    const value = JSON.stringify(request)
    this.load(key, value, request)
    return value
  }

  /** In order of log time. */
  load(key: string, value: string, request: StoredRequest): void {
    const lanes = lanesOf(key, value)
    this.#requests.set(key, { ...request, lanes })
    this.#digest.add(lanes)
  }

  /** Forgets what is past the window; hands out each key forgotten. */
  forget(logTimeMs: number, onForgotten: (key: string) => void): void {
    const beforeMs = logTimeMs - requestWindowMs - requestAheadMsMax
    for (const [key, request] of this.#requests) {
      if (request.atMs >= beforeMs) return
      this.#requests.delete(key)
      this.#digest.remove(request.lanes)
      onForgotten(key)
    }
  }
}
