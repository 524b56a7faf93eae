import type {
  TunnelAccessDecision,
  RouterTunnels,
  TunnelAccessRequest,
  TunnelTerminator,
} from '../../src/ports/router-tunnels.ts'

/** Tunnels of routers; a test sets the permissions of each. */
export class Tunnels implements RouterTunnels {
  readonly claims: TunnelAccessRequest[] = []
  judged: TunnelAccessDecision = { ok: true, serviceId: 's1', identityName: 'er1' }
  hosted: TunnelTerminator[] = []
  onMoved: () => void = () => undefined

  judge(claim: TunnelAccessRequest): TunnelAccessDecision {
    this.claims.push(claim)
    return this.judged
  }

  terminators(): readonly TunnelTerminator[] {
    return this.hosted
  }

  follow(onMoved: () => void): () => void {
    this.onMoved = onMoved
    return () => undefined
  }
}
