import type { Terminator } from '../../entities/kinds/terminator.ts'
import { BoundedQueue } from '../../lib/bounds/bounded-queue.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Observation } from '../../ports/observations.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { DialCounter } from './dial-counter.ts'
import type { EventBus } from '../event-bus.ts'
import type { NewEvent } from '../event-field.ts'
import { eventLimits } from '../limits.ts'
import { alertEvent, routerAlertEvent } from '../subjects/alert.ts'
import { logInFailedEvent } from '../subjects/authentication.ts'
import { circuitEvent, circuitFailedEvent } from '../subjects/circuit.ts'
import { connectEvent, sdkEvent } from '../subjects/connect.ts'
import { linkEvent } from '../subjects/link.ts'
import { metricEvent } from '../subjects/metrics.ts'
import { routerEvent } from '../subjects/router.ts'
import { terminatorEvent } from '../subjects/terminator.ts'
import { usageEvent } from '../subjects/usage.ts'

interface LiveFollowerDeps {
  readonly bus: EventBus
  readonly clock: Clock
  readonly state: Pick<StateView, 'findAll'>
  readonly dials: DialCounter
  readonly isConnected: (routerId: string) => boolean
}

interface Seen {
  readonly fact: Observation
  readonly atMs: number
}

/**
 * Turns observations of this controller into events. The events are emitted after the current turn
 * of the event loop, so never while an entry is applied.
 */
export class ObservationEvents {
  readonly #deps: LiveFollowerDeps
  readonly #waiting = new BoundedQueue<Seen>(eventLimits.liveFactsWaitingMax)
  #isPlanned = false
  #dropped = 0

  constructor(deps: LiveFollowerDeps) {
    this.#deps = deps
  }

  /** Number of observations dropped because the queue was full. */
  get dropped(): number {
    return this.#dropped
  }

  readonly publishFact = (fact: Observation): void => {
    if (!this.#waiting.push({ fact, atMs: this.#deps.clock.nowMs() })) this.#dropped += 1
    if (this.#isPlanned) return
    this.#isPlanned = true
    setImmediate(() => this.#work())
  }

  #work(): void {
    this.#isPlanned = false
    for (const seen of this.#waiting.drain()) {
      for (const event of this.#eventsOf(seen)) this.#deps.bus.emitLive(event)
    }
  }

  #eventsOf({ fact, atMs }: Seen): readonly NewEvent[] {
    switch (fact.kind) {
      case 'router':
        return this.#routerEvents(fact.routerId, fact.isOnline, atMs)
      case 'connect':
        return [connectEvent(fact, atMs)]
      case 'sdk':
        return [sdkEvent(fact, atMs)]
      case 'link':
        return [linkEvent(fact, atMs)]
      case 'circuit':
        return [circuitEvent(fact, atMs)]
      case 'circuitFailed':
        return [circuitFailedEvent(fact, atMs)]
      case 'dial':
        this.#deps.dials.note(fact)
        return []
      case 'logInFailed':
        return [logInFailedEvent(fact, atMs)]
      case 'alarm':
        return [alertEvent(fact, this.#deps.bus.selfId, atMs)]
      case 'routerAlert':
        return [routerAlertEvent(fact, atMs)]
      case 'routerMetrics': {
        const { bus } = this.#deps
        const { figures, usages, routerId: id, ...said } = fact.metrics
        const source = { ...said, id, atMs: said.atMs ?? atMs }
        return [
          ...(bus.isWanted('metrics') ? figures : []).map((figure) => metricEvent(figure, source)),
          ...(bus.isWanted('usage') ? usages : []).map((one) => usageEvent(one, id, atMs)),
        ]
      }
    }
  }

  #routerEvents(routerId: string, isOnline: boolean, atMs: number): readonly NewEvent[] {
    const { isConnected, state } = this.#deps
    const terminators = state.findAll('terminator', 'routerId', routerId)
    const byService = new Map<string, readonly Terminator[]>()
    const ofService = (id: string): readonly Terminator[] => {
      const known = byService.get(id) ?? state.findAll('terminator', 'serviceId', id)
      byService.set(id, known)
      return known
    }
    return [
      routerEvent(routerId, isOnline, atMs),
      ...terminators
        .slice(0, eventLimits.terminatorEventsMax)
        .map((one) => terminatorEvent(one, isOnline, ofService(one.serviceId), isConnected, atMs)),
    ]
  }
}
