import { shareCluster, subject } from './support/shared-cluster.ts'

// What is written through one controller, on all of them: whole, refused without a majority, and repaired where a disk has it wrong.

shareCluster()
subject('writes', () => import('./writes/writes.ts'))
subject('quarantine', () => import('./writes/quarantine.ts'))
subject('no quorum', () => import('./writes/no-quorum.ts'))
