import type { Clock } from '../../lib/clock.ts'
import type { CircuitApplication } from './circuit-endpoint.ts'
import type { TransmitFrame } from './payload-outbox.ts'
import type { XgressOptions } from './xgress-options.ts'

/**
 * Memory budget that circuit endpoints share for payloads that are not acknowledged or delivered.
 */
export interface BufferBudget {
  /** Whether an endpoint that already buffers data may buffer more. */
  readonly hasRoom: () => boolean
  /** @param bytes negative to release memory. */
  readonly take: (bytes: number) => void
}

export interface XgressDeps {
  readonly circuitId: string
  readonly isTerminator: boolean
  readonly options: XgressOptions
  readonly application: CircuitApplication
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly transmit: TransmitFrame
  /**
   * Called once, as the last callback, so that the creator of this endpoint can drop it.
   * @param endsCircuit false if the circuit was already unrouted, so that nothing is left to end.
   */
  readonly onClosed: (reason: string, endsCircuit: boolean) => void
  /**
   * Called at most once, before `onClosed`, when both streams have ended. After that, this endpoint
   * only answers the other one.
   */
  readonly onEnded?: () => void
  /** Identification of this endpoint in responses to route traces. */
  readonly traced?: { readonly type: string; readonly id: string }
  /** Called with the number of bytes of each piece that is delivered to the application. */
  readonly onDelivered?: (bytes: number) => void
  /** Memory budget for this endpoint; absent: no limit. */
  readonly room?: BufferBudget
  /** Random numbers in [0, 1) for the option `randomDrops`. */
  readonly random?: () => number
}
