/**
 * Request of the tunnel in a router to dial or to host a service. The tunnel acts as the identity
 * of the router.
 */
export interface TunnelAccessRequest {
  /** The router that sent the request; a router cannot send requests for another router. */
  readonly routerId: string
  readonly service: { readonly id: string } | { readonly name: string }
  readonly type: 'Dial' | 'Bind'
}

/**
 * `tunnel`: the router has no tunnel, or the router or its identity is disabled. `service`: the
 * service does not exist, or the router may not know it. `posture`: each policy that grants access
 * has posture checks, and a router reports no posture.
 */
export type TunnelAccessFault = 'tunnel' | 'service' | 'router' | 'access' | 'posture'

export type TunnelAccessDecision =
  | { readonly ok: true; readonly serviceId: string; readonly identityName: string }
  | { readonly ok: false; readonly fault: TunnelAccessFault }

/** A terminator that a router's tunnel has created. */
export interface TunnelTerminator {
  readonly id: string
  readonly routerId: string
  readonly serviceId: string
}

/** Decides whether the tunnels in routers may dial and host services. */
export interface RouterTunnels {
  judge(claim: TunnelAccessRequest): TunnelAccessDecision
  /** Terminators of all tunnels, in any order. */
  terminators(): Iterable<TunnelTerminator>
  /**
   * Calls `onMoved` after each entry, and each replacement of the state, that may change the result
   * of `judge` for some request.
   * @returns a function that stops the calls.
   */
  follow(onMoved: () => void): () => void
}
