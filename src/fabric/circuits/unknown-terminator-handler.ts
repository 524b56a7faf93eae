import { create, toBinary } from '@bufbuild/protobuf'

import { CommandKind, EntityWriteSchema } from '../../../proto/gen/command_pb.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { canonicalJson } from '../../lib/text/canonical-json.ts'
import { SYSTEM_ACTOR } from '../../ports/actor.ts'
import type { ProposalInput, Proposer } from '../../ports/proposer.ts'
import { terminatorRemovalProposal } from '../clients/terminator-removal.ts'
import { routerLimits } from '../limits.ts'
import type { RouterLogger } from '../router-channels.ts'
import type { ServiceHost } from './host-lookup.ts'

const { routerWritesWaitingMax } = routerLimits

/**
 * Handles terminators that their own router does not know. If a router created the terminator, it
 * is deleted; the router creates it again if it still hosts the service. If an operator created it,
 * it gets the precedence `failed`, so that it is dialed last.
 */
export class UnknownTerminatorHandler {
  readonly #proposer: Proposer
  readonly #log: RouterLogger
  /** IDs of the terminators with a pending write. */
  readonly #writing = new Set<string>()

  constructor({ proposer, log }: { readonly proposer: Proposer; readonly log: RouterLogger }) {
    this.#proposer = proposer
    this.#log = log
  }

  /**
   * Starts the write for this terminator. If the write fails, the next failed dial of the
   * terminator starts another one.
   */
  note(host: ServiceHost): void {
    const { terminatorId: id, routerId } = host
    if (host.precedence === 'failed' && !host.isMadeByRouter) return
    if (this.#writing.has(id) || this.#writing.size >= routerWritesWaitingMax) return
    this.#writing.add(id)
    this.#proposer
      .propose(writeFor(host))
      .catch((error: unknown) => {
        const reason = errorMessage(error)
        this.#log.warn({ routerId, terminatorId: id, reason }, 'an invalid terminator stays')
      })
      .finally(() => this.#writing.delete(id))
  }
}

function writeFor({ terminatorId: id, isMadeByRouter }: ServiceHost): ProposalInput {
  if (isMadeByRouter) return terminatorRemovalProposal(id)
  const json = Buffer.from(canonicalJson({ precedence: 'failed' }))
  const payload = toBinary(
    EntityWriteSchema,
    create(EntityWriteSchema, { entity: 'terminator', id, json }),
  )
  return { kind: CommandKind.ENTITY_PATCH, payload, actor: SYSTEM_ACTOR }
}
