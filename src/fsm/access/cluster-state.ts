import { AccessIndex } from './access-index.ts'
import { State } from '../records/state.ts'

/** The replicated state with its access index. */
export class ClusterState extends State {
  readonly access: AccessIndex

  constructor(below: ClusterState | null = null) {
    super(below)
    this.access = new AccessIndex(this)
    this.follow(this.access)
  }

  override layer(writesMax: number): ClusterState {
    return this.asLayer(new ClusterState(this), writesMax)
  }
}
