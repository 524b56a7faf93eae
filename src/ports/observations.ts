import type { LiveCircuit, LiveLink } from './live-table.ts'

/** Outcomes of an attempt to dial a service. `fail` covers all attempts of one dial. */
export const dialResults = [
  'success',
  'fail',
  'timeout',
  'other',
  'terminatorTimeout',
  'terminatorRefused',
  'terminatorInvalid',
  'terminatorMisconfigured',
] as const
export type DialResult = (typeof dialResults)[number]

/** Causes for which a router could not set up a path, in the order of the router's error codes. */
export const routerFailureCauses = [
  'ROUTER_ERR_GENERIC',
  'ROUTER_ERR_INVALID_TERMINATOR',
  'ROUTER_ERR_MISCONFIGURED_TERMINATOR',
  'ROUTER_ERR_DIAL_TIMED_OUT',
  'ROUTER_ERR_CONN_REFUSED',
  'ROUTER_ERR_REJECTED_BY_APPLICATION',
  'ROUTER_ERR_DNS_RESOLUTION_FAILED',
  'ROUTER_ERR_PORT_NOT_ALLOWED',
  'ROUTER_ERR_INVALID_LINK_DESTINATION',
  'ROUTER_ERR_RESOURCES_NOT_AVAILABLE',
] as const

/** Reasons why a circuit could not be created, with OpenZiti's names. */
export const circuitFailureCauses = [
  ...routerFailureCauses,
  'NO_ONLINE_TERMINATORS',
  'ROUTER_RESPONSE_TIMEOUT',
] as const
export type CircuitFailureCause = (typeof circuitFailureCauses)[number]

/** One attempt to dial a service. */
export interface DialAttempt {
  readonly kind: 'dial'
  readonly serviceId: string
  /** Id of the terminator; empty if none was available. */
  readonly terminatorId: string
  readonly result: DialResult
}

/** A fact that one controller observed and that the log does not contain. */
export type Observation =
  | {
      readonly kind: 'router'
      readonly routerId: string
      readonly isOnline: boolean
    }
  | {
      readonly kind: 'connect'
      readonly source: { readonly type: 'router' | 'peer' | 'identity'; readonly id: string }
      readonly sourceAddress: string
      readonly target: { readonly type: 'ctrl' | 'router'; readonly id: string }
      readonly targetAddress: string
      /** UTC ms; absent if the reporter gives no time. */
      readonly atMs?: number
    }
  | {
      readonly kind: 'sdk'
      readonly identityId: string
      readonly status: 'online' | 'offline'
    }
  | {
      readonly kind: 'link'
      readonly type: 'new' | 'known' | 'connectionsChanged' | 'fault' | 'disconnectedDest'
      readonly link: LiveLink
    }
  | {
      readonly kind: 'circuit'
      readonly type: 'created' | 'pathUpdated' | 'deleted'
      readonly circuit: LiveCircuit
      readonly cost: number
      readonly hostId: string
      readonly instanceId: string
      /** Time from the request for a circuit to the last response of a router, ms. */
      readonly layMs?: number
    }
  | {
      readonly kind: 'circuitFailed'
      readonly circuitId: string
      readonly clientId: string
      /** Service session of the dial; '' without one. */
      readonly sessionId: string
      readonly serviceId: string
      readonly instanceId: string
      readonly cause: CircuitFailureCause
      readonly layMs: number
    }
  | DialAttempt
  | { readonly kind: 'routerMetrics'; readonly metrics: RouterMetrics }
  | {
      readonly kind: 'logInFailed'
      readonly method: string
      readonly address: string
      /** The reason of the refusal, or its error code if it has no reason. */
      readonly reason: string
      /** The external JWT signer of the refused log-in; '' without one. */
      readonly signerId: string
      readonly claim: string
    }
  | {
      readonly kind: 'routerAlert'
      readonly routerId: string
      readonly severity: string
      readonly text: string
      readonly details: readonly string[]
      /** IDs of the entities that the alert concerns, by entity type. */
      readonly relatedEntities: Readonly<Record<string, string>>
      /** UTC ms; absent if the router reports no time. */
      readonly atMs?: number
    }
  | {
      readonly kind: 'alarm'
      readonly code: string
      readonly text: string
      readonly severity: 'warning' | 'critical'
      /** True when the observed state begins, false when it ends. */
      readonly isOn: boolean
    }

/** Metrics of one router over one interval. */
export interface RouterMetrics {
  readonly routerId: string
  readonly eventId: string
  /** UTC ms; null if the router reports none. */
  readonly atMs: number | null
  readonly tags: Readonly<Record<string, string>>
  readonly figures: readonly NamedMetric[]
  readonly usages: readonly CircuitUsage[]
}

/** Bytes that a router counted for a circuit in one interval. */
export interface CircuitUsage {
  readonly kind: UsageKind
  readonly circuitId: string
  readonly bytes: number
  /** Start of the interval, UTC, in seconds since the epoch. */
  readonly startS: number
  readonly lengthS: number
  /** Tags that the controller put into the circuit's route. */
  readonly tags: Readonly<Record<string, string>>
}

/**
 * Kinds of counters: at the router of the client (ingress), at the router of the host (egress), or
 * at links (fabric). rx: read, tx: written.
 */
export const usageKinds = [
  'ingress.rx',
  'ingress.tx',
  'egress.rx',
  'egress.tx',
  'fabric.rx',
  'fabric.tx',
] as const
export type UsageKind = (typeof usageKinds)[number]

/** One metric under its OpenZiti name, with its values. */
export interface NamedMetric {
  readonly name: string
  readonly type: 'intValue' | 'floatValue' | 'histogram' | 'meter' | 'timer'
  readonly values: Readonly<Record<string, number>>
}

/** Publishes an observation of this controller. The function never throws and never waits. */
export type ObservationSink = (fact: Observation) => void

/** Publishes nothing; for components that run without events. */
export const discardObservation: ObservationSink = () => undefined
