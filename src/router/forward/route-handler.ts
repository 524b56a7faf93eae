import { setTimeout as sleep } from 'node:timers/promises'

import type { ChannelMessage } from '../../channel/frame.ts'
import type { Clock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/error-code.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import type {
  ControlConnection,
  ControlMessageHandler,
  ControlMessageTable,
} from '../controllers/control-connection.ts'
import { RateLimitedWarningLog } from '../../overlay/sockets/rate-limited-warning-log.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import { DialFailure, type TerminatorDialer } from '../../overlay/circuits/circuit-endpoint.ts'
import type { CarriedCircuit } from './carried-circuits.ts'
import { toDialErrorCode } from '../../overlay/circuits/dial-error.ts'
import { TaskPool } from '../../lib/bounds/task-pool.ts'
import {
  readRoute,
  readUnroute,
  type Route,
  routeSucceededMessage,
  type RouteEgress,
  routeFailedMessage,
} from '../../channel/messages/circuits.ts'
import { forwardLimits } from './limits.ts'
import { dialErrorCodes } from '../../channel/messages/dial-error.ts'
import { controlContentType } from '../../channel/messages/control.ts'

/** The circuits of the forwarder, as far as the route handler uses them. */
export interface RoutedCircuits {
  /** Returns the circuit, after creating it if necessary; null if the limit is reached. */
  admit(circuitId: string, ownerId: string): CarriedCircuit | null
  /** Makes this controller the circuit's owner, to which all later reports about the circuit go. */
  handOver(circuit: CarriedCircuit, to: ControlConnection): void
  circuit(circuitId: string): CarriedCircuit | undefined
  /**
   * Sets up a route. New circuits are refused on a link whose peer has been silent for too long.
   * @returns the first unusable link or endpoint of the route; null if the route was set up.
   */
  route(
    circuit: CarriedCircuit,
    route: Pick<Route, 'forwards' | 'isReroute'>,
  ): { kind: 'link' | 'end'; address: string } | null
  /** @param isNow false: the router first delivers frames in transit. */
  unroute(circuitId: string, isNow: boolean): void
  /** Removes the circuit of a failed route if nothing else uses it. */
  forget(circuit: CarriedCircuit): void
}

interface RouteHandlerDeps {
  readonly circuits: RoutedCircuits
  readonly config: RouterConfig['forwarder']
  readonly clock: Clock
  readonly log: ProgramLogger
}

type PeerData = ReadonlyMap<number, Uint8Array>

interface Dial {
  readonly circuit: CarriedCircuit
  readonly abort: AbortController
  readonly peerData: Promise<PeerData>
}

/** A dial that a route requests. */
interface Dialed {
  readonly owner: ControlConnection
  readonly dialedBy: string
  readonly circuit: CarriedCircuit
  readonly deadlineMs: number
}

const NO_PEER_DATA: PeerData = new Map()

/**
 * Handles the routes that controllers send. It dials the terminator before it sets up the route, so
 * that the circuit has its endpoint when frames arrive.
 */
export class RouteHandler {
  readonly #deps: RouteHandlerDeps
  readonly #pool: TaskPool
  readonly #failures: RateLimitedWarningLog
  readonly #dialers = new Map<string, TerminatorDialer>()
  /** Pending dials by the address of the circuit endpoint. */
  readonly #dials = new Map<string, Dial>()

  constructor(deps: RouteHandlerDeps) {
    this.#deps = deps
    this.#failures = new RateLimitedWarningLog(deps.log, deps.clock)
    this.#pool = new TaskPool({
      workersMax: deps.config.xgressDialWorkerCount,
      waitingMax: deps.config.xgressDialQueueLength,
    })
  }

  /** Registers the dialer for terminators of this binding. */
  registerDialer(binding: string, dialer: TerminatorDialer): void {
    this.#dialers.set(binding, dialer)
  }

  messages(): ControlMessageTable {
    return new Map<number, ControlMessageHandler>([
      [controlContentType.route, (connection, message) => this.#onRoute(connection, message)],
      [controlContentType.unroute, (_, { body }) => this.#onUnroute(readUnroute(body))],
    ])
  }

  stop(): void {
    for (const { abort } of this.#dials.values()) abort.abort(new Error('the router stops'))
  }

  #onRoute(connection: ControlConnection, message: ChannelMessage): void {
    const { circuits, clock } = this.#deps
    const route = readRoute(message.body)
    if (route === null) {
      connection.channel.replyResult(message, false, 'the route is malformed')
      return
    }
    const circuit = circuits.admit(route.circuitId, connection.id)
    const fail = (error: unknown): void => this.#fail(connection, message, route, error)
    if (circuit === null) {
      fail(new DialFailure(dialErrorCodes.outOfResources, 'too many circuits'))
      return
    }
    if (circuit.clientId === '') circuit.clientId = route.clientId
    // A reroute contains no tags.
    if (Object.keys(circuit.tags).length === 0) circuit.tags = route.tags
    circuits.handOver(circuit, connection)
    const { egress } = route
    if (egress === null) {
      this.#complete(connection, message, route, circuit, NO_PEER_DATA)
      return
    }
    const deadlineMs = clock.monotonicMs() + Math.min(route.timeoutMs, forwardLimits.dialMsMax)
    circuit.dials += 1
    // The share of the dial pool belongs to the client, regardless of the controllers and routers
    // that it uses.
    const { clientId } = route
    const caller = clientId === '' ? `controller ${connection.id}` : `client ${clientId}`
    // @guard dials-of-one-client--client
    const isTaken = this.#pool.run(caller, async () => {
      try {
        const dialed = { owner: connection, dialedBy: caller, circuit, deadlineMs }
        const peerData = await this.#peerData(dialed, egress)
        this.#complete(connection, message, route, circuit, peerData)
      } catch (error) {
        fail(error)
      } finally {
        circuit.dials -= 1
        circuits.forget(circuit)
      }
    })
    if (isTaken) return
    circuit.dials -= 1
    circuits.forget(circuit)
    fail(
      new DialFailure(dialErrorCodes.outOfResources, 'too many dials wait (xgressDialQueueLength)'),
    )
  }

  #onUnroute({ circuitId, isNow }: { circuitId: string; isNow: boolean }): void {
    const { circuits } = this.#deps
    const circuit = circuits.circuit(circuitId)
    for (const dial of isNow && circuit !== undefined ? this.#dials.values() : []) {
      if (dial.circuit === circuit) dial.abort.abort(new Error('the circuit was removed'))
    }
    circuits.unroute(circuitId, isNow)
  }

  /**
   * Returns the peer data of the terminator. Does not dial again if the circuit endpoint exists or
   * a dial from an earlier route is still running.
   */
  async #peerData(dialed: Dialed, egress: RouteEgress): Promise<PeerData> {
    const { circuit } = dialed
    if (circuit.ends.has(egress.address)) return NO_PEER_DATA
    const known = this.#dials.get(egress.address)
    if (known?.circuit === circuit) return await known.peerData
    const abort = new AbortController()
    const peerData = this.#dial(dialed, egress, abort)
    this.#dials.set(egress.address, { circuit, abort, peerData })
    try {
      return await peerData
    } finally {
      this.#dials.delete(egress.address)
    }
  }

  /** @throws {DialFailure} or an error of the dialer, no later than at the deadline. */
  async #dial(
    { owner, dialedBy, circuit, deadlineMs }: Dialed,
    { binding, address, destination, peerData }: RouteEgress,
    abort: AbortController,
  ): Promise<PeerData> {
    const { config, clock } = this.#deps
    const dialer = this.#dialers.get(binding)
    if (dialer === undefined) {
      const reason = `this router has no dialer for the binding ${binding}`
      throw new DialFailure(dialErrorCodes.misconfiguredTerminator, reason)
    }
    const { signal } = abort
    // Created only when it is thrown: creating its stack trace takes 1/30 of the time to set up a
    // whole circuit.
    const late = (): DialFailure =>
      new DialFailure(dialErrorCodes.timedOut, 'the terminator was not reached in time')
    const leftMs = deadlineMs - clock.monotonicMs()
    if (leftMs <= 0) throw late()
    const timer = setTimeout(() => abort.abort(late()), leftMs)
    try {
      if (config.xgressDialDwellTime > 0) {
        await sleep(config.xgressDialDwellTime, undefined, { signal })
      }
      const dialed = dialer.dial(
        {
          circuit: { id: circuit.id, address, owner, isTerminator: true },
          dialedBy,
          destination,
          peerData,
          timeoutMs: Math.max(0, deadlineMs - clock.monotonicMs()),
        },
        signal,
      )
      return await Promise.race([dialed, aborted(signal)])
    } catch (error) {
      throw signal.aborted ? signal.reason : error
    } finally {
      clearTimeout(timer)
    }
  }

  #complete(
    connection: ControlConnection,
    message: ChannelMessage,
    route: Route,
    circuit: CarriedCircuit,
    peerData: PeerData,
  ): void {
    const { circuits } = this.#deps
    // True if the circuit was unrouted during the dial.
    const isGone = circuits.circuit(circuit.id) !== circuit
    const missing = isGone ? null : circuits.route(circuit, route)
    if (!isGone && missing === null) {
      connection.channel.reply(message, routeSucceededMessage(route, peerData))
      if (route.traced !== null) {
        const { circuitId, attempt, forwards, egress } = route
        const ways = forwards.map(({ from, to }) => `${from} -> ${to}`)
        const binding = egress === null ? {} : { binding: egress.binding }
        const shown = { ...route.traced, circuitId, attempt, ways, ...binding }
        this.#deps.log.info(shown, 'traced: circuit routed')
      }
      return
    }
    circuits.forget(circuit)
    const code = missing?.kind === 'link' ? dialErrorCodes.invalidLink : dialErrorCodes.other
    const reason =
      missing === null ? 'the circuit was removed' : `no ${missing.kind} ${missing.address}`
    this.#fail(connection, message, route, new DialFailure(code, reason))
  }

  #fail(
    { channel }: ControlConnection,
    message: ChannelMessage,
    route: Route,
    error: unknown,
  ): void {
    const reason = errorMessage(error)
    const code = toDialErrorCode(error)
    const { circuitId, clientId } = route
    // This warning is limited to a rate per client, because every dial of a client at its limit
    // fails.
    if (code === dialErrorCodes.outOfResources) {
      this.#failures.warnOf(clientId, reason, { circuitId, clientId })
    } else {
      const fields = { ...route.traced, circuitId, reason }
      this.#deps.log.info(fields, 'a circuit could not be routed')
    }
    channel.reply(message, routeFailedMessage(route, code, reason))
  }
}

/** Rejects when the signal is aborted, for a dialer that ignores the signal. */
function aborted(signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  if (signal.aborted) reject(signal.reason as Error)
  signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  return promise
}
