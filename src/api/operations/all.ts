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
export function allOperations(needs: ApiParts & ApiServices): readonly Operation[] {
  const operations: Operation[] = [
    ...resourceOperations(needs),
    ...metaOperations(needs),
    ...summaryOperations(needs),
    ...authenticateOperations(needs),
    ...currentOperations(needs),
    ...ownAuthenticatorOperations(needs),
    ...ownCertificateOperations(needs),
    ...ownMfaOperations(needs),
    ...identityOperations(needs),
    ...enrollmentOperations(needs),
    ...enrollOperations(needs),
    ...circuitOperations(needs),
    ...linkOperations(needs),
    ...identityPostureOperations(needs),
    ...postureResponseOperations(needs),
    ...identityTraceOperations(needs),
    ...authenticatorOperations(needs),
    ...caOperations(needs),
    ...clientJwtSignerOperations(needs),
    ...controllerSettingOperations(needs),
    ...wellKnownOperations(needs),
    ...apiSessionOperations(needs),
    ...sessionOperations(needs),
    ...serviceAccessOperations(needs),
    ...roleAttributeOperations(needs),
    ...controllerOperations(needs),
    ...databaseOperations(needs),
    ...auditOperations(needs),
    ...eventOperations(needs),
    ...clusterOperations(needs),
    ...clusterStatusOperations(needs),
    ...memberOperations(needs),
    ...upgradeOperations(needs),
    ...logTimeOperations(needs),
    ...debugOperations(needs),
    ...backupOperations(needs),
    ...restoreOperations(needs),
    ...pkiOperations(needs),
    ...adminRecoveryOperations(needs),
    ...joinOperations(needs),
    ...logLevelOperations(needs),
    ...inspectionOperations(needs),
    ...hostOperations(needs),
  ]
  return [...operations, ...specOperations(needs, operations)]
}
