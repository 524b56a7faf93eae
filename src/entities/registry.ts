import { AssertionError } from '../lib/assert.ts'
import { accessEnd } from './kinds/access-end.ts'
import { accessMark } from './kinds/access-mark.ts'
import { admission } from './kinds/admission.ts'
import { apiSession } from './kinds/api-session.ts'
import { authPolicy } from './kinds/auth-policy.ts'
import { authenticator } from './kinds/authenticator.ts'
import { clientTerminator } from './kinds/client-terminator.ts'
import { ca } from './kinds/ca.ts'
import { clientExternalJwtSigner } from './kinds/client-external-jwt-signer.ts'
import { configType } from './kinds/config-type.ts'
import { config } from './kinds/config.ts'
import { controllerSetting } from './kinds/controller-setting.ts'
import type { Entity } from './define-entity.ts'
import { edgeRouter } from './kinds/edge-router.ts'
import { edgeRouterPolicy } from './kinds/edge-router-policy.ts'
import { enrollment } from './kinds/enrollment.ts'
import { fabricRouter } from './kinds/fabric-router.ts'
import { fabricService } from './kinds/fabric-service.ts'
import { fabricTerminator } from './kinds/fabric-terminator.ts'
import { externalJwtSigner } from './kinds/external-jwt-signer.ts'
import { identity } from './kinds/identity.ts'
import { identityType } from './kinds/identity-type.ts'
import { integrityRun } from './kinds/integrity-run.ts'
import { serviceConfig } from './kinds/service-config.ts'
import { joinTicket } from './kinds/join-ticket.ts'
import { logTimeReset } from './kinds/log-time-reset.ts'
import { mfaAttempts } from './kinds/mfa-attempts.ts'
import { mfa } from './kinds/mfa.ts'
import { passwordAttempts } from './kinds/password-attempts.ts'
import { postureCheckType } from './kinds/posture-check-type.ts'
import { postureCheck } from './kinds/posture-check.ts'
import { revocation } from './kinds/revocation.ts'
import { router } from './kinds/router.ts'
import { sessionCertificate } from './kinds/session-certificate.ts'
import { serviceEdgeRouterPolicy } from './kinds/service-edge-router-policy.ts'
import { service } from './kinds/service.ts'
import { servicePolicy } from './kinds/service-policy.ts'
import { session } from './kinds/session.ts'
import { sharedSecret } from './kinds/shared-secret.ts'
import { terminator } from './kinds/terminator.ts'
import { transitRouter } from './kinds/transit-router.ts'
import { type KindName, kindNames } from './kind-names.ts'

/** Descriptor of each kind of record, by the kind's name. */
export const entityByKind = {
  accessEnd,
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
} satisfies { readonly [K in KindName]: Entity<K> }

/** Every kind of record, sorted by name. */
export const entities: readonly Entity[] = kindNames.map((name) => entityByKind[name])

export const entitiesByName: ReadonlyMap<string, Entity> = new Map(
  entities.map((entity) => [entity.name, entity]),
)

/**
 * The descriptor for a kind whose name comes from a command or a stored record.
 * @throws {AssertionError} when no kind has that name.
 */
export function findEntity(name: string): Entity {
  const entity = entitiesByName.get(name)
  if (entity === undefined) throw new AssertionError(`there is a descriptor named ${name}`)
  return entity
}

export function isKindName(name: string): name is KindName {
  return Object.hasOwn(entityByKind, name)
}

/** Plural name of a kind: `postureCheck` → `postureChecks`. */
export function kindPlural(name: KindName): string {
  return entityByKind[name].plural
}
