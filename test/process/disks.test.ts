import { shortLogs } from '../chaos/damages.ts'
import { shareFleet, subject } from './support/shared-cluster.ts'

// Disks that are damaged, lost, or put back as they were some time ago.

shareFleet(shortLogs)
subject('damage', () => import('./disks/damage.ts'))
subject('lost disk', () => import('./disks/lost-disk.ts'))
