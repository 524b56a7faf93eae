import { shareCluster, subject } from './support/shared-cluster.ts'

// Controllers with the election timeouts of production. Their leader is kept busy by log-ins, and
// is killed during enrollments.

shareCluster({ hasCalmElections: false })
subject('log-in storm', () => import('./elections/log-in-storm.ts'))
subject('interrupted enrollments', () => import('./elections/enrollment-killed.ts'))
