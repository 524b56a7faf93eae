import type { TerminatorStanding } from './router-inspections.ts'

/** A question about terminators. */
export interface TerminatorsAsked {
  /** A filter of terminators; '': all. */
  readonly filter: string
  /** True if terminators that their router does not have are removed. */
  readonly isFixing: boolean
  /** A filter of identities that are counted; '': all that are no administrators. */
  readonly identitiesFilter: string
  /** Terminators that each host must have of each service that it hosts; 0: any number. */
  readonly perServiceAndHost: number
  /** Terminators that each identity must have; 0: any number. */
  readonly perHost: number
}

export interface ValidatedTerminator {
  readonly kind: 'terminator'
  readonly terminatorId: string
  readonly serviceId: string
  readonly serviceName: string
  readonly routerId: string
  readonly routerName: string
  readonly binding: string
  readonly address: string
  readonly hostId: string
  /** RFC 3339. */
  readonly createdAt: string
  /** 'unknown': its router does not say. */
  readonly state: TerminatorStanding['state'] | 'unknown'
  readonly isFixed: boolean
  readonly detail: string
}

/** A host with another number of terminators than was expected. */
export interface MiscountedHost {
  readonly kind: 'host'
  readonly identityId: string
  /** '' where terminators of all services are counted. */
  readonly serviceId: string
  readonly message: string
}

/** A finding about one router; `fault`: why it could not be validated, or not whole. */
interface OfRouter {
  readonly routerId: string
  readonly routerName: string
  readonly fault: string | null
}

export interface ValidatedLink {
  readonly linkId: string
  /** True if this controller knows the link. */
  readonly isKnown: boolean
  /** True if the router has the link. */
  readonly isThere: boolean
  readonly peerRouterId: string
  readonly isPeerConnected: boolean
  readonly isDialed: boolean
  readonly isValid: boolean
  readonly messages: readonly string[]
}

export interface RouterLinksFound extends OfRouter {
  readonly kind: 'links'
  readonly links: readonly ValidatedLink[]
}

export interface ValidatedCircuit {
  readonly circuitId: string
  readonly isMissingInController: boolean
  readonly isMissingInForwarder: boolean
  readonly isMissingInEdge: boolean
  readonly isMissingInClient: boolean
  /** Address to what stands there, as the router says it. */
  readonly destinations: Readonly<Record<string, string>>
}

export interface RouterCircuitsFound extends OfRouter {
  readonly kind: 'circuits'
  readonly circuits: readonly ValidatedCircuit[]
}

export type ValidationFinding =
  | ValidatedTerminator
  | MiscountedHost
  | RouterLinksFound
  | RouterCircuitsFound

export interface Validation {
  /** Findings of what was asked for; those of hosts come on top. */
  readonly count: number
  /**
   * Computed as they are read. Never rejects: if there are fewer than `count`, the others failed.
   */
  readonly findings: AsyncIterable<ValidationFinding>
}

/**
 * Compares what records and this controller say with what connected routers say, for one caller.
 * @throws {Problem} UNAUTHORIZED; INVALID_FILTER and its kin; SERVER_TOO_MANY_REQUESTS.
 */
export interface NetworkValidations {
  terminators(asked: TerminatorsAsked): Promise<Validation>
  /** @param filter of routers; '': all. */
  links(filter: string): Promise<Validation>
  circuits(filter: string): Promise<Validation>
}
