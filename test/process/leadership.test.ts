import { shareCluster, subject } from './support/shared-cluster.ts'

// Leadership transfers, and leaders that are killed.

shareCluster()
subject('handover', () => import('./leadership/handover.ts'))
subject('failover', () => import('./leadership/failover.ts'))
subject('ends', () => import('./leadership/ends.ts'))
