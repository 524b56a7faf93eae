import type { ReportedTerminator } from './router-inspections.ts'

/** Request for a validation of terminators. */
export interface TerminatorValidationRequest {
  /** A filter of terminators; '': all. */
  readonly filter: string
  /** True: the validation removes terminators that their router does not have. */
  readonly isFixing: boolean
  /** A filter of the identities whose terminators are counted; '': all except administrators. */
  readonly identitiesFilter: string
  /**
   * Number of terminators that each host must have for each service that it hosts; 0: any number.
   */
  readonly perServiceAndHost: number
  /** Number of terminators that each identity must have; 0: any number. */
  readonly perHost: number
}

/** A terminator compared with its router's report. */
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
  /** Creation time of the terminator, RFC 3339. */
  readonly createdAt: string
  /**
   * The state that the terminator's router reports; `unknown`: the router does not report the
   * terminator.
   */
  readonly state: ReportedTerminator['state'] | 'unknown'
  readonly isFixed: boolean
  readonly detail: string
}

/** A host with an unexpected number of terminators. */
export interface HostWithWrongTerminatorCount {
  readonly kind: 'host'
  readonly identityId: string
  /**
   * Id of the service whose terminators were counted; '' if terminators of all services were
   * counted.
   */
  readonly serviceId: string
  readonly message: string
}

/**
 * A finding about one router. `fault`: why this controller could not validate the router, or a part
 * of it.
 */
interface OfRouter {
  readonly routerId: string
  readonly routerName: string
  readonly fault: string | null
}

/** A link compared between this controller and a router's report. */
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

/** Validated links of one router. */
export interface RouterLinkFindings extends OfRouter {
  readonly kind: 'links'
  readonly links: readonly ValidatedLink[]
}

/** A circuit compared between this controller and a router's report. */
export interface ValidatedCircuit {
  readonly circuitId: string
  readonly isMissingInController: boolean
  readonly isMissingInForwarder: boolean
  readonly isMissingInEdge: boolean
  readonly isMissingInClient: boolean
  /**
   * For each address to which the router forwards the circuit: the router's description of the
   * destination, such as xg-edge-fwd.
   */
  readonly destinations: Readonly<Record<string, string>>
}

/** Validated circuits of one router. */
export interface RouterCircuitFindings extends OfRouter {
  readonly kind: 'circuits'
  readonly circuits: readonly ValidatedCircuit[]
}

export type ValidationFinding =
  | ValidatedTerminator
  | HostWithWrongTerminatorCount
  | RouterLinkFindings
  | RouterCircuitFindings

/** A running validation and its findings. */
export interface Validation {
  /**
   * Number of findings about the requested routers or terminators, without findings about hosts.
   */
  readonly count: number
  /**
   * The validation computes each finding when the caller reads it. The iterator never rejects: if
   * fewer than `count` findings arrive, the validation has failed.
   */
  readonly findings: AsyncIterable<ValidationFinding>
}

/**
 * Compares records, and this controller's data about the network, with the reports of connected
 * routers, for one caller.
 * @throws {Problem} UNAUTHORIZED; INVALID_FILTER and similar codes; SERVER_TOO_MANY_REQUESTS.
 */
export interface NetworkValidations {
  terminators(asked: TerminatorValidationRequest): Promise<Validation>
  /**
   * Validates links.
   * @param filter selects routers; '': all.
   */
  links(filter: string): Promise<Validation>
  circuits(filter: string): Promise<Validation>
}
