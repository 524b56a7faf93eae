import type { Operation } from './http/operation.ts'
import type { ApiDeps } from './api-deps.ts'
import { resourceOperations } from './records/resource-routes.ts'
import type { ApiServices } from './services.ts'
import { accessExplanationOperations } from './access/explain.ts'
import { previewOperations } from './access/preview.ts'
import { roleCountOperations } from './access/role-counts.ts'
import { clusterHistoryOperations } from './cluster/history.ts'
import { apiSessionOperations } from './sessions/api-sessions.ts'
import { auditOperations } from './host/audit.ts'
import { authenticationOperations } from './sessions/authenticate.ts'
import { authenticatorOperations } from './enrollment/authenticators.ts'
import { caOperations } from './enrollment/cas.ts'
import { backupOperations } from './backups/backups.ts'
import { restoreOperations } from './backups/restores.ts'
import { pkiOperations } from './cluster/pki.ts'
import { adminRecoveryOperations } from './cluster/recover-admin.ts'
import { clusterStatusOperations } from './cluster/status.ts'
import { clusterOperations } from './cluster/cluster.ts'
import { logTimeResetOperations } from './cluster/log-time-reset.ts'
import { memberOperations } from './cluster/openziti-members.ts'
import { controllerSettingOperations } from './host/controller-settings.ts'
import { controllerOperations } from './cluster/controllers.ts'
import { currentIdentityOperations } from './sessions/current-identity.ts'
import { clientJwtSignerOperations } from './enrollment/client-jwt-signers.ts'
import { databaseOperations } from './host/database.ts'
import { debugOperations } from './host/debug.ts'
import { oidcOperations } from './oidc/oidc.ts'
import { ownAuthenticatorOperations } from './enrollment/own-authenticators.ts'
import { ownCertificateOperations } from './enrollment/own-certificates.ts'
import { ownMfaOperations } from './mfa/own-mfa.ts'
import { historyOperations } from './history/history.ts'
import { eventOperations } from './events/events.ts'
import { hostOperations } from './host/host.ts'
import { tokenEnrollmentOperations } from './enrollment/enroll.ts'
import { enrollmentOperations } from './enrollment/enrollments.ts'
import { circuitOperations } from './fabric/circuits.ts'
import { linkOperations } from './fabric/links.ts'
import { identityOperations } from './identities/identities.ts'
import { identityPostureOperations } from './identities/identity-posture.ts'
import { identityTraceOperations } from './identities/identity-trace.ts'
import { inspectionOperations } from './fabric/inspections.ts'
import { joinOperations } from './cluster/join.ts'
import { logLevelOperations } from './host/log-level.ts'
import { reloadOperations } from './host/reload.ts'
import { staticInfoOperations } from './host/meta.ts'
import { postureResponseOperations } from './identities/posture-responses.ts'
import { roleAttributeOperations } from './identities/role-attributes.ts'
import { serviceAccessOperations } from './identities/service-access.ts'
import { sessionOperations } from './sessions/sessions.ts'
import { specOperations } from './host/specs.ts'
import { summaryOperations } from './identities/summary.ts'
import { providerLogInOperations } from './signers/provider-log-in.ts'
import { signerSetUpOperations } from './signers/signer-set-up.ts'
import { trafficOperations } from './traffic/traffic.ts'
import { upgradeOperations } from './cluster/upgrade.ts'
import { wellKnownOperations } from './enrollment/well-known.ts'

/**
 * Every operation of every API. The order does not matter, because routes do not overlap. The
 * OpenAPI documents are generated from the same list.
 */
export function allOperations(needs: ApiDeps & ApiServices): readonly Operation[] {
  const operations: Operation[] = [
    ...resourceOperations(needs),
    ...staticInfoOperations(needs),
    ...summaryOperations(needs),
    ...authenticationOperations(needs),
    ...oidcOperations(needs),
    ...currentIdentityOperations(needs),
    ...ownAuthenticatorOperations(needs),
    ...ownCertificateOperations(needs),
    ...ownMfaOperations(needs),
    ...identityOperations(needs),
    ...enrollmentOperations(needs),
    ...tokenEnrollmentOperations(needs),
    ...circuitOperations(needs),
    ...linkOperations(needs),
    ...trafficOperations(needs),
    ...identityPostureOperations(needs),
    ...postureResponseOperations(needs),
    ...identityTraceOperations(needs),
    ...authenticatorOperations(needs),
    ...caOperations(needs),
    ...clientJwtSignerOperations(needs),
    ...signerSetUpOperations(needs),
    ...providerLogInOperations(needs),
    ...controllerSettingOperations(needs),
    ...wellKnownOperations(needs),
    ...apiSessionOperations(needs),
    ...sessionOperations(needs),
    ...serviceAccessOperations(needs),
    ...accessExplanationOperations(needs),
    ...previewOperations(needs),
    ...roleCountOperations(needs),
    ...roleAttributeOperations(needs),
    ...controllerOperations(needs),
    ...databaseOperations(needs),
    ...auditOperations(needs),
    ...historyOperations(needs),
    ...eventOperations(needs),
    ...clusterOperations(needs),
    ...clusterStatusOperations(needs),
    ...clusterHistoryOperations(needs),
    ...memberOperations(needs),
    ...upgradeOperations(needs),
    ...logTimeResetOperations(needs),
    ...debugOperations(needs),
    ...backupOperations(needs),
    ...restoreOperations(needs),
    ...pkiOperations(needs),
    ...adminRecoveryOperations(needs),
    ...joinOperations(needs),
    ...logLevelOperations(needs),
    ...reloadOperations(needs),
    ...inspectionOperations(needs),
    ...hostOperations(needs),
  ]
  return [...operations, ...specOperations(needs, operations)]
}
