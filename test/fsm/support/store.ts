import type {
  StateStore,
  StorePosition,
  StoreReceiver,
  StoreRecord,
  StoreSnapshot,
} from '../../../src/ports/state-store.ts'
import type { ScheduleTimer } from '../../../src/fsm/records/index-waiters.ts'

interface Contents {
  records: Map<string, string>
  mark: StorePosition | null
  receivedIndex: number | null
}

/** A store in memory; a test can delay its writes or make them fail. */
export class TestStore implements StateStore {
  contents: Contents = { records: new Map(), mark: null, receivedIndex: null }
  writes = 0
  failure: Error | null = null
  /** Writes wait until this promise resolves. */
  gate: Promise<void> = Promise.resolve()
  inFlight = 0
  inFlightMost = 0

  mark(): StorePosition | null {
    return this.contents.mark
  }

  cameBySnapshot(): boolean {
    const { mark, receivedIndex } = this.contents
    return mark !== null && mark.position.index === receivedIndex
  }

  async *records(): AsyncIterable<{ readonly key: string; readonly value: string }> {
    await Promise.resolve()
    for (const [key, value] of [...this.contents.records].sort(([a], [b]) => (a < b ? -1 : 1))) {
      yield { key, value }
    }
  }

  async write(records: readonly StoreRecord[], mark: StorePosition): Promise<void> {
    this.inFlight += 1
    this.inFlightMost = Math.max(this.inFlightMost, this.inFlight)
    await this.gate
    this.inFlight -= 1
    if (this.failure !== null) throw this.failure
    for (const { key, value } of records) {
      if (value === null) this.contents.records.delete(key)
      else this.contents.records.set(key, value)
    }
    this.contents.mark = mark
    this.writes += 1
  }

  snapshot(): Promise<StoreSnapshot> {
    const { mark } = this.contents
    if (mark === null) throw new Error('nothing was written')
    const text = JSON.stringify({ mark, records: [...this.contents.records] })
    return Promise.resolve({
      mark,
      async *chunks() {
        await Promise.resolve()
        yield new TextEncoder().encode(text)
      },
      close: () => Promise.resolve(),
    })
  }

  receive(): Promise<StoreReceiver> {
    let text = ''
    const read = (): Contents => {
      const { mark, records } = JSON.parse(text) as {
        mark: StorePosition
        records: [string, string][]
      }
      return { mark, records: new Map(records), receivedIndex: mark.position.index }
    }
    return Promise.resolve({
      write: (chunk) => {
        text += new TextDecoder().decode(chunk)
        return Promise.resolve()
      },
      finish: () => {
        const { mark } = read()
        if (mark === null) throw new Error('no mark')
        return Promise.resolve(mark)
      },
      swap: () => {
        this.contents = read()
        return Promise.resolve()
      },
      abandon: () => Promise.resolve(),
    })
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

/** Schedules that run only when the test advances the time. */
export class ManualSchedule {
  #due: { atMs: number; run: () => void }[] = []
  #nowMs = 0

  readonly schedule: ScheduleTimer = (delayMs, run) => {
    const timer = { atMs: this.#nowMs + delayMs, run }
    this.#due.push(timer)
    return () => {
      this.#due = this.#due.filter((other) => other !== timer)
    }
  }

  advance(ms: number): void {
    this.#nowMs += ms
    const due = this.#due.filter((timer) => timer.atMs <= this.#nowMs)
    this.#due = this.#due.filter((timer) => timer.atMs > this.#nowMs)
    for (const timer of due) timer.run()
  }
}
