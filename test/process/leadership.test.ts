import { shareCluster, subject } from './support/shared-cluster.ts'

// Leadership that is handed over, and leaders that die.

shareCluster()
subject('handover', () => import('./leadership/handover.ts'))
subject('failover', () => import('./leadership/failover.ts'))
subject('ends', () => import('./leadership/ends.ts'))
