/** A circuit: how a client reaches a host of a service. Known to the controller that made it alone, and to its routers. */
export interface LiveCircuit {
  readonly id: string
  readonly clientId: string
  readonly serviceId: string
  readonly terminatorId: string
  /** UTC ms. */
  readonly createdAt: number
  readonly routerIds: readonly string[]
  readonly linkIds: readonly string[]
}

export interface LiveCircuits {
  all(): readonly LiveCircuit[]
  get(id: string): LiveCircuit | undefined
  /** @returns false when there is no such circuit. */
  remove(id: string, isImmediate: boolean): boolean
}

export const noLiveCircuits: LiveCircuits = {
  all: () => [],
  get: () => undefined,
  remove: () => false,
}
