import { AsyncLocalStorage } from 'node:async_hooks'
import { assert } from '../../src/lib/assert.ts'
import { periodicScheduler } from '../../src/lib/periodic-scheduler.ts'
import { VirtualTime } from './virtual-time.ts'

/**
 * One run of one process: its tasks end with it. While it is paused, none of them runs, as in a
 * process that is stopped, swapped out or collecting garbage.
 */
export class Context {
  readonly name: string
  isOver = false
  pausedUntilMs = 0
  /**
   * Time of the last immediate: immediates of one event loop keep their order, even if they run
   * late.
   */
  lastImmediateMs = 0
  /** Delay of an immediate in this context, ms. */
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
 * The process whose event is running. All loops share one storage: a storage stays in contexts that
 * continue later, so with one per loop each event would also carry the storages of all earlier
 * seeds.
 */
const OWNER = new AsyncLocalStorage<Context | null>()

type Task = (...values: unknown[]) => void

// Saved before time becomes virtual.
const realImmediate = setImmediate
/** Steps between two turns of the thread's real event loop, which reports unhandled rejections. */
const STEPS_BETWEEN_ROUNDS = 256

/** Pending promises continue between two events; this is the maximum length of a promise chain. */
const HOPS = 6
const HOP = Promise.resolve()
const HOPS_OF_LONG_WORK = 64

/**
 * An event loop in virtual time for many processes in one thread. Once it is installed, timers set
 * by production code are tasks of the process that sets them. Production code runs unchanged, and
 * one seed determines the order of everything.
 */
export class VirtualLoop {
  readonly time = new VirtualTime()
  /**
   * Number of long promise chains in progress (for example loading a state), which get more steps
   * between two events.
   */
  longWork = 0
  /** Called after each event of a process. */
  onEvent: (context: Context) => void = () => undefined
  /** Called with an error of an event, of a process or of the world (null). */
  onError: (error: unknown, context: Context | null) => void = (error) => {
    throw error
  }
  /** Tracks promises: code that continues after a wait still belongs to the process that waited. */
  #steps = 0

  get nowMs(): number {
    return this.time.nowMs
  }

  get steps(): number {
    return this.#steps
  }

  /** Replaces the thread's timers. This cannot be undone: the process only simulates. */
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
    // In production, all users in a thread share one timer. Here that timer would belong to the
    // first of many processes, so each process has separate timers. They run at other times than
    // multiples of their periods, and no process may depend on those times.
    Object.assign(periodicScheduler, {
      every: (periodMs: number, task: () => void) => {
        const timer = every(task, periodMs, [])
        return () => clear(timer)
      },
    })
  }

  /** Schedules a task of the simulated world, which runs even if processes end. */
  after(delayMs: number, task: () => void): void {
    this.time.after(delayMs, () => {
      this.#run(null, task)
    })
  }

  /** Runs `task` in that process now. */
  within<T>(context: Context, task: () => T): T {
    return OWNER.run(context, task)
  }

  /**
   * Schedules an event of that process. The event is dropped if the process has ended, and runs
   * later if it is paused.
   */
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

  /** Lets the thread report unhandled rejections. */
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
      // The task is scheduled again for the end of the pause: all tasks that became due during the
      // pause run then, in order.
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
