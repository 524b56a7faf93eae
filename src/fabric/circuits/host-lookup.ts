/** Host of a service. */
export interface Host {
  readonly terminatorId: string
  readonly routerId: string
  readonly hostId: string
  /**
   * True if a router created the terminator, for a client or for its own tunnel; the host is the
   * identity `hostId`.
   */
  readonly isMadeByRouter: boolean
  readonly binding: string
  readonly address: string
  readonly cost: number
  readonly precedence: 'default' | 'required' | 'failed'
  readonly instanceId: string
  /** Values that the host sends to the dialer, by header key. */
  readonly peerData: ReadonlyMap<number, Uint8Array>
}

export interface HostedService {
  readonly encryptionRequired: boolean
  /** A circuit that is idle for this long is ended; 0 means never. */
  readonly maxIdleTimeMs: number
  readonly strategy: 'smartrouting' | 'weighted' | 'random' | 'sticky'
  readonly hosts: readonly Host[]
}

/** Looks up the hosts to which circuits can lead. */
export interface HostLookup {
  /** Undefined if the service does not exist. */
  service(serviceId: string): HostedService | undefined
  /** Cost in the router's record. */
  routerCost(routerId: string): number
  /** True if the router does not carry circuits between other routers. */
  isEndOnly(routerId: string): boolean
}
