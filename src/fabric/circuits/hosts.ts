/** Host of a service. */
export interface Host {
  readonly terminatorId: string
  readonly routerId: string
  readonly hostId: string
  /** True: a router created it, for a client or for its own tunnel, as the identity `hostId`. */
  readonly isMadeByRouter: boolean
  readonly binding: string
  readonly address: string
  readonly cost: number
  readonly precedence: 'default' | 'required' | 'failed'
  readonly instanceId: string
  /** Values by header key, for the dialer. */
  readonly peerData: ReadonlyMap<number, Uint8Array>
}

export interface HostedService {
  readonly encryptionRequired: boolean
  /** Circuits that are idle for this long are ended; 0: never. */
  readonly maxIdleTimeMs: number
  readonly strategy: 'smartrouting' | 'weighted' | 'random' | 'sticky'
  readonly hosts: readonly Host[]
}

/** Hosts that circuits can lead to. */
export interface Hosts {
  /** Undefined if the service does not exist. */
  service(serviceId: string): HostedService | undefined
  /** Cost of the router in its record. */
  routerCost(routerId: string): number
  /** True: the router does not carry circuits between other routers. */
  isEndOnly(routerId: string): boolean
}
