import { fromBinary } from '@bufbuild/protobuf'

import { ConfigurationSchema } from '../../../proto/gen/membership_pb.ts'
import type { CoreStatus } from '../../raft/effects.ts'
import type { RaftNode } from '../../raft/node.ts'
import type { NodeId } from '../../raft/types.ts'
import type { HostCommand, HostEvent } from '../link.ts'

type ChangeConfiguration = Extract<HostCommand, { readonly type: 'changeConfiguration' }>

/**
 * Executes and answers main's requests to the leader's core; the counterpart of
 * consensus-requests.ts.
 */
export class ConsensusReplies {
  readonly #node: RaftNode
  readonly #status: () => CoreStatus
  readonly #post: (event: HostEvent) => void

  constructor(node: RaftNode, status: () => CoreStatus, post: (event: HostEvent) => void) {
    this.#node = node
    this.#status = status
    this.#post = post
  }

  async transferLeadership(id: number, target: NodeId | null): Promise<void> {
    const { role, leader } = this.#status()
    if (role !== 'leader') {
      this.#answer(id, `this controller is not the leader; ${leader ?? 'no other'} is`)
      return
    }
    const isDone = await this.#node.transferLeadership(target)
    const late =
      target === null
        ? 'no other voter took over in time; wait until one has caught up, or name it'
        : `${target} did not become leader in time`
    this.#answer(id, isDone ? null : late)
  }

  async changeConfiguration({ id, configuration, basedOn }: ChangeConfiguration): Promise<void> {
    const target = fromBinary(ConfigurationSchema, configuration)
    const result = await this.#node.changeConfiguration(target, basedOn ?? undefined)
    this.#answer(id, result.ok ? null : result.code)
  }

  #answer(id: number, reason: string | null): void {
    this.#post({ type: 'answered', id, reason })
  }
}
