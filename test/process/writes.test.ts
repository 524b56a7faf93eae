import { shareCluster, subject } from './support/shared-cluster.ts'

// Writes through one controller and their effect on all controllers: complete, refused without a
// majority, and repaired after disk damage.

shareCluster()
subject('writes', () => import('./writes/writes.ts'))
subject('quarantine', () => import('./writes/quarantine.ts'))
subject('no quorum', () => import('./writes/no-quorum.ts'))
