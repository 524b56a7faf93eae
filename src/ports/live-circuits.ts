import type { LiveRow } from './live-table.ts'

/** A circuit: how a client reaches a host of a service. One controller answers for it. */
export interface LiveCircuit extends LiveRow {
  readonly clientId: string
  /** The service session that it was made for. */
  readonly sessionId: string
  readonly serviceId: string
  readonly terminatorId: string
  /** UTC ms. */
  readonly createdAt: number
  readonly routerIds: readonly string[]
  readonly linkIds: readonly string[]
}
