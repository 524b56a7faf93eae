import type { HealthAction, HealthProbe } from './host-config.ts'
import { serviceLimits } from './limits.ts'
import { connectStream } from './target-connection.ts'
import type { Precedence } from '../../channel/messages/terminators.ts'

const COST_MAX = 65_535

/** Cost and precedence of a terminator according to the health of its target. */
interface OfferState {
  readonly cost: number
  readonly precedence: Precedence
}

interface HealthProbeRunnerDeps {
  readonly probes: readonly HealthProbe[]
  readonly onEvent: (isHealthy: boolean) => void
  readonly onChanged: (state: OfferState) => void
  /** Runs one check; default: the real check. Tests replace it. */
  readonly run?: (probe: HealthProbe) => Promise<boolean>
  readonly nowMs?: () => number
}

/** Consecutive equal results of one check. */
interface Course {
  isHealthy: boolean
  /** Number of these results, and the time of the first one. */
  count: number
  sinceMs: number
}

/**
 * Runs the health checks of one terminator. Their actions change the terminator's cost and
 * precedence.
 */
export class HealthProbeRunner {
  readonly #deps: HealthProbeRunnerDeps
  readonly #timers = new Set<NodeJS.Timeout>()
  #base: OfferState = { cost: 0, precedence: 'default' }
  #state: OfferState = this.#base
  #run = 0

  constructor(deps: HealthProbeRunnerDeps) {
    this.#deps = deps
  }

  /** @param base cost and precedence of the terminator while its target is healthy. */
  start(base: OfferState): void {
    this.stop()
    this.#base = base
    this.#state = base
    for (const probe of this.#deps.probes) {
      const course = { isHealthy: true, count: 0, sinceMs: 0 }
      this.#later(probe, course, this.#run)
    }
  }

  stop(): void {
    this.#run += 1
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
  }

  #later(probe: HealthProbe, course: Course, run: number): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      void this.#check(probe, course, run)
    }, probe.intervalMs)
    this.#timers.add(timer)
  }

  async #check(probe: HealthProbe, course: Course, run: number): Promise<void> {
    const { run: carryOut = runProbe } = this.#deps
    const isHealthy = await carryOut(probe).catch(() => false)
    if (run !== this.#run) return
    this.take(probe, course, isHealthy)
    this.#later(probe, course, run)
  }

  /** Processes one result of a check. */
  take(probe: HealthProbe, course: Course, isHealthy: boolean): void {
    const { nowMs = () => performance.now(), onEvent, onChanged } = this.#deps
    const now = nowMs()
    if (course.count === 0 || course.isHealthy !== isHealthy) {
      course.isHealthy = isHealthy
      course.count = 0
      course.sinceMs = now
    }
    course.count += 1
    const before = this.#state
    let isEvent = false
    for (const action of probe.actions) {
      if (!isDue(action, course, now)) continue
      if (action.effect.kind === 'send event') isEvent = true
      else this.#state = this.#after(action.effect, before)
    }
    if (isEvent) onEvent(isHealthy)
    const { cost, precedence } = this.#state
    if (cost !== before.cost || precedence !== before.precedence) onChanged(this.#state)
  }

  #after(
    effect: Exclude<HealthAction['effect'], { kind: 'send event' }>,
    before: OfferState,
  ): OfferState {
    const state = this.#state
    if (effect.kind === 'mark healthy') return { ...state, precedence: this.#base.precedence }
    if (effect.kind === 'mark unhealthy') return { ...state, precedence: 'failed' }
    if (effect.kind !== 'change cost') return state
    // The cost stays, because a failed terminator is dialed last regardless of its cost.
    if (effect.by > 0 && before.precedence === 'failed') return state
    const cost = Math.max(this.#base.cost, state.cost + effect.by)
    return { ...state, cost: Math.min(cost, COST_MAX) }
  }
}

function isDue(
  { trigger, consecutiveEvents, durationMs }: HealthAction,
  { isHealthy, count, sinceMs }: Course,
  nowMs: number,
): boolean {
  if (trigger === 'fail' && isHealthy) return false
  if (trigger === 'pass' && !isHealthy) return false
  if (trigger === 'change' && count !== 1) return false
  return count >= consecutiveEvents && nowMs - sinceMs >= durationMs
}

/**
 * @returns whether the check succeeded.
 * @throws {Error} if the target cannot be reached, or does not respond in time.
 */
async function runProbe({ target, timeoutMs }: HealthProbe): Promise<boolean> {
  const signal = AbortSignal.timeout(timeoutMs)
  if (target.kind === 'port') {
    const socket = await connectStream(target, signal, null)
    socket.destroy()
    return true
  }
  const { url, method, body, expectStatus, expectInBody } = target
  const init = { method, signal, redirect: 'manual' as const }
  const response = await fetch(url, body === null ? init : { ...init, body })
  const isExpected = response.status === expectStatus
  if (expectInBody === null || !isExpected) {
    await response.body?.cancel()
    return isExpected
  }
  return (await beginningOf(response)).includes(expectInBody)
}

async function beginningOf(response: Response): Promise<string> {
  const { hostProbeBodyCharactersMax } = serviceLimits
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true })
    if (text.length >= hostProbeBodyCharactersMax) break
  }
  return text
}
