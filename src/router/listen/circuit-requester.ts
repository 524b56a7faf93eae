import type { Clock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/error-code.ts'
import type { ControlConnection } from '../controllers/control-connection.ts'
import type { LocalCircuit } from '../../overlay/circuits/circuit-endpoint.ts'
import { forwardLimits } from '../forward/limits.ts'
import {
  type CircuitRequestCodec,
  type CircuitSource,
  CircuitUnavailableError,
  type CircuitData,
} from '../../overlay/circuits/circuit-source.ts'
import {
  listenerCircuitMessage,
  readListenerCircuitResponse,
} from '../../channel/messages/circuit-requests.ts'

export interface CircuitRequesterDeps {
  /**
   * Creates the circuit request of the tunnel. Absent for other listeners, which send a simpler
   * request.
   */
  readonly exchange?: (
    service: string,
    client: string,
    circuitData?: CircuitData,
  ) => CircuitRequestCodec
  readonly connections: () => readonly ControlConnection[]
  readonly clock: Pick<Clock, 'monotonicMs'>
}

/** Sends controllers requests for circuits that begin at this router. */
export class CircuitRequester implements CircuitSource {
  readonly #deps: CircuitRequesterDeps
  #asked = 0

  constructor(deps: CircuitRequesterDeps) {
    this.#deps = deps
  }

  async request(
    service: string,
    client: string,
    timeoutMs: number,
    circuitData?: CircuitData,
  ): Promise<LocalCircuit> {
    if (this.#asked >= forwardLimits.circuitsAskedMax) {
      throw new CircuitUnavailableError('too many circuits are requested')
    }
    this.#asked += 1
    try {
      const { exchange: exchangeFor = fabricExchange } = this.#deps
      return await this.#request(exchangeFor(service, client, circuitData), timeoutMs)
    } finally {
      this.#asked -= 1
    }
  }

  async #request(exchange: CircuitRequestCodec, timeoutMs: number): Promise<LocalCircuit> {
    const { connections, clock } = this.#deps
    const { message, read: readAnswer } = exchange
    const deadlineMs = clock.monotonicMs() + timeoutMs
    let reason = 'no controller is connected'
    // Starts with the controller that last answered a heartbeat. Controllers answer heartbeats at
    // different times, so this distributes the requests.
    const owners = connections().toSorted((a, b) => a.channel.silentForMs - b.channel.silentForMs)
    for (const owner of owners) {
      const leftMs = Math.round(deadlineMs - clock.monotonicMs())
      if (leftMs <= 0) break
      const answer = await owner.channel
        .request(message, leftMs)
        .then(readAnswer, errorMessage)
        .then((read) => (typeof read === 'string' ? read : { ...read, owner, isTerminator: false }))
      if (typeof answer !== 'string') return answer
      reason = answer
      // A refusal is final. Only if the controller has disconnected does the next controller get
      // the request.
      if (!owner.channel.isClosed) break
    }
    throw new CircuitUnavailableError(reason)
  }
}

function fabricExchange(service: string, client: string): CircuitRequestCodec {
  return { message: listenerCircuitMessage(service, client), read: readListenerCircuitResponse }
}
