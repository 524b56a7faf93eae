import { shareCluster, subject } from './support/shared-cluster.ts'

// Permissions on three controllers: identities, their credentials and devices.

shareCluster()
subject('identities', () => import('./people/identities.ts'))
subject('mfa', () => import('./people/mfa.ts'))
subject('enrollment', () => import('./people/enrollment.ts'))
subject('posture', () => import('./people/posture.ts'))
subject('certificates', () => import('./people/certificates.ts'))
