import type { CircuitApplication, CircuitEnd } from './circuit-ends.ts'

/** An end that is closed from the start; its application gets `onClosed` in a microtask. */
export function refusedCircuitEnd(
  circuitId: string,
  application: CircuitApplication,
  reason: string,
): CircuitEnd {
  queueMicrotask(() => application.onClosed(reason, false))
  return {
    circuitId,
    isClosed: true,
    send: () => true,
    finish: () => undefined,
    failWrite: () => undefined,
    resume: () => undefined,
    close: () => undefined,
  }
}
