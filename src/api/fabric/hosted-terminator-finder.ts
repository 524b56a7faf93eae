import type { Terminator } from '../../entities/kinds/terminator.ts'
import { isSameJson } from '../../lib/text/canonical-json.ts'
import { isChangeOfKind, type RecordChange } from '../../ports/change-feed.ts'
import type {
  HostedTerminators,
  RouterTerminator,
  UnauthorizedTerminator,
} from '../../ports/hosted-terminators.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { ClientSessionRecords } from './router-client-authorizer.ts'

interface ApiHostedTerminatorsDeps {
  readonly state: Pick<StateView, 'get' | 'findAll' | 'routersOfIdentity'>
}

/** Finds the terminators that routers created for hosts, in the replicated state. */
export class HostedTerminatorFinder implements HostedTerminators {
  readonly #deps: ApiHostedTerminatorsDeps
  readonly #records: ClientSessionRecords

  constructor(deps: ApiHostedTerminatorsDeps, records: ClientSessionRecords) {
    this.#deps = deps
    this.#records = records
  }

  *hosts(): Iterable<string> {
    const seen = new Set<string>()
    for (const id of this.#records.ids('terminator')) {
      const terminator = this.#deps.state.get('terminator', id)
      if (terminator === undefined || !isOfClient(terminator)) continue
      if (seen.has(terminator.hostId)) continue
      seen.add(terminator.hostId)
      yield terminator.hostId
    }
  }

  *ofRouter(routerId: string): Iterable<RouterTerminator> {
    const all = this.#deps.state.findAll('terminator', 'routerId', routerId)
    for (const { id, binding, address, isSystem } of all) {
      if (isSystem) yield { id, binding, address }
    }
  }

  ungranted(identityId: string): readonly UnauthorizedTerminator[] {
    const { state } = this.#deps
    const sessions = state.findAll('session', 'identityId', identityId)
    const binds = sessions.filter(({ type }) => type === 'Bind')
    const granted = new Set(binds.map(({ serviceId }) => serviceId))
    const routers = state.routersOfIdentity(identityId)
    // @guard hosting-that-stays-open--router, hosting-that-stays-open--session
    return state
      .findAll('terminator', 'hostId', identityId)
      .filter(isOfClient)
      .filter(({ serviceId, routerId }) => !granted.has(serviceId) || !routers.has(routerId))
      .map(({ id, routerId, serviceId }) => ({
        id,
        routerId,
        sessionIds: binds.filter((one) => one.serviceId === serviceId).map((one) => one.id),
      }))
  }

  mayUse(identityId: string, routerId: string): boolean {
    return this.#deps.state.routersOfIdentity(identityId).has(routerId)
  }

  follow(onEnded: (identityIds: readonly string[] | null) => void): () => void {
    return this.#records.follow(['session', 'identity', 'router', 'edgeRouterPolicy'], {
      onEntry: (_index, changes) => {
        const ended = changes.map(hostsThatMayLose)
        const ids = ended.flatMap((each) => each ?? [])
        if (ended.includes(null)) onEnded(null)
        else if (ids.length > 0) onEnded([...new Set(ids)])
      },
      onReplaced: () => onEnded(null),
    })
  }
}

/** Identities that may lose the right to host because of this change; null if any identity may. */
function hostsThatMayLose(change: RecordChange): readonly string[] | null {
  if (isChangeOfKind(change, 'session')) {
    const { before: session, after } = change
    return after === undefined && session?.type === 'Bind' ? [session.identityId] : []
  }
  const { kind, id, before, after } = change
  if (before === undefined) return []
  if (kind === 'edgeRouterPolicy') return null
  const roles = [before, after].map((record) => record?.['roleAttributes'] ?? null)
  if (after === undefined || isSameJson(roles[0], roles[1])) return []
  return kind === 'identity' ? [id] : null
}

function isOfClient({ isSystem, binding }: Terminator): boolean {
  return isSystem && binding === 'edge'
}
