import { assert } from '../lib/assert.ts'
import { accessMark } from './access-mark.ts'
import { admission } from './admission.ts'
import { apiSession } from './api-session.ts'
import { authPolicy } from './auth-policy.ts'
import { authenticator } from './authenticator.ts'
import { clientTerminator } from './client-terminator.ts'
import { ca } from './ca.ts'
import { clientExternalJwtSigner } from './client-external-jwt-signer.ts'
import { configType } from './config-type.ts'
import { config } from './config.ts'
import { controllerSetting } from './controller-setting.ts'
import type { Entity } from './define.ts'
import { edgeRouter } from './edge-router.ts'
import { edgeRouterPolicy } from './edge-router-policy.ts'
import { enrollment } from './enrollment.ts'
import { fabricRouter } from './fabric-router.ts'
import { fabricService } from './fabric-service.ts'
import { fabricTerminator } from './fabric-terminator.ts'
import { externalJwtSigner } from './external-jwt-signer.ts'
import { identity } from './identity.ts'
import { identityType } from './identity-type.ts'
import { integrityRun } from './integrity-run.ts'
import { serviceConfig } from './service-config.ts'
import { joinTicket } from './join-ticket.ts'
import { logTimeReset } from './log-time-reset.ts'
import { mfaAttempts } from './mfa-attempts.ts'
import { mfa } from './mfa.ts'
import { passwordAttempts } from './password-attempts.ts'
import { postureCheckType } from './posture-check-type.ts'
import { postureCheck } from './posture-check.ts'
import { revocation } from './revocation.ts'
import { router } from './router.ts'
import { sessionCertificate } from './session-certificate.ts'
import { serviceEdgeRouterPolicy } from './service-edge-router-policy.ts'
import { service } from './service.ts'
import { servicePolicy } from './service-policy.ts'
import { session } from './session.ts'
import { sharedSecret } from './shared-secret.ts'
import { terminator } from './terminator.ts'
import { transitRouter } from './transit-router.ts'

/** Every kind of record, sorted by name. */
export const entities: readonly Entity[] = [
  accessMark,
  admission,
  apiSession,
  authPolicy,
  authenticator,
  ca,
  clientExternalJwtSigner,
  clientTerminator,
  config,
  configType,
  controllerSetting,
  edgeRouter,
  edgeRouterPolicy,
  enrollment,
  externalJwtSigner,
  fabricRouter,
  fabricService,
  fabricTerminator,
  identity,
  identityType,
  integrityRun,
  joinTicket,
  logTimeReset,
  mfa,
  mfaAttempts,
  passwordAttempts,
  postureCheck,
  postureCheckType,
  revocation,
  router,
  service,
  serviceConfig,
  serviceEdgeRouterPolicy,
  servicePolicy,
  session,
  sessionCertificate,
  sharedSecret,
  terminator,
  transitRouter,
]

export const entitiesByName: ReadonlyMap<string, Entity> = new Map(
  entities.map((entity) => [entity.name, entity]),
)

/** @throws {AssertionError} when no kind has that name. */
export function entityNamed(name: string): Entity {
  const entity = entitiesByName.get(name)
  assert(entity !== undefined, `there is a descriptor named ${name}`)
  return entity
}

/**
 * What a kind is called where there may be no descriptor of it yet: `postureCheck` →
 * `postureChecks`.
 */
export function pluralOf(name: string): string {
  return entitiesByName.get(name)?.plural ?? `${name}s`
}
