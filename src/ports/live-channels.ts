import type { LiveRow } from './live-table.ts'

/** The channel of a router that is connected to this controller; the id is that of the router. */
export interface LiveChannel extends LiveRow {
  readonly name: string
  /** UTC ms. */
  readonly connectedAt: number
  /** Remote address of the connection; '' when its socket has none. */
  readonly address: string
  /** Version of its program. */
  readonly version: string
}
