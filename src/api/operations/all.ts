import type { Operation } from '../operation.ts'
import type { ApiParts } from '../parts.ts'
import { resourceOperations } from '../records/resource-routes.ts'
import type { ApiServices } from '../records/services.ts'
import { apiSessionOperations } from './api-sessions.ts'
import { auditOperations } from './audit.ts'
import { authenticateOperations } from './authenticate.ts'
import { authenticatorOperations } from './authenticators.ts'
import { caOperations } from './cas.ts'
import { backupOperations } from './cluster/backups.ts'
import { restoreOperations } from './cluster/restores.ts'
import { pkiOperations } from './cluster/pki.ts'
import { adminRecoveryOperations } from './cluster/recover-admin.ts'
import { clusterStatusOperations } from './cluster/status.ts'
import { clusterOperations } from './cluster.ts'
import { memberOperations } from './cluster-members.ts'
import { controllerSettingOperations } from './controller-settings.ts'
import { controllerOperations } from './controllers.ts'
import { currentOperations } from './current.ts'
import { clientJwtSignerOperations } from './external-jwt-signers.ts'
import { databaseOperations } from './database.ts'
import { debugOperations } from './debug.ts'
import { ownAuthenticatorOperations } from './own-authenticators.ts'
import { ownCertificateOperations } from './own-certificates.ts'
import { ownMfaOperations } from './own-mfa.ts'
import { eventOperations } from './events.ts'
import { hostOperations } from './host.ts'
import { enrollOperations } from './enroll.ts'
import { enrollmentOperations } from './enrollments.ts'
import { circuitOperations } from './circuits.ts'
import { linkOperations } from './links.ts'
import { identityOperations } from './identities.ts'
import { identityPostureOperations } from './identity-posture.ts'
import { identityTraceOperations } from './identity-trace.ts'
import { inspectionOperations } from './inspections.ts'
import { joinOperations } from './join.ts'
import { logLevelOperations } from './log-level.ts'
import { metaOperations } from './meta.ts'
import { postureResponseOperations } from './posture-responses.ts'
import { roleAttributeOperations } from './role-attributes.ts'
import { serviceAccessOperations } from './service-access.ts'
import { sessionOperations } from './sessions.ts'
import { specOperations } from './specs.ts'
import { summaryOperations } from './summary.ts'
import { upgradeOperations } from './upgrade.ts'
import { wellKnownOperations } from './well-known.ts'

/** Every operation of every API, sorted by nothing: routes do not overlap. The documents are made from the same list. */
export function allOperations(parts: ApiParts, services: ApiServices): readonly Operation[] {
  const operations: Operation[] = [
    ...resourceOperations(parts, services),
    ...metaOperations(parts),
    ...summaryOperations(parts),
    ...authenticateOperations(parts, services),
    ...currentOperations(parts, services),
    ...ownAuthenticatorOperations(parts, services),
    ...ownCertificateOperations(parts, services),
    ...ownMfaOperations(parts, services),
    ...identityOperations(parts, services),
    ...enrollmentOperations(parts, services),
    ...enrollOperations(parts, services),
    ...circuitOperations(parts),
    ...linkOperations(parts),
    ...identityPostureOperations(parts, services),
    ...postureResponseOperations(parts),
    ...identityTraceOperations(parts),
    ...authenticatorOperations(services),
    ...caOperations(parts, services),
    ...clientJwtSignerOperations(parts, services),
    ...controllerSettingOperations(parts, services),
    ...wellKnownOperations(parts),
    ...apiSessionOperations(parts, services),
    ...sessionOperations(parts, services),
    ...serviceAccessOperations(parts, services),
    ...roleAttributeOperations(parts, services),
    ...controllerOperations(parts),
    ...databaseOperations(parts, services),
    ...auditOperations(parts),
    ...eventOperations(parts, services),
    ...clusterOperations(parts),
    ...clusterStatusOperations(parts),
    ...memberOperations(parts),
    ...upgradeOperations(parts),
    ...debugOperations(parts, services),
    ...backupOperations(parts),
    ...restoreOperations(parts),
    ...pkiOperations(parts),
    ...adminRecoveryOperations(parts, services),
    ...joinOperations(parts),
    ...logLevelOperations(parts),
    ...inspectionOperations(parts, services),
    ...hostOperations(parts, services),
  ]
  return [...operations, ...specOperations(parts, operations)]
}
