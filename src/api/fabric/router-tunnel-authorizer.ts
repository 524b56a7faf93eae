import type { KindName } from '../../entities/kind-records.ts'
import { isDisabled } from '../../lib/is-disabled.ts'
import { type Clock, proposalNowMs } from '../../lib/clock.ts'
import { isChangeOfKind, type RecordChange } from '../../ports/change-feed.ts'
import type { PostureService } from '../../ports/posture.ts'
import type {
  TunnelAccessDecision,
  RouterTunnels,
  TunnelAccessRequest,
  TunnelTerminator,
} from '../../ports/router-tunnels.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { ClientSessionRecords } from './router-client-authorizer.ts'

interface ApiRouterTunnelsDeps {
  readonly state: StateView
  readonly posture: Pick<PostureService, 'failures' | 'ofIdentity'>
  readonly clock: Clock
}

/** Kinds whose records affect the rights of a router's tunnel. */
const followed: readonly KindName[] = [
  'router',
  'identity',
  'service',
  'servicePolicy',
  'edgeRouterPolicy',
  'serviceEdgeRouterPolicy',
  'postureCheck',
]

/**
 * Decides whether the tunnel of a router may dial or host a service. Needs no session. The rules
 * are the same as for a client that has the router's identity and is connected to that router.
 */
export class RouterTunnelAuthorizer implements RouterTunnels {
  readonly #deps: ApiRouterTunnelsDeps
  readonly #records: ClientSessionRecords

  constructor(deps: ApiRouterTunnelsDeps, records: ClientSessionRecords) {
    this.#deps = deps
    this.#records = records
  }

  judge({ routerId, service, type }: TunnelAccessRequest): TunnelAccessDecision {
    const { state, posture } = this.#deps
    const router = state.get('router', routerId)
    const identity = state.get('identity', routerId)
    // @guard tunnels-of-routers--disabled
    const hasTunnel = router?.isTunnelerEnabled === true && !router.disabled
    if (!hasTunnel || identity?.typeId !== 'Router') return { ok: false, fault: 'tunnel' }
    // @guard tunnels-of-routers--identity
    if (isDisabled(identity, proposalNowMs(this.#deps))) return { ok: false, fault: 'tunnel' }
    const serviceId = this.#serviceId(service)
    const between = state.accessBetween(routerId, serviceId)
    // Reports a service that the router may not use as missing, so that the router cannot find out
    // names of services.
    // @guard tunnels-of-routers--names
    if (between === null || between.policies.length === 0) return { ok: false, fault: 'service' }
    // @guard listeners-of-a-router--policy, tunnels-of-routers--type
    if (!between.policies.some((policy) => policy.type === type)) {
      return { ok: false, fault: 'access' }
    }
    // @guard tunnels-of-routers--reach
    if (!between.commonRouters.some(({ id }) => id === routerId)) {
      return { ok: false, fault: 'router' }
    }
    const wanted = { identityId: routerId, serviceId, type }
    const failures = posture.failures(wanted, posture.ofIdentity(routerId))
    // @guard tunnels-of-routers--posture
    if (failures.length > 0) return { ok: false, fault: 'posture' }
    return { ok: true, serviceId, identityName: identity.name }
  }

  *terminators(): Iterable<TunnelTerminator> {
    const { state } = this.#deps
    for (const routerId of this.#records.ids('router')) {
      for (const each of state.findAll('terminator', 'hostId', routerId)) {
        const { id, serviceId, isSystem, binding } = each
        if (isSystem && binding === 'tunnel') yield { id, routerId: each.routerId, serviceId }
      }
    }
  }

  follow(onMoved: () => void): () => void {
    return this.#records.follow(followed, {
      onEntry: (_index, changes) => {
        if (changes.some(mayMove)) onMoved()
      },
      onReplaced: onMoved,
    })
  }

  #serviceId(service: TunnelAccessRequest['service']): string {
    if ('id' in service) return service.id
    return this.#deps.state.find('service', 'name', service.name)?.id ?? ''
  }
}

/**
 * Whether a change may affect router tunnels. A change of an identity may only if it is the
 * identity of a router; changes of clients' identities are frequent.
 */
function mayMove(change: RecordChange): boolean {
  if (!isChangeOfKind(change, 'identity')) return true
  return [change.before, change.after].some((identity) => identity?.typeId === 'Router')
}
