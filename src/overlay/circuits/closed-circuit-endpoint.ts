import type { CircuitApplication, CircuitEndpoint } from './circuit-endpoint.ts'

/**
 * A circuit endpoint that is closed from the start. It calls the application's `onClosed` in a
 * microtask.
 */
export function closedCircuitEndpoint(
  circuitId: string,
  application: CircuitApplication,
  reason: string,
): CircuitEndpoint {
  queueMicrotask(() => application.onClosed(reason, false))
  return {
    circuitId,
    isClosed: true,
    send: () => true,
    finish: () => undefined,
    abort: () => undefined,
    resume: () => undefined,
    close: () => undefined,
  }
}
