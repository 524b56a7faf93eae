import { toBinary } from '@bufbuild/protobuf'

import { type Configuration, ConfigurationSchema } from '../../../proto/gen/membership_pb.ts'
import type { Index, NodeId } from '../../raft/types.ts'
import type { HostCommand, MainLink } from '../link.ts'

/**
 * Requests of main to the consensus thread, which it waits for: each is answered once, under its
 * id.
 */
export class ConsensusRequests {
  readonly #post: MainLink['post']
  readonly #waiting = new Map<number, (because: string | null) => void>()
  #nextId = 1

  constructor(post: MainLink['post']) {
    this.#post = post
  }

  /** @returns null when the leader has begun to hand over, or why it did not. */
  async transferLeadership(target: NodeId | null): Promise<string | null> {
    return await this.#ask((id) => ({ type: 'transferLeadership', id, target }))
  }

  /** @returns null when it was logged, or why it was not. */
  async changeConfiguration(target: Configuration, basedOn: Index | null): Promise<string | null> {
    const configuration = toBinary(ConfigurationSchema, target)
    return await this.#ask((id) => ({ type: 'changeConfiguration', id, configuration, basedOn }))
  }

  answer(id: number, because: string | null): void {
    this.#waiting.get(id)?.(because)
    this.#waiting.delete(id)
  }

  /** None will be answered any more. */
  close(): void {
    for (const resolve of this.#waiting.values()) resolve('this controller is stopping')
    this.#waiting.clear()
  }

  async #ask(command: (id: number) => HostCommand): Promise<string | null> {
    const id = this.#nextId
    this.#nextId += 1
    return await new Promise((resolve) => {
      this.#waiting.set(id, resolve)
      this.#post(command(id))
    })
  }
}
