import type { Configuration as ConfigurationRecord } from '../../../proto/gen/membership_pb.ts'
import type { ConfigurationInForce } from '../../cluster/cluster-node-parts.ts'
import type { Index, NodeId } from '../../raft/types.ts'

export interface ReadinessParts {
  readonly selfId: NodeId
  /** Store id of the data folder in use, 16 bytes. */
  readonly storeId: Uint8Array
  /** Configuration of the state as it was when the process started. */
  readonly persisted: ConfigurationRecord
  /** Index where a state that was given up for an empty one had been; 0: none was. */
  readonly lostIndex: Index
  readonly configuration: () => ConfigurationInForce
  readonly appliedIndex: () => Index
}

/**
 * Whether a controller has come as far as its own membership: its state then holds all that was
 * there when it was let in. Before, it would answer from an empty state that a user is unknown who
 * is not. Stays so once it is.
 */
export class StartupReadiness {
  readonly #parts: ReadinessParts
  #is: boolean

  constructor(parts: ReadinessParts) {
    this.#parts = parts
    this.#is = this.#isListedIn(parts.persisted)
  }

  get is(): boolean {
    if (this.#is) return true
    const { record, index, isCommitted } = this.#parts.configuration()
    this.#is =
      isCommitted &&
      this.#isListedIn(record) &&
      index > 0 &&
      this.#parts.appliedIndex() >= Math.max(index, this.#parts.lostIndex)
    return this.#is
  }

  #isListedIn({ members }: ConfigurationRecord): boolean {
    const { selfId, storeId } = this.#parts
    const own = members.find(({ id }) => id === selfId)
    return own !== undefined && Buffer.compare(own.storeId, storeId) === 0
  }
}
