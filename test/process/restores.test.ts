import { shareFleet, subject } from './support/shared-cluster.ts'

// Restoring records into the running cluster, and recovering a cluster that has lost its majority.

shareFleet()
// This runs first, because it counts all services of the cluster.
subject('restore into the running cluster', () => import('./restores/restore-running.ts'))
// This runs last, because it leaves a cluster of two members.
subject('lost majority', () => import('./restores/recovered.ts'))
