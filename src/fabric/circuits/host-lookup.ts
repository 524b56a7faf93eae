/** A host of a service, from the record of its terminator. */
export interface ServiceHost {
  readonly terminatorId: string
  readonly routerId: string
  readonly hostId: string
  /**
   * True if a router created the terminator, for a client or for its own tunnel; `hostId` is then
   * the hosting identity.
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
  /** Idle time after which a circuit ends; 0: never. */
  readonly maxIdleTimeMs: number
  readonly strategy: 'smartrouting' | 'weighted' | 'random' | 'sticky'
  readonly hosts: readonly ServiceHost[]
}

/** Looks up the hosts to which circuits can lead. */
export interface HostLookup {
  /** Undefined if the service does not exist. */
  service(serviceId: string): HostedService | undefined
  /** Cost in the router's record. */
  routerCost(routerId: string): number
  /** True if the router must not carry circuits between other routers. */
  isEndOnly(routerId: string): boolean
}
