import type { Operation } from '../operation.ts'
import type { ApiParts } from '../parts.ts'
import { resourceOperations } from '../records/resource-routes.ts'
import type { ApiServices } from '../records/services.ts'
import { apiSessionOperations } from './entrance/api-sessions.ts'
import { auditOperations } from './host/audit.ts'
import { authenticateOperations } from './entrance/authenticate.ts'
import { authenticatorOperations } from './entrance/authenticators.ts'
import { caOperations } from './entrance/cas.ts'
import { backupOperations } from './cluster/backups.ts'
import { restoreOperations } from './cluster/restores.ts'
import { pkiOperations } from './cluster/pki.ts'
import { adminRecoveryOperations } from './cluster/recover-admin.ts'
import { clusterStatusOperations } from './cluster/status.ts'
import { clusterOperations } from './cluster/cluster.ts'
import { logTimeOperations } from './cluster/log-time.ts'
import { memberOperations } from './cluster/cluster-members.ts'
import { controllerSettingOperations } from './host/controller-settings.ts'
import { controllerOperations } from './cluster/controllers.ts'
import { currentOperations } from './own/current.ts'
import { clientJwtSignerOperations } from './entrance/external-jwt-signers.ts'
import { databaseOperations } from './host/database.ts'
import { debugOperations } from './host/debug.ts'
import { ownAuthenticatorOperations } from './own/own-authenticators.ts'
import { ownCertificateOperations } from './own/own-certificates.ts'
import { ownMfaOperations } from './own/own-mfa.ts'
import { eventOperations } from './host/events.ts'
import { hostOperations } from './host/host.ts'
import { enrollOperations } from './entrance/enroll.ts'
import { enrollmentOperations } from './entrance/enrollments.ts'
import { circuitOperations } from './network/circuits.ts'
import { linkOperations } from './network/links.ts'
import { identityOperations } from './network/identities.ts'
import { identityPostureOperations } from './network/identity-posture.ts'
import { identityTraceOperations } from './network/identity-trace.ts'
import { inspectionOperations } from './network/inspections.ts'
import { joinOperations } from './entrance/join.ts'
import { logLevelOperations } from './host/log-level.ts'
import { metaOperations } from './host/meta.ts'
import { postureResponseOperations } from './own/posture-responses.ts'
import { roleAttributeOperations } from './network/role-attributes.ts'
import { serviceAccessOperations } from './network/service-access.ts'
import { sessionOperations } from './entrance/sessions.ts'
import { specOperations } from './host/specs.ts'
import { summaryOperations } from './network/summary.ts'
import { upgradeOperations } from './cluster/upgrade.ts'
import { wellKnownOperations } from './entrance/well-known.ts'

/**
 * Every operation of every API, sorted by nothing: routes do not overlap. The documents are made
 * from the same list.
 */
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
    ...logTimeOperations(parts),
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
