import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import {
  CommandKind,
  HostedTerminatorCreateSchema,
  HostedTerminatorsRemoveSchema,
  HostedTerminatorUpdateSchema,
  ServiceSessionCreateSchema,
} from '../../../proto/gen/command_pb.ts'
import type { Terminator } from '../../../src/entities/kinds/terminator.ts'
import { createEnrollmentActor } from '../../../src/ports/actor.ts'
import type { Outcome } from '../../../src/ports/proposer.ts'
import { formedState, type LogWriter, service } from './log.ts'
import type { ClusterState } from '../../../src/fsm/access/cluster-state.ts'

type Hosted = MessageInitShape<typeof HostedTerminatorCreateSchema>

/**
 * A service `ledger` that the identity `i1` may host and dial, through the routers `r1` and `r2`;
 * another router `r3` that no policy selects; and the service sessions `bind` and `dial`.
 */
export class Hosting {
  readonly state: ClusterState
  readonly log: LogWriter

  constructor() {
    const { state, log } = formedState()
    this.state = state
    this.log = log
    log.create('service', 's1', service('ledger'))
    for (const id of ['r1', 'r2', 'r3']) {
      log.create('edgeRouter', id, { name: id, roleAttributes: id === 'r3' ? [] : ['near'] })
      const router = state.get('router', id)
      state.put('router', { ...router, id, isVerified: true })
    }
    const all = { semantic: 'AnyOf', identityRoles: ['#all'], serviceRoles: ['#all'] }
    log.create('servicePolicy', 'p1', { ...all, name: 'bind', type: 'Bind' })
    log.create('servicePolicy', 'p2', { ...all, name: 'dial', type: 'Dial' })
    const near = { semantic: 'AnyOf', edgeRouterRoles: ['#near'] }
    log.create('edgeRouterPolicy', 'e1', { ...near, name: 'e', identityRoles: ['#all'] })
    log.create('serviceEdgeRouterPolicy', 'f1', { ...near, name: 'f', serviceRoles: ['#all'] })
    log.create('identity', 'i1', { name: 'clerk', type: 'Default', isAdmin: false })
    log.logIn('session', 'i1', '')
    for (const type of ['Bind', 'Dial'] as const) this.#openSession(type.toLowerCase(), type)
  }

  /** Creates another identity that may host the service. @returns the ID of its service session. */
  newHost(identityId: string): string {
    this.log.create('identity', identityId, { name: identityId, type: 'Default', isAdmin: false })
    this.log.logIn(`session of ${identityId}`, identityId, '')
    const id = `bind of ${identityId}`
    this.#openSession(id, 'Bind', `session of ${identityId}`)
    return id
  }

  #openSession(id: string, type: 'Bind' | 'Dial', apiSessionId = 'session'): void {
    const asked = { id, apiSessionId, serviceId: 's1', type }
    const payload = toBinary(ServiceSessionCreateSchema, create(ServiceSessionCreateSchema, asked))
    this.#outcome(CommandKind.SERVICE_SESSION_CREATE, payload, '')
  }

  host(changes: Hosted = {}, routerId = 'r1'): Outcome {
    const message = create(HostedTerminatorCreateSchema, {
      id: 't1',
      sessionId: 'bind',
      address: 'a',
      precedence: 'default',
      ...changes,
    })
    const payload = toBinary(HostedTerminatorCreateSchema, message)
    return this.#outcome(CommandKind.HOSTED_TERMINATOR_CREATE, payload, routerId)
  }

  change(changes: MessageInitShape<typeof HostedTerminatorUpdateSchema>, routerId = 'r1'): Outcome {
    const message = create(HostedTerminatorUpdateSchema, { id: 't1', ...changes })
    const payload = toBinary(HostedTerminatorUpdateSchema, message)
    return this.#outcome(CommandKind.HOSTED_TERMINATOR_UPDATE, payload, routerId)
  }

  remove(ids: string[], routerId = 'r1'): Outcome {
    const payload = toBinary(
      HostedTerminatorsRemoveSchema,
      create(HostedTerminatorsRemoveSchema, { ids }),
    )
    return this.#outcome(CommandKind.HOSTED_TERMINATORS_REMOVE, payload, routerId)
  }

  terminator(id = 't1'): Terminator | undefined {
    return this.state.get('terminator', id)
  }

  #outcome(kind: CommandKind, payload: Uint8Array, routerId: string): Outcome {
    const input =
      routerId === ''
        ? {}
        : { actor: createEnrollmentActor({ routerId }, { method: 'channel', address: '' }) }
    const { outcome } = this.log.command(kind, payload, input)
    if (outcome === null) throw new Error('the command was passed over')
    return outcome
  }
}
