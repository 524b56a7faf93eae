import type { Configuration as ConfigurationRecord } from '../../../proto/gen/membership_pb.ts'
import type { ConfigurationInForce } from '../../cluster/cluster-node-parts.ts'
import type { Index, NodeId } from '../../raft/types.ts'

interface ReadinessDeps {
  readonly selfId: NodeId
  /** Store id of the present data folder, 16 bytes. */
  readonly storeId: Uint8Array
  /** Configuration of the stored state at the start of the process. */
  readonly persisted: ConfigurationRecord
  /** Index of a state that was discarded for an empty one; 0 if none was. */
  readonly lostIndex: Index
  readonly configuration: () => ConfigurationInForce
  readonly appliedIndex: () => Index
}

/**
 * Whether the state includes this controller's own membership, and so everything committed before
 * its admission. Before that, the controller could report from an incomplete state that an existing
 * user does not exist. Once true, it stays true.
 */
export class StartupReadiness {
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
