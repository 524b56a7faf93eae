/** The tunnel of a router wants to dial or to host, as the identity of the router. */
export interface TunnelClaim {
  /** The router whose channel the claim came over: none speaks for another one. */
  readonly routerId: string
  readonly service: { readonly id: string } | { readonly name: string }
  readonly type: 'Dial' | 'Bind'
}

/**
 * `tunnel`: the router has none. `service`: there is none of which the router may know. `posture`:
 * each policy that grants it has posture checks, and a router reports nothing to pass them by.
 */
export type TunnelFault = 'tunnel' | 'service' | 'router' | 'access' | 'posture'

export type JudgedTunnel =
  | { readonly ok: true; readonly serviceId: string; readonly identityName: string }
  | { readonly ok: false; readonly fault: TunnelFault }

/** A terminator that the tunnel of a router has made. */
export interface TunnelTerminator {
  readonly id: string
  readonly routerId: string
  readonly serviceId: string
}

/** The right of the tunnels in routers to dial and to host. */
export interface RouterTunnels {
  judge(claim: TunnelClaim): JudgedTunnel
  /** Terminators of all tunnels, in no order. */
  terminators(): Iterable<TunnelTerminator>
  /**
   * Called after each entry that may change the result of `judge` for some claim.
   * @returns a function that stops the calls.
   */
  follow(onMoved: () => void): () => void
}
