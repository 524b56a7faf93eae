import type { Index, NodeId, Role, Term } from '../../raft/types.ts'
import type { Alarm } from '../alarm-table.ts'

/** Status of this controller in the cluster, according to its own data. */
export interface ClusterNodeStatus {
  readonly role: Role
  readonly term: Term
  readonly leader: NodeId | null
  readonly commit: Index
  readonly applied: Index
  readonly persisted: Index
  readonly digestIndex: Index
  readonly digest: string
  readonly entitiesDigest: string
  readonly outstanding: number
  readonly alarms: readonly Alarm[]
}
