import type { Configuration as ConfigurationRecord } from '../../../proto/gen/membership_pb.ts'
import type { CurrentConfiguration } from '../../cluster/cluster-node-deps.ts'
import type { Index, NodeId } from '../../raft/types.ts'

interface ReadinessDeps {
  readonly selfId: NodeId
  /** Store id of the current data folder, 16 bytes. */
  readonly storeId: Uint8Array
  /** Configuration in the stored state when the process started. */
  readonly persisted: ConfigurationRecord
  /**
   * Index that the state must reach again, because a damaged state was replaced by an empty one; 0
   * if no state was discarded.
   */
  readonly lostIndex: Index
  readonly configuration: () => CurrentConfiguration
  readonly appliedIndex: () => Index
}

/**
 * Tracks whether the state includes this controller's own membership, and so everything that was
 * committed before its admission. With an earlier, incomplete state, the controller could report
 * that an existing user does not exist. A state that is ready stays ready.
 */
export class StateReadiness {
  readonly #deps: ReadinessDeps
  #is: boolean

  constructor(deps: ReadinessDeps) {
    this.#deps = deps
    this.#is = this.#isListedIn(deps.persisted)
  }

  get is(): boolean {
    if (this.#is) return true
    const { record, index, isCommitted } = this.#deps.configuration()
    this.#is =
      isCommitted &&
      this.#isListedIn(record) &&
      index > 0 &&
      this.#deps.appliedIndex() >= Math.max(index, this.#deps.lostIndex)
    return this.#is
  }

  #isListedIn({ members }: ConfigurationRecord): boolean {
    const { selfId, storeId } = this.#deps
    const own = members.find(({ id }) => id === selfId)
    return own !== undefined && Buffer.compare(own.storeId, storeId) === 0
  }
}
