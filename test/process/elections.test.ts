import { shareCluster, subject } from './support/shared-cluster.ts'

// Controllers with the election timeouts of production, whose leader stays under log-ins and dies
// amid enrollments.

shareCluster({ hasCalmElections: false })
subject('log-in storm', () => import('./elections/log-in-storm.ts'))
subject('interrupted enrollments', () => import('./elections/enrollment-killed.ts'))
