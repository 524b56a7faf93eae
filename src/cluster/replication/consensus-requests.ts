import { toBinary } from '@bufbuild/protobuf'

import { type Configuration, ConfigurationSchema } from '../../../proto/gen/membership_pb.ts'
import type { Index, NodeId } from '../../raft/types.ts'
import type { ConsensusThreadCommand, MainThreadLink } from '../thread-channel.ts'

/**
 * Requests from the main thread to the consensus thread. Each receives one response with its id.
 */
export class ConsensusRequests {
  readonly #post: MainThreadLink['post']
  readonly #waiting = new Map<number, (reason: string | null) => void>()
  #nextId = 1

  constructor(post: MainThreadLink['post']) {
    this.#post = post
  }

  /**
   * Requests a leadership transfer.
   * @returns null when this controller no longer leads, or why the transfer was refused or failed.
   */
  async transferLeadership(target: NodeId | null): Promise<string | null> {
    return await this.#ask((id) => ({ type: 'transferLeadership', id, target }))
  }

  /**
   * Requests a change of the members.
   * @returns null when the change was logged, or the reason for the refusal.
   */
  async changeConfiguration(target: Configuration, basedOn: Index | null): Promise<string | null> {
    const configuration = toBinary(ConfigurationSchema, target)
    return await this.#ask((id) => ({ type: 'changeConfiguration', id, configuration, basedOn }))
  }

  answer(id: number, reason: string | null): void {
    this.#waiting.get(id)?.(reason)
    this.#waiting.delete(id)
  }

  /** Resolves all requests as failed, because no further responses arrive. */
  close(): void {
    for (const resolve of this.#waiting.values()) resolve('this controller is stopping')
    this.#waiting.clear()
  }

  async #ask(command: (id: number) => ConsensusThreadCommand): Promise<string | null> {
    const id = this.#nextId
    this.#nextId += 1
    return await new Promise((resolve) => {
      this.#waiting.set(id, resolve)
      this.#post(command(id))
    })
  }
}
