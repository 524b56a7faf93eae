/** The tunnel of a router requests to dial or to host, as the identity of the router. */
export interface TunnelClaim {
  /** The router that sent the claim: it can claim nothing for another one. */
  readonly routerId: string
  readonly service: { readonly id: string } | { readonly name: string }
  readonly type: 'Dial' | 'Bind'
}

/**
 * `tunnel`: the router has none. `service`: the router may know no such service. `posture`: each
 * policy that grants it has posture checks, and a router reports no posture.
 */
export type TunnelFault = 'tunnel' | 'service' | 'router' | 'access' | 'posture'

export type TunnelDecision =
  | { readonly ok: true; readonly serviceId: string; readonly identityName: string }
  | { readonly ok: false; readonly fault: TunnelFault }

/** A terminator that the tunnel of a router has made. */
export interface TunnelTerminator {
  readonly id: string
  readonly routerId: string
  readonly serviceId: string
}

/** Rights of the tunnels in routers to dial and to host. */
export interface RouterTunnels {
  judge(claim: TunnelClaim): TunnelDecision
  /** Terminators of all tunnels, in no order. */
  terminators(): Iterable<TunnelTerminator>
  /**
   * Called after each entry that may change the result of `judge` for some claim.
   * @returns a function that stops the calls.
   */
  follow(onMoved: () => void): () => void
}
