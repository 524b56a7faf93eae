/** Host of a service. */
export interface Host {
  readonly terminatorId: string
  readonly routerId: string
  readonly hostId: string
  /** Its router has made it, for a client of it or for its own tunnel, as the identity `hostId`. */
  readonly isMadeByRouter: boolean
  readonly binding: string
  readonly address: string
  readonly cost: number
  readonly precedence: 'default' | 'required' | 'failed'
  readonly instanceId: string
  /** Values by header number. */
  readonly peerData: ReadonlyMap<number, Uint8Array>
}

export interface HostedService {
  readonly encryptionRequired: boolean
  /** Circuits through which nothing passes for so long are ended; 0: none is. */
  readonly maxIdleTimeMs: number
  readonly strategy: 'smartrouting' | 'weighted' | 'random' | 'sticky'
  readonly hosts: readonly Host[]
}

/** Hosts that circuits are made to. */
export interface Hosts {
  /** Undefined when there is no such service. */
  service(serviceId: string): HostedService | undefined
  /** Cost of entering a router, by its record. */
  routerCost(routerId: string): number
  /** Circuits do not pass through it. */
  isEndOnly(routerId: string): boolean
}
