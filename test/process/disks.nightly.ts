import { shortLogs } from '../chaos/damages.ts'
import { shareFleet, subject } from './support/shared-cluster.ts'

// Disks that are damaged, lost, or replaced by an older copy.

shareFleet(shortLogs)
subject('damage', () => import('./disks/damage.ts'))
subject('lost disk', () => import('./disks/lost-disk.ts'))
