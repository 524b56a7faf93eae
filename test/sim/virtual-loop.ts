import { AsyncLocalStorage } from 'node:async_hooks'
import { assert } from '../../src/lib/assert.ts'
import { periodicScheduler } from '../../src/lib/periodic-scheduler.ts'
import { VirtualTime } from './virtual-time.ts'

/**
 * One life of one process: what it has set going ends with it, and while it is paused nothing of it runs, as with a
 * process that is stopped, swapped out or collecting garbage.
 */
export class Context {
  readonly name: string
  isOver = false
  pausedUntilMs = 0
  /** Immediates of one event loop keep their order, however late they run. */
  lastImmediateMs = 0
  /** How long an immediate of this context takes to come round, ms. */
  immediateMs: () => number = () => 0

  constructor(name: string) {
    this.name = name
  }
}

class VirtualTimer {
  isCleared = false

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  hasRef(): boolean {
    return true
  }

  refresh(): this {
    throw new Error('a virtual timer is not refreshed')
  }

  [Symbol.dispose](): void {
    this.isCleared = true
  }
}

/**
 * Whose event runs. One for all loops: a storage stays in the context that goes on after it, so with one a loop each event
 * would carry those of all seeds before it.
 */
const OWNER = new AsyncLocalStorage<Context | null>()

type Task = (...values: unknown[]) => void

// Kept from before time becomes virtual.
const realImmediate = setImmediate
/** Now and then the thread's own loop comes round, which tells of promises that were rejected and that nobody looked at. */
const STEPS_BETWEEN_ROUNDS = 256

/** Between two events what waits for a promise goes on; so many links of a chain of promises at the most. */
const HOPS = 6
const HOP = Promise.resolve()
const HOPS_OF_LONG_WORK = 64

/**
 * An event loop on virtual time for many processes in one thread. Once installed, the timers that production code sets
 * are tasks of the process that sets them, so that production code runs as it is, and one seed decides the order of all.
 */
export class VirtualLoop {
  readonly time = new VirtualTime()
  /** Long chains of promises (a state being loaded) are under way: more of them may be walked between two events. */
  longWork = 0
  /** After each event of a process. */
  onEvent: (context: Context) => void = () => undefined
  /** What an event throws: of a process, or of the world around (null). */
  onError: (error: unknown, context: Context | null) => void = (error) => {
    throw error
  }
  /** Goes along with promises: what continues after a wait still belongs to the process that waited. */
  #steps = 0

  get nowMs(): number {
    return this.time.nowMs
  }

  get steps(): number {
    return this.#steps
  }

  /** Takes the place of the thread's timers. There is no way back: this process simulates and does nothing else. */
  install(): void {
    const set = (task: Task, delayMs: number | undefined, values: unknown[]): VirtualTimer =>
      this.#timer(this.#owner(), Math.max(1, Number(delayMs ?? 1)), task, values)
    const every = (task: Task, periodMs: number | undefined, values: unknown[]): VirtualTimer =>
      this.#interval(this.#owner(), Math.max(1, Number(periodMs ?? 1)), task, values)
    const clear = (timer: unknown): void => {
      if (timer instanceof VirtualTimer) timer.isCleared = true
    }
    Object.assign(globalThis, {
      setTimeout: (task: Task, delayMs?: number, ...values: unknown[]) =>
        set(task, delayMs, values),
      setInterval: (task: Task, periodMs?: number, ...values: unknown[]) =>
        every(task, periodMs, values),
      setImmediate: (task: Task, ...values: unknown[]) => this.#immediate(task, values),
      clearTimeout: clear,
      clearInterval: clear,
      clearImmediate: clear,
    })
    // A thread has many processes here, and the one timer that a thread has would be that of the first. A timer each runs
    // them at other times than multiples of their periods, which no process may rely on.
    Object.assign(periodicScheduler, {
      every: (periodMs: number, task: () => void) => {
        const timer = every(task, periodMs, [])
        return () => clear(timer)
      },
    })
  }

  /** Of the world: runs whatever becomes of any process. */
  after(delayMs: number, task: () => void): void {
    this.time.after(delayMs, () => {
      this.#run(null, task)
    })
  }

  /** Runs `task` as part of that process now. */
  within<T>(context: Context, task: () => T): T {
    return OWNER.run(context, task)
  }

  /** An event of that process; dropped when it is over by then, late when it is paused. */
  afterIn(context: Context, delayMs: number, task: () => void): void {
    this.time.after(delayMs, () => {
      this.#enter(context, task)
    })
  }

  /** Runs events until that time, or until `isEnough`. */
  async runUntil(untilMs: number, isEnough: () => boolean = () => false): Promise<void> {
    while (!isEnough() && this.time.runNext(untilMs)) {
      this.#steps += 1
      const hops = this.longWork > 0 ? HOPS_OF_LONG_WORK : HOPS
      for (let hop = 0; hop < hops; hop += 1) await HOP
      if (this.#steps % STEPS_BETWEEN_ROUNDS === 0) await this.comeRound()
    }
  }

  /** What was rejected and not looked at has been told after it. */
  async comeRound(): Promise<void> {
    await new Promise((resolve) => realImmediate(resolve))
  }

  #owner(): Context {
    const context = OWNER.getStore()
    assert(context !== null && context !== undefined, 'a timer is set by a process')
    return context
  }

  #timer(context: Context, delayMs: number, task: Task, values: unknown[]): VirtualTimer {
    const timer = new VirtualTimer()
    this.afterIn(context, delayMs, () => {
      if (!timer.isCleared) task(...values)
    })
    return timer
  }

  #interval(context: Context, periodMs: number, task: Task, values: unknown[]): VirtualTimer {
    const timer = new VirtualTimer()
    const next = (): void => {
      this.afterIn(context, periodMs, () => {
        if (timer.isCleared) return
        task(...values)
        next()
      })
    }
    next()
    return timer
  }

  #immediate(task: Task, values: unknown[]): VirtualTimer {
    const context = this.#owner()
    const dueMs = Math.max(context.lastImmediateMs, this.nowMs + context.immediateMs())
    context.lastImmediateMs = dueMs
    return this.#timer(context, dueMs - this.nowMs, task, values)
  }

  #enter(context: Context, task: () => void): void {
    if (context.isOver) return
    if (context.pausedUntilMs > this.nowMs) {
      // Asked again at its end: what was due meanwhile runs then, in its order.
      this.afterIn(context, context.pausedUntilMs - this.nowMs, task)
      return
    }
    this.#run(context, task)
    if (!context.isOver) this.onEvent(context)
  }

  #run(context: Context | null, task: () => void): void {
    try {
      OWNER.run(context, task)
    } catch (error) {
      this.onError(error, context)
    }
  }
}
