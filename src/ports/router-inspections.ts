import type { RouterTerminator } from './hosted-terminators.ts'

/**
 * Values that a router reported about itself. A value is parsed if it is JSON, otherwise a string.
 */
export interface RouterInspection {
  readonly values: readonly { readonly name: string; readonly value: unknown }[]
  readonly errors: readonly string[]
}

/** A terminator as its router reports it. */
export interface ReportedTerminator {
  readonly state: 'valid' | 'unknownBinding' | 'unknownTerminator' | 'badState'
  readonly detail: string
}

/**
 * Values that this controller reports about its routers, under OpenZiti's names; each is JSON.
 */
export type OwnInspections = Readonly<Record<string, () => unknown>>

/** Values that connected routers report about themselves. */
export interface RouterInspections {
  readonly own: OwnInspections
  /**
   * Requests values from a router. Never rejects: if a router does not respond in time, the result
   * contains an error.
   */
  inspect(routerId: string, names: readonly string[]): Promise<RouterInspection>
  /**
   * Queries a router about its terminators; the router queries the hosts. Never rejects.
   * @param isFixing true: the router removes terminators whose host has disconnected.
   * @returns the responses by id, without those that did not arrive in time; null: the router is
   * not connected.
   */
  terminators(
    routerId: string,
    asked: readonly RouterTerminator[],
    isFixing: boolean,
  ): Promise<ReadonlyMap<string, ReportedTerminator> | null>
}
