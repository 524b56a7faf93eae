import type { Session } from '../../entities/kinds/session.ts'
import type { Terminator } from '../../entities/kinds/terminator.ts'
import type { HostedTerminators } from '../../ports/hosted-terminators.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { ClientRecords } from './router-clients.ts'

interface Needs {
  readonly state: Pick<StateView, 'get' | 'findAll'>
}

/** The hosts that are clients of routers, by the records. */
export class ApiHostedTerminators implements HostedTerminators {
  readonly #needs: Needs
  readonly #records: ClientRecords

  constructor(needs: Needs, records: ClientRecords) {
    this.#needs = needs
    this.#records = records
  }

  *hosts(): Iterable<string> {
    const seen = new Set<string>()
    for (const id of this.#records.ids('terminator')) {
      const terminator = this.#needs.state.get<Terminator>('terminator', id)
      if (terminator === undefined || !isOfClient(terminator)) continue
      if (seen.has(terminator.hostId)) continue
      seen.add(terminator.hostId)
      yield terminator.hostId
    }
  }

  ungranted(identityId: string): readonly string[] {
    const { state } = this.#needs
    const sessions = state.findAll<Session>('session', 'identityId', identityId)
    const binds = sessions.filter(({ type }) => type === 'Bind')
    const granted = new Set(binds.map(({ serviceId }) => serviceId))
    return state
      .findAll<Terminator>('terminator', 'hostId', identityId)
      .filter((terminator) => isOfClient(terminator) && !granted.has(terminator.serviceId))
      .map(({ id }) => id)
  }

  follow(onEnded: (identityIds: readonly string[] | null) => void): () => void {
    return this.#records.follow(['session'], {
      onEntry: (_index, changes) => {
        const ended = changes.flatMap(({ before, after }) => {
          const session = before as Session | undefined
          return after === undefined && session?.type === 'Bind' ? [session.identityId] : []
        })
        if (ended.length > 0) onEnded([...new Set(ended)])
      },
      onReplaced: () => onEnded(null),
    })
  }
}

function isOfClient({ isSystem, binding }: Terminator): boolean {
  return isSystem && binding === 'edge'
}
