import type { LiveRow } from './live-table.ts'

/** A circuit: the path from a client to a host of a service. One controller owns it. */
export interface LiveCircuit extends LiveRow {
  readonly clientId: string
  /** The service session of the circuit. */
  readonly sessionId: string
  readonly serviceId: string
  readonly terminatorId: string
  /** UTC ms. */
  readonly createdAt: number
  readonly routerIds: readonly string[]
  readonly linkIds: readonly string[]
}
