import { AccessIndex } from './access-index.ts'
import { PendingExpiryIndex, kindsWithAccessExpiry } from '../expiry/pending-expiries.ts'
import { State } from '../records/state.ts'

/** The replicated state with the indexes about access that are derived from it. */
export class ClusterState extends State {
  readonly access: AccessIndex
  readonly ends: PendingExpiryIndex

  constructor(below: ClusterState | null = null) {
    super(below)
    this.access = new AccessIndex(this)
    this.follow(this.access)
    this.ends = new PendingExpiryIndex(this)
    this.follow(this.ends, kindsWithAccessExpiry)
  }

  override layer(writesMax: number): ClusterState {
    return this.asLayer(new ClusterState(this), writesMax)
  }
}
