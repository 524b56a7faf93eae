import { shareFleet, subject } from './support/shared-cluster.ts'

// Records that are restored into the running cluster, and a cluster that has lost its majority.

shareFleet()
// First: it counts all services of the cluster.
subject('restore into the running cluster', () => import('./restores/restore-running.ts'))
// Last: it ends with two members.
subject('lost majority', () => import('./restores/recovered.ts'))
